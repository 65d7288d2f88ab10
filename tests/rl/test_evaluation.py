"""Evaluation: true returns, the same episodes for all, and no trace of having looked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("torch")

import gymnasium
import torch

from grace_irl.errors import InputError
from grace_irl.rl.evaluation import EpisodeSums, Performance, Rollout, evaluate
from grace_irl.rl.observed import observed
from tests.rl.cart_pole import make, problem


class Door(gymnasium.Env[Any, Any]):
    """Action 1 ends the episode well, after as many steps of action 0 as the seed's last digit says, or 9."""

    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.int64)
    action_space = gymnasium.spaces.Discrete(2)
    open = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        assert seed is not None
        Door.open += 1
        self.left = seed % 10
        return np.array([self.left]), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        done = action == 1
        info: dict[str, Any] = {"reward_way": -1.0, "reward_goal": float(done), "reward_parts": [1, 2]}
        if done or self.left < 0:
            info["is_success"] = bool(done)
        return np.array([max(self.left, 0)]), float(done) - 1, done, self.left < 0 and not done, info

    def close(self) -> None:
        Door.open -= 1


class Waits:
    """Takes action 1 as soon as it sees a 0."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> Any:
        return (observation[:, 0] == 0).astype(int), None

    def save(self, path: Any) -> None:
        """Nothing to save."""


class Counts(Waits):
    """Takes action 1 at its third step, which it knows by a memory, as recurrent policies have one."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> Any:
        steps = np.zeros((1, len(observation)), int) if state is None else state[0]
        steps = np.where(episode_start, 0, steps) + 1
        return (steps[0] == 3).astype(int), (steps,)


@pytest.mark.parametrize("at_once", [1, 3, 20])
def test_every_episode_counts_by_itself(at_once: int) -> None:
    seeds = np.random.default_rng(5).integers(2**31 - 1, size=7) % 10
    found = evaluate(Waits(), Door, 7, 5, at_once=at_once)
    np.testing.assert_array_equal(found.returns, -seeds)
    np.testing.assert_array_equal(found.lengths, seeds + 1)
    assert found.successes is not None
    assert found.successes.all()
    assert set(found.components) == {"reward_way", "reward_goal"}
    np.testing.assert_array_equal(found.components["reward_way"], -(seeds + 1.0))
    assert Door.open == 0


def test_a_policys_memory_stays_with_its_episode() -> None:
    found = evaluate(Counts(), Door, 12, 5)
    seeds = np.random.default_rng(5).integers(2**31 - 1, size=12) % 10
    np.testing.assert_array_equal(found.lengths, np.minimum(seeds + 1, 3))
    assert found.successes is not None
    np.testing.assert_array_equal(found.successes, seeds >= 2)


def test_as_a_point_of_a_curve() -> None:
    found = Performance(
        np.array([1.0, 3.0]), np.array([5, 7]), np.array([True, False]), {"reward_way": np.array([1.0, 2])}
    )
    point = found.point(100)
    assert (point.steps, point.episodes, point.mean, point.deviation) == (100, 2, 2.0, 1.0)
    assert (point.success, point.length, point.components) == (0.5, 6.0, {"reward_way": 1.5})
    assert Performance(np.ones(1), np.ones(1, np.int64)).point(0).success is None


def test_looking_leaves_no_trace_and_the_same_seed_sees_the_same() -> None:
    asked = problem(1)
    venv_policy = asked.make_learner(_vectorised(asked), 0).policy
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    before = {name: value.clone() for name, value in venv_policy.state_dict().items()}
    first = evaluate(venv_policy, asked.make_env, 5, 3)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(value, before[name]) for name, value in venv_policy.state_dict().items())
    again, other = (evaluate(venv_policy, asked.make_env, 5, seed) for seed in (3, 4))
    np.testing.assert_array_equal(first.returns, again.returns)
    assert not np.array_equal(first.returns, other.returns)
    assert first.successes is None


def test_absorbed_steps_are_not_the_policys() -> None:
    asked = problem(1, horizon=200)
    policy = asked.make_learner(_vectorised(asked), 0).policy
    found = evaluate(policy, asked.make_env, 5, 3)
    assert (found.lengths < 200).all()
    np.testing.assert_array_equal(found.returns, found.lengths)


def test_at_least_one_episode() -> None:
    with pytest.raises(InputError, match="0 evaluation episodes; expected at least 1"):
        evaluate(Waits(), Door, 0, 0)


def _vectorised(asked: Any) -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([asked.make_env] * asked.num_envs)


def test_success_is_the_last_that_the_environment_says_under_either_name() -> None:
    """Goal environments of Gymnasium-Robotics say it at every step: "is_success" of Fetch, "success" of mazes."""
    for infos, expected in (
        (({"is_success": 0.0}, {"is_success": 1.0}), True),
        (({"success": True}, {"success": False}), False),
        (({}, {"is_success": False, "success": True}), False),
        (({}, {}), None),
    ):
        sums = EpisodeSums()
        for info in infos:
            sums.add(0.0, info)
        assert sums.success is expected


def test_a_score_sees_whole_episodes_and_changes_none() -> None:
    class Pushes(Waits):
        """Pushes the cart under the pole."""

        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
        ) -> Any:
            return (observation[:, 2] + observation[:, 3] > 0).astype(int), None

    seen: list[Rollout] = []

    def score(episode: Rollout) -> float:
        seen.append(episode)
        return float(episode.trajectory.actions.sum())  # type: ignore[union-attr]

    found = evaluate(Pushes(), lambda: observed(make), 5, 3, at_once=2, score=score)
    plain = evaluate(Pushes(), lambda: observed(make), 5, 3, at_once=2)
    assert (found.returns.tolist(), found.lengths.tolist()) == (plain.returns.tolist(), plain.lengths.tolist())
    assert plain.scores is None
    assert found.point(0).score == np.mean([score(each) for each in seen[:5]])
    assert sorted(each.length for each in seen[:5]) == sorted(found.lengths.tolist())
    for each in seen[:5]:
        states, actions = each.trajectory.states, each.trajectory.actions
        assert actions is not None
        assert ((states[:-1, 2] + states[:-1, 3] > 0) == actions).all()
        assert each.trajectory.terminated == (each.length < 500)
        assert each.total == each.length
    totals = evaluate(Waits(), lambda: observed(make), 5, 3, score=lambda episode: episode.total)
    assert totals.scores is not None
    assert totals.scores.tolist() == totals.returns.tolist() != sorted(totals.returns)


def test_parts_of_a_reward_are_single_numbers() -> None:
    sums = EpisodeSums()
    for value in (1.5, np.float32(0.5), np.array(2.0), True):
        sums.add(
            0.0, {"reward_near": value, "reward_info": {"a": 1}, "reward_type": "sparse", "reward_all": np.ones(2)}
        )
    assert sums.components == {"reward_near": 5.0}


def test_a_part_of_a_reward_that_is_no_finite_number_is_left_out() -> None:
    episodes = [EpisodeSums(), EpisodeSums()]
    for each, ratio in zip(episodes, (1.0, float("nan")), strict=True):
        each.add(1.0, {"reward_near": 2.0, "reward_ratio": ratio})
        each.add(1.0, {"reward_near": 2.0, "reward_ratio": 1.0})
    point = Performance.of(episodes).point(2)
    assert (point.mean, point.components) == (2.0, {"reward_near": 4.0})
