"""Extraction of states and instructions from the observations and infos of an environment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import InputError
from grace_irl.programs.parts import Shape
from grace_irl.states.record import rows_of

STATE, INSTRUCTION = "state", "instruction"
"""`STATE` is the key of the state in a dict observation. `INSTRUCTION` is the key of the instruction in the `info` of
`reset`."""

SHOWN = "grace_irl.state"
"""Key of the state in the `info` of `reset` and `step`. Environments of this package use this key, because their
observations are for the policy and are not states. A step without this key has reward 0, for example a padding step
after a terminal state (`grace_irl.rl.horizon`)."""


class StateView(Protocol):
    """The conversion of one environment's observations to states, for recorded and for running episodes."""

    @property
    def metadata(self) -> Metadata:
        """Facts about all states."""
        ...

    @property
    def has_goal(self) -> bool:
        """Whether the environment has a goal. Without a goal, `success` is always False."""
        ...

    def prepare(self, environment: Any) -> None:
        """Prepare the environment. Call this once, before the first reset."""
        ...

    def state(self, environment: Any, observation: Any) -> Any:
        """The state after the reset or step that returned this observation. `metadata` names the kind of state."""
        ...

    def instruction(self, environment: Any) -> str:
        """The instruction of the running episode; "" if this view does not know it (`instruction_of`)."""
        ...

    def success(self, terminated: bool, reward: float) -> bool:
        """Whether an episode reached its goal; False if the environment has no goal.

        Args:
            terminated: whether the last step terminated the episode.
            reward: the environment's reward for the last step.
        """
        ...


def instruction_of(environment: Any, info: Mapping[str, Any], view: StateView | None = None) -> str:
    """The instruction of an episode: by the view, else `info["instruction"]` of `reset`, else the `mission`, else "".

    Args:
        environment: the environment.
        info: the `info` of the episode's `reset`.
        view: the environment's view; None if it has none.
    """
    said, named = view.instruction(environment) if view is not None else "", info.get(INSTRUCTION)
    return str(said or (getattr(environment.unwrapped, "mission", None) if named is None else named) or "")


Tops = frozenset[str]
"""Names of the parts that a reward reads; empty if the reward names no parts. A part of a nested dict counts under the
outer name: "arm" for the part "arm/joints"."""


def tops_of(parts: Iterable[str]) -> Tops:
    """Convert names of parts to `Tops`, such as "arm/joints" to "arm"."""
    return frozenset(name.partition("/")[0] for name in parts)


def holds_state(keys: Collection[str], tops: Tops) -> bool:
    """Whether a dict observation with these keys has the state under "state".

    If the reward names parts and the observation has all of them (`tops`), the observation is the state itself.
    """
    return STATE in keys and not (tops and tops.issubset(keys))


def state_of(observation: Any, tops: Tops = frozenset()) -> Any:
    """The state in an observation: an array itself, a dict itself, or the entry "state" of a dict (`holds_state`).

    Raises:
        InputError: a tuple or list of arrays of different shapes.
    """
    found = _entry(observation, tops)
    return found if isinstance(found, dict | str | bytes) else _array(found)


def states_of(observations: Any, count: int, tops: Tops = frozenset()) -> NDArray[Any]:
    """The states in the observations of a vector environment: `(count, ...)`, or `(count,)` dicts or texts.

    Gymnasium batches observations of a `Tuple` space as a tuple of arrays, one array `(count, ...)` for each part.

    Raises:
        InputError: tuples or lists of arrays of different shapes.
    """
    found = _entry(observations, tops)
    if isinstance(found, dict):
        return rows_of(found, count)
    if isinstance(found, tuple) and all(isinstance(each, np.ndarray) and each.shape[:1] == (count,) for each in found):
        found = list(zip(*found, strict=True))
    states = _array(found)
    return states.astype(object) if states.dtype.kind in "US" else states


def _entry(observation: Any, tops: Tops) -> Any:
    held = isinstance(observation, dict) and holds_state(observation.keys(), tops)
    return observation[STATE] if held else observation


def _array(found: Any) -> NDArray[Any]:
    try:
        return np.asarray(found)
    except ValueError:
        raise InputError(
            f"an observation that is {type(found).__name__} of arrays of different shapes; expected one array, a text "
            "or a dict: give the environment a wrapper that shows them so"
        ) from None


def shapes_in(space: Any) -> dict[str, Shape]:
    """The shape of each part of a Gymnasium space, by names such as "arm/joints".

    A space without parts has one entry, with the name "".
    """
    found: dict[str, Shape] = {}
    stack: list[tuple[str, Any]] = [("", space)]
    while stack:
        name, inner = stack.pop()
        parts = getattr(inner, "spaces", None)
        if isinstance(parts, Mapping):
            stack += [(f"{name}/{key}" if name else str(key), each) for key, each in parts.items()]
        else:
            found[name] = getattr(inner, "shape", None)
    return found
