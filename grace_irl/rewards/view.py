"""States and instructions in what an environment gives."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Metadata
from grace_irl.errors import InputError

STATE, INSTRUCTION = "state", "instruction"
"""Keys of an observation, and of the information that `reset` gives, that hold what a program is shown."""

SHOWN = "grace_irl.state"
"""Key of the information of `reset` and `step` in which our own environments put the state, if the observation is
another thing. A step that lacks it reached no state that a program may see: it pays 0."""


class StateView(Protocol):
    """Makes states of one environment's observations, offline and online alike."""

    @property
    def metadata(self) -> Metadata:
        """What is true of all states."""
        ...

    @property
    def has_goal(self) -> bool:
        """Whether `success` means anything."""
        ...

    def prepare(self, environment: Any) -> None:
        """Called once, before the first reset."""
        ...

    def state(self, environment: Any, observation: Any) -> Any:
        """The state, as its kind has it, after a reset or a step that gave this observation."""
        ...

    def instruction(self, environment: Any) -> str:
        """The goal text of the running episode, or ""."""
        ...

    def success(self, terminated: bool, reward: float) -> bool:
        """Whether an episode that ended so reached its goal; False if there is no such notion."""
        ...


def state_of(observation: Any) -> NDArray[Any]:
    """The state in an observation: the array itself, or what a dict holds under "state".

    Raises:
        InputError: neither.
    """
    if isinstance(observation, dict):
        if STATE not in observation:
            raise InputError(
                f"observations with keys {', '.join(map(str, observation))}; expected an array, a dict with "
                f"{STATE!r}, or a view that makes states of them"
            )
        observation = observation[STATE]
    return np.asarray(observation)
