"""Scores for tests, good and bad ones."""

from __future__ import annotations

import os

from grace_irl.rl.evaluation import Rollout

NUMBER = 3


def length(rollout: Rollout) -> float:
    return float(rollout.length)


def whole(rollout: Rollout) -> float:
    """The length of an episode whose actions are whole numbers."""
    assert rollout.trajectory.actions is not None
    return float(rollout.length + 0 * (rollout.trajectory.actions << 1).sum())


def raises(rollout: Rollout) -> float:
    raise ValueError("it broke\nbadly")


def infinite(rollout: Rollout) -> float:
    return float("inf")


def spelt(rollout: Rollout) -> str:
    return "0.5"


def nothing(rollout: Rollout) -> None:
    pass


def dies(rollout: Rollout) -> float:
    """A fault in native code ends a process so."""
    os._exit(9)


def constant(rollout: Rollout) -> float:
    return 1.0
