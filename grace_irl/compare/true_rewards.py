"""True rewards as functions of what programs see, where an environment's reward is one.

EPIC asks for the reward of transitions that nobody made. MuJoCo's bodies are paid for the distance that they cover in a
step, which observations do not hold; their mean velocity before and after it stands for it. Goals of instructions are
judged by the environment alone and have no such form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.rl.layouts import split_id

Floats = NDArray[np.float64]
StateReward = Callable[[Floats, Floats, Floats], Floats]
"""Rewards `(n,)` of states `(n, k)`, actions `(n, m)` and next states `(n, k)`."""


@dataclass(frozen=True)
class Locomotion:
    """What a body is paid: forward velocity, less the cost of control, and a bonus for being healthy.

    Attributes:
        size: numbers of a state, positions left out.
        velocity: which of them is the velocity forward.
        control: cost of a squared action.
        heights: between which the torso is healthy, in metres; None: there is no bonus.
        angles: between which its angle is, in radians.
        largest: all but the height must be smaller than this to be healthy.
    """

    size: int
    velocity: int
    control: float
    heights: tuple[float, float] | None = None
    angles: tuple[float, float] = (-np.inf, np.inf)
    largest: float = np.inf

    def __call__(self, states: Floats, actions: Floats, next_states: Floats) -> Floats:
        """See `StateReward`."""
        forward = (states[:, self.velocity] + next_states[:, self.velocity]) / 2
        paid: Floats = forward - self.control * np.square(actions).sum(axis=1)
        if self.heights is not None:
            paid = paid + self._healthy(next_states)
        return paid

    def _healthy(self, states: Floats) -> NDArray[np.bool_]:
        assert self.heights is not None  # `__call__` asks
        upright = (states[:, 0] > self.heights[0]) & (states[:, 0] < self.heights[1])
        straight = (states[:, 1] > self.angles[0]) & (states[:, 1] < self.angles[1])
        return np.asarray(upright & straight & (np.abs(states[:, 1:]) < self.largest).all(axis=1))


TABLE: dict[str, Locomotion] = {
    "Hopper-v5": Locomotion(11, 5, 1e-3, (0.7, np.inf), (-0.2, 0.2), 100.0),
    "HalfCheetah-v5": Locomotion(17, 8, 0.1),
    "Walker2d-v5": Locomotion(17, 8, 1e-3, (0.8, 2.0), (-1.0, 1.0)),
}
"""By Gymnasium id, with the defaults of Gymnasium's documentation of each."""


def true_reward(environment: str, size: int) -> StateReward | None:
    """The true reward of an environment whose states have so many numbers; None where none is known."""
    name = split_id(environment)[0]
    found = TABLE.get(f"{name}-v5")
    return found if found is not None and found.size == size else None
