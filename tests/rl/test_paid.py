"""The pay of learners in a comparison: the terminal state, nothing behind it, and nets by the transition."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from grace_irl.demos.trajectory import Metadata
from grace_irl.rewards.runner import InProcessRunner
from grace_irl.rewards.sb3 import RewardVecEnv
from grace_irl.rewards.scale import Scale
from grace_irl.rl.environments import FunctionView
from grace_irl.rl.horizon import FixedHorizon
from grace_irl.rl.learning import NetVecEnv
from grace_irl.rl.observed import Observed

PROGRAM = """class Reward:
    def __init__(self, extra_info=None):
        self.seen, self.goal = 0, len(extra_info)
    def reward_fn(self, state):
        self.seen += 1
        return float(state[0]) + 10 * self.seen + 1000 * self.goal
"""
WITH_ACTION = """class Reward:
    def __init__(self, extra_info=None): pass
    def reward_fn(self, state, action, next_state):
        return float(100 * state[0] + 10 * int(action) + next_state[0])
"""


class Counter(gymnasium.Env[Any, Any]):
    """Counts its steps, and ends at `end`."""

    observation_space = Box(0, 100, (1,))
    action_space = Discrete(3)
    mission = "abc"

    def __init__(self, end: int = 2) -> None:
        self.end = end

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.count = 0
        return np.array([0.0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.array([float(self.count)]), -1.0, self.count == self.end, False, {}


def venv(*ends: int, horizon: int = 0) -> DummyVecEnv:
    def one(end: int) -> Any:
        seen = Observed(Counter(end), FunctionView(Metadata("vector", (), "Counter", "vector")))
        return Monitor(FixedHorizon(seen, horizon) if horizon else seen)

    return DummyVecEnv([lambda end=end: one(end) for end in ends])  # type: ignore[misc]


def paid(environment: Any, steps: int, action: int = 1) -> list[list[float]]:
    environment.reset()
    return [environment.step(np.full(environment.num_envs, action))[1].tolist() for _ in range(steps)]


def test_a_program_is_paid_state_by_state_each_episode_by_itself() -> None:
    environment = RewardVecEnv(venv(2, 3), InProcessRunner(PROGRAM, "program"), Scale())
    assert paid(environment, 4) == [[3021, 3021], [3032, 3032], [3021, 3043], [3032, 3021]]
    environment.close()


def test_in_the_fixed_horizon_form_the_terminal_state_is_paid_and_nothing_behind_it() -> None:
    environment = RewardVecEnv(venv(2, 4, horizon=4), InProcessRunner(PROGRAM, "program"), Scale())
    assert paid(environment, 5) == [[3021, 3021], [3032, 3032], [0, 3043], [0, 3054], [3021, 3021]]
    environment.close()


def test_all_may_be_absorbed_at_once() -> None:
    environment = RewardVecEnv(venv(1, 1, horizon=3), InProcessRunner(PROGRAM, "program"), Scale())
    assert paid(environment, 4) == [[3021, 3021], [0, 0], [0, 0], [3021, 3021]]
    environment.close()


def test_a_program_that_rewards_transitions_gets_its_own_actions() -> None:
    environment = RewardVecEnv(venv(1, 3, horizon=3), InProcessRunner(WITH_ACTION, "program"), Scale())
    environment.reset()
    rewards = [environment.step(np.array([0, action]))[1].tolist() for action in (1, 2, 0)]
    assert rewards == [[1, 11], [0, 122], [0, 203]]
    environment.close()


def test_the_form_is_applied_to_what_the_program_pays_and_not_to_the_absorbing_state() -> None:
    environment = RewardVecEnv(venv(1, horizon=2), InProcessRunner(PROGRAM, "program"), Scale("probability"))
    assert paid(environment, 2) == [[1.0], [0.0]]
    environment.close()


def transition(state: NDArray[Any], action: NDArray[Any], next_state: NDArray[Any], done: Any) -> NDArray[Any]:
    return np.asarray(100 * state[:, 0] + 10 * action + next_state[:, 0] + 1000 * done)


def test_a_net_is_asked_about_what_an_episode_reached_and_not_about_the_next_one() -> None:
    assert paid(NetVecEnv(venv(2, 3), transition), 4) == [[11, 11], [1112, 112], [11, 1213], [1112, 11]]


@pytest.mark.parametrize("environments", [1, 4])
def test_a_centred_net_pays_around_0_with_a_deviation_of_1(environments: int) -> None:
    rewards = np.array(paid(NetVecEnv(venv(*[50] * environments), transition, "centred"), 400))[200:]
    plain = np.array(paid(NetVecEnv(venv(*[50] * environments), transition), 400))[200:]
    assert abs(rewards.mean()) < 0.2
    assert abs(rewards.std() - 1) < 0.2
    assert np.corrcoef(rewards.ravel(), plain.ravel())[0, 1] > 0.99


def test_a_positive_net_pays_above_0_and_orders_as_the_reward_does() -> None:
    def low(*transition: Any) -> NDArray[Any]:
        return np.asarray((transition[2][:, 0] - 2) * 400.0)

    assert np.array(paid(NetVecEnv(venv(3), low, "positive"), 3)).ravel() == pytest.approx([0, np.log(2), 400])
