"""Scores of episodes for the tasks of this package."""

from __future__ import annotations

import numpy as np

from grace_irl.rl.environments import SUCCESS
from grace_irl.rl.evaluation import Rollout

REACHED = 0.02
"""Maximum distance in metres at which the fingertip of Reacher counts as at its target."""
LAST = 10
"""Number of states at the end of an episode of Reacher that count for the score."""


def reacher(rollout: Rollout) -> float:
    """The share of the last `LAST` states in which the fingertip is within `REACHED` of the target.

    The last two numbers of a state of Reacher-v5 are the vector from the target to the fingertip.
    """
    away = np.asarray(rollout.trajectory.states)[-LAST:, 8:10]
    return float(np.mean(np.hypot(away[:, 0], away[:, 1]) <= REACHED))


def lander(rollout: Rollout) -> float:
    """1 if LunarLander comes to rest on both legs between the flags, else 0.

    A state of LunarLander-v3 has eight numbers: the position (x, y), the velocity (x, y), the angle, the angular
    velocity, and for each of two legs 1 if it touches the ground.
    """
    last = np.asarray(rollout.trajectory.states)[-1]
    still = float(np.hypot(last[2], last[3])) < 0.05
    return float(rollout.trajectory.terminated and still and abs(last[0]) < 0.2 and last[6] == 1 and last[7] == 1)


def success(rollout: Rollout) -> float:
    """1 if the episode reaches the goal of the environment, else 0.

    Raises:
        ValueError: the environment has no goal.
    """
    if rollout.success is None:
        raise ValueError(
            f"info has neither {' nor '.join(map(repr, SUCCESS))} (take another score, or another environment)"
        )
    return float(rollout.success)


def swung_up(rollout: Rollout) -> float:
    """The share of 500 steps that remain when Acrobot's tip first is up; 0 if the tip is never up."""
    return float(1.0 - min(rollout.length, 500) / 500) if rollout.trajectory.terminated else 0.0
