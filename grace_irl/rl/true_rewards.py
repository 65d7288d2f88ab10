"""True rewards of MuJoCo's runners as functions of transitions, for the EPIC distance of a recovered one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RunnerReward:
    """forward + healthy - control, as Gymnasium's documentation of each environment gives it, v2 to v5.

    The environment takes the mean forward velocity over a step, from positions that an observation does not hold; here
    it is the mean of the velocities before and after, which are observed.

    Attributes:
        velocity: index of the torso's forward velocity in an observation.
        control: weight of the sum of squared actions.
        healthy: tells states `(n, ...)` in which the alive bonus of 1 is paid; None: there is none.
    """

    velocity: int
    control: float
    healthy: Callable[[NDArray[Any]], NDArray[np.bool_]] | None = None

    def __call__(
        self,
        state: NDArray[Any],
        action: NDArray[Any],
        next_state: NDArray[Any],
        done: NDArray[np.bool_],  # noqa: ARG002
    ) -> Floats:
        """Rewards `(n,)`."""
        forward: Floats = (state[:, self.velocity] + next_state[:, self.velocity]) / 2
        paid: Floats = forward - self.control * np.square(action).sum(axis=1)
        return paid if self.healthy is None else paid + self.healthy(next_state)


def _hopper_is_healthy(states: NDArray[Any]) -> NDArray[np.bool_]:
    inside = (np.abs(states[:, 1:]) < 100).all(axis=1)
    return np.asarray(inside & (states[:, 0] > 0.7) & (np.abs(states[:, 1]) < 0.2))


def _walker_is_healthy(states: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray((states[:, 0] > 0.8) & (states[:, 0] < 2.0) & (np.abs(states[:, 1]) < 1.0))


TABLE = {
    "Hopper": RunnerReward(velocity=5, control=1e-3, healthy=_hopper_is_healthy),
    "HalfCheetah": RunnerReward(velocity=8, control=0.1),
    "Walker2d": RunnerReward(velocity=8, control=1e-3, healthy=_walker_is_healthy),
}
"""By the environment's name without its version."""


def true_reward(environment_id: str) -> RunnerReward | None:
    """The true reward of an environment as a function of transitions; None where we know none.

    BabyAI and MiniGrid have none: what they pay depends on the step number, and on what an instruction means.
    """
    return TABLE.get(environment_id.split("/")[-1].rsplit("-v", 1)[0])
