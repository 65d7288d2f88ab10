"""Action spaces: those that PPO can learn to act in, and the form of their actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError


def value_counts(space: Any) -> NDArray[np.int64] | None:
    """Number of possible values of each component of an action, in the action's shape; None for continuous actions."""
    from gymnasium.spaces import MultiBinary

    if isinstance(space, MultiBinary):
        return np.full(space.shape, 2)
    counts = getattr(space, "nvec", getattr(space, "n", None))
    return None if counts is None else np.asarray(counts, np.int64)


def require_actions(space: Any) -> None:
    """Check that PPO can learn to act in an action space.

    Raises:
        InputError: discrete actions that do not begin at 0, because learners ignore the start of the space, a `Box`
            of whole numbers, without finite bounds, of two or more dimensions, or between bounds that most actions of
            an untrained policy miss, or a space of another kind. An untrained policy of PPO draws numbers around 0 with
            deviation 1, and clips them: between 10 and 20 all its actions are 10.
    """
    from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

    if isinstance(space, Box):
        expected = "" if space.is_bounded() else "finite bounds: set them"
        if len(space.shape) > 1:
            expected = "a Box of one dimension: flatten it"
        elif not np.issubdtype(space.dtype, np.floating):
            expected = "a Box of float32, or whole numbers from 0 (MultiDiscrete): convert them"
        elif not expected and (np.any(space.low >= 1) or np.any(space.high <= -1)):
            expected = "bounds around 0, where a policy begins: rescale them to -1 and 1 (RescaleAction)"
    elif isinstance(space, Discrete) or (isinstance(space, MultiDiscrete | MultiBinary) and len(space.shape) == 1):
        expected = "actions from 0: shift them" if np.any(getattr(space, "start", 0)) else ""
    else:
        expected = "Discrete, Box, or MultiDiscrete or MultiBinary of one dimension: flatten them"
    if expected:
        raise InputError(f"actions of {space}; expected {expected} in a wrapper of the environment")


def typed(space: Any, actions: Any) -> Any:
    """A policy's actions in the type of the space. Policies of Stable-Baselines3 draw `MultiBinary` as floats."""
    from gymnasium.spaces import MultiBinary

    return np.asarray(actions).astype(space.dtype) if isinstance(space, MultiBinary) else actions


def uniform_log_prob(space: Any) -> float | None:
    """Log-probability (discrete) or log-density (bounded `Box`) of a uniformly drawn action; None for other spaces."""
    counts = value_counts(space)
    if counts is not None:
        return -float(np.log(counts).sum())
    if hasattr(space, "low") and np.isfinite(space.low).all() and np.isfinite(space.high).all():
        return -float(np.log(np.asarray(space.high, float) - space.low).sum())
    return None
