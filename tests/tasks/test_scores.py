"""The scores of the shipped tasks, of episodes made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.rl.evaluation import Rollout
from grace_irl.tasks.scores import lander, reacher, swung_up


def played(states: np.ndarray, *, terminated: bool = False) -> Rollout:
    return Rollout(Trajectory(states, actions=np.zeros(len(states) - 1), terminated=terminated), 0.0)


@pytest.mark.parametrize(
    ("away", "score"),
    [
        ([0.5] * 41 + [0.01] * 10, 1.0),
        ([0.01] * 41 + [0.5] * 10, 0.0),  # it was there, and did not stay
        ([0.5] * 46 + [0.02] * 5, 0.5),  # 2 cm count
        ([0.5] * 50 + [0.0201], 0.0),
    ],
)
def test_reacher_counts_the_last_ten_states_within_two_centimetres(away: list[float], score: float) -> None:
    states = np.zeros((51, 10))
    states[:, 8], states[:, 9] = 0.6 * np.array(away), -0.8 * np.array(away)
    assert reacher(played(states)) == pytest.approx(score)


REST = np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("changes", "terminated", "score"),
    [
        ({}, True, 1.0),
        ({}, False, 0.0),  # time is up
        ({0: 0.3}, True, 0.0),  # beside the flags
        ({0: -0.3}, True, 0.0),
        ({3: -0.2}, True, 0.0),  # a crash
        ({6: 0.0}, True, 0.0),  # one leg
    ],
)
def test_a_lander_rests_on_both_legs_between_the_flags(
    changes: dict[int, float], terminated: bool, score: float
) -> None:
    last = REST.copy()
    for place, value in changes.items():
        last[place] = value
    assert lander(played(np.stack([np.zeros(8), last]), terminated=terminated)) == score


def test_acrobot_is_paid_for_the_steps_that_are_left() -> None:
    states = np.zeros((126, 6))
    assert swung_up(played(states, terminated=True)) == pytest.approx(0.75)
    assert swung_up(played(states)) == 0.0
