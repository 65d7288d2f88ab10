"""True rewards in closed form, programs as rewards of transitions, and their EPIC distance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.compare import distance as distances
from grace_irl.compare.distance import distance, true_reward
from grace_irl.compare.fitted import ProgramReward
from grace_irl.demos.trajectory import Demonstration, Demonstrations
from grace_irl.errors import GraceError
from grace_irl.rl.collect import collect
from grace_irl.rl.matching import environment_for
from grace_irl.rl.method import PolicyProblem
from grace_irl.rl.problems import make_problem
from tests.rl.cart_pole import problem as cart_pole

FORWARD = """class Reward:
    def __init__(self, extra_info=None): pass
    def reward_fn(self, state): return {sign} * float(state[5])
"""
MEMORY = """class Reward:
    def __init__(self, extra_info=None): self.last = 0.0
    def reward_fn(self, state):
        paid, self.last = float(state[0]) - self.last, float(state[0])
        return paid
"""
COPY = """class Reward:
    def __init__(self, extra_info=None): self.seen = [[]]
    def reward_fn(self, state):
        copy = list(self.seen)
        copy[0] += [float(state[0])]
        return sum(self.seen[0])
"""
WITH_ACTION = """class Reward:
    def __init__(self, extra_info=None): pass
    def reward_fn(self, state, action, next_state): return float(action[0] + 10 * next_state[0] + 100 * state[0])
"""


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the draws: each is a run of a program on every transition."""
    monkeypatch.setattr(distances, "DRAWS", 16)


def program(folder: Path, source: str) -> ProgramReward:
    path = folder / "reward.py"
    path.write_text(source)
    return ProgramReward(path)


def hopper(horizon: int = 0) -> PolicyProblem:
    """Random episodes, which serve as well as experts."""
    played = collect("Hopper-v5", "random", 12, "expert", seed=0)
    return make_problem(played, environment_for(played), 64, horizon=horizon)


@pytest.mark.parametrize(("name", "least"), [("Hopper", 0.99), ("HalfCheetah", 0.95), ("Walker2d", 0.99)])
def test_a_closed_form_is_what_the_simulator_pays(name: str, least: float) -> None:
    played = [item.trajectory for item in collect(f"{name}-v5", "random", 3, "negative", seed=0)]
    reward = true_reward(f"{name}-v5", played[0].states.shape[1])
    assert reward is not None
    told: list[Any] = [
        reward(each.states[:-1].astype(float), np.asarray(each.actions), each.states[1:].astype(float))
        for each in played
    ]
    paid: list[Any] = [each.rewards for each in played]
    assert np.corrcoef(np.concatenate(told), np.concatenate(paid))[0, 1] > least
    assert abs(np.concatenate(told).mean() - np.concatenate(paid).mean()) < 0.02


def test_where_no_closed_form_is_known() -> None:
    assert true_reward("Hopper-v5", 12) is None
    assert true_reward("CartPole-v1", 4) is None
    assert true_reward("BabyAI-GoToObj-v0", 0) is None


def test_equal_states_are_paid_alike(tmp_path: Path) -> None:
    reward = program(tmp_path, FORWARD.format(sign=2))
    states = np.arange(24.0).reshape(4, 6)
    rewards = reward(states, np.zeros((4, 1)), states[[2, 2, 0, 3]], np.zeros(4, bool))
    assert rewards.tolist() == [34.0, 34.0, 10.0, 46.0]


@pytest.mark.parametrize(
    ("source", "expected"), [(MEMORY, [4.0, -2.0]), (COPY, [4.0, 2.0]), (WITH_ACTION, [56.0, 227.0])]
)
def test_each_transition_is_an_episode_of_its_own(source: str, expected: list[float], tmp_path: Path) -> None:
    reward = program(tmp_path, source)
    before, after, actions = np.array([[0.0], [2.0]]), np.array([[4.0], [0.0]]), np.array([[16.0], [27.0]])
    assert reward(before, actions, after, np.zeros(2, bool)).tolist() == expected


@pytest.mark.slow
def test_the_distance_of_right_and_of_opposite_rewards(tmp_path: Path) -> None:
    asked = hopper()
    near = distance(asked, program(tmp_path, FORWARD.format(sign=1)))
    far = distance(asked, program(tmp_path, FORWARD.format(sign=-1)))
    assert near is not None
    assert far is not None
    assert near < 0.5 < far
    assert near == distance(asked, program(tmp_path, FORWARD.format(sign=1)))
    assert near == pytest.approx(float(np.sqrt(1 - far**2)), abs=1e-6)


@pytest.mark.slow
def test_the_fixed_horizon_form_changes_no_distance_of_a_program_much(tmp_path: Path) -> None:
    reward = program(tmp_path, FORWARD.format(sign=1))
    plain, fixed = distance(hopper(), reward), distance(hopper(200), reward)
    assert plain is not None
    assert fixed is not None
    assert abs(plain - fixed) < 0.15


def test_there_is_none_without_a_closed_form_or_without_actions(tmp_path: Path) -> None:
    assert distance(cart_pole(64), program(tmp_path, FORWARD.format(sign=1))) is None
    asked = hopper()
    bare = tuple(replace(item, trajectory=replace(item.trajectory, actions=None)) for item in asked.demonstrations)
    asked = replace(asked, demonstrations=Demonstrations(asked.demonstrations.metadata, bare))
    assert isinstance(bare[0], Demonstration)
    assert distance(asked, program(tmp_path, FORWARD.format(sign=1))) is None


def test_a_program_that_fails_has_no_distance(tmp_path: Path) -> None:
    with pytest.raises(GraceError, match="IndexError"):
        distance(hopper(), program(tmp_path, FORWARD.format(sign=1).replace("[5]", "[99]")))
