"""Demonstrations as imitation's trajectories and transitions."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("imitation", reason="imitation is not installed: requirements/baselines.lock")
pytest.importorskip("imitation", reason="not installed: pip install --no-deps imitation==1.0.1")

from grace_irl.rl.episodes import ExpertEpisode, expert_episodes
from grace_irl_baselines.plumbing import as_trajectories, as_transitions
from tests.rl.cart_pole import experts, problem


def episode(length: int, ended: bool = True) -> ExpertEpisode:
    return ExpertEpisode(np.arange(length + 1.0)[:, None], np.arange(length), ended)


def test_trajectories_are_the_episodes() -> None:
    found = as_trajectories(expert_episodes(problem(1), "gail"))
    assert len(found) == len(experts())
    for one, item in zip(found, experts(), strict=True):
        np.testing.assert_array_equal(one.obs, item.trajectory.states)
        np.testing.assert_array_equal(one.acts, item.trajectory.actions)
        assert one.terminal  # by the time limit, for which an environment says `done`, too


def test_transitions_keep_the_last_observation_and_say_where_episodes_end() -> None:
    found = as_transitions([episode(3), episode(2, ended=False)])
    np.testing.assert_array_equal(found.obs[:, 0], [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(found.next_obs[:, 0], [1, 2, 3, 1, 2])
    np.testing.assert_array_equal(found.acts, [0, 1, 2, 0, 1])
    np.testing.assert_array_equal(found.dones, [False, False, True, False, False])


def test_few_transitions_are_repeated_as_a_whole_until_they_fill_a_batch() -> None:
    once = as_transitions([episode(3)])
    found = as_transitions([episode(3)], at_least=8)
    assert len(found) == 9
    for name in ("obs", "acts", "next_obs", "dones"):
        for start in (0, 3, 6):
            np.testing.assert_array_equal(getattr(found, name)[start : start + 3], getattr(once, name))
    assert len(as_transitions([episode(3)], at_least=3)) == 3
