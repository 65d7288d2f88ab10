"""Equality of demonstrations, part by part."""

from __future__ import annotations

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations


def assert_same(found: Demonstrations, expected: Demonstrations) -> None:
    """Everything but the sources agrees."""
    assert found.metadata == expected.metadata
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert_same_demonstration(one, other)


def assert_same_demonstration(found: Demonstration, expected: Demonstration) -> None:
    assert (found.role, found.task, found.split, found.goals) == (
        expected.role,
        expected.task,
        expected.split,
        expected.goals,
    )
    one, other = found.trajectory, expected.trajectory
    assert one.extra_info == other.extra_info
    assert (one.terminated, one.truncated) == (other.terminated, other.truncated)
    assert one.states.dtype == other.states.dtype
    np.testing.assert_array_equal(one.states, other.states)
    for name in ("actions", "rewards", "log_probs"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            assert mine.dtype == theirs.dtype, name
            np.testing.assert_array_equal(mine, theirs)
