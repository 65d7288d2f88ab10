"""States and instructions in what an environment gives."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Metadata
from grace_irl.states.record import rows_of

STATE, INSTRUCTION = "state", "instruction"
"""Keys of an observation, and of the information that `reset` gives, that hold what a program is shown."""

SHOWN = "grace_irl.state"
"""Key of the information of `reset` and `step` in which our own environments put the state, if the observation is
another thing. A step that lacks it reached no state that a program may see: it pays 0."""


class StateView(Protocol):
    """Makes states of one environment's observations, offline and online alike."""

    @property
    def metadata(self) -> Metadata:
        """Facts about all states."""
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


def state_of(observation: Any) -> Any:
    """The state in an observation: what a dict holds under "state", else a dict itself as a record, else the array."""
    if isinstance(observation, dict):
        return np.asarray(observation[STATE]) if STATE in observation else observation
    return np.asarray(observation)


def states_of(observations: Any, count: int) -> NDArray[Any]:
    """The states in the observations of a vector environment, `(count, ...)`; of records, `(count,)` dicts."""
    found = state_of(observations)
    return rows_of(found, count) if isinstance(found, dict) else found
