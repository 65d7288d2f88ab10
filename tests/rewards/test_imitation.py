"""The reward function of `imitation`: what it knows of episodes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv

import grace_irl
from tests.rewards.recorders import EPISODE, STEPS, TRANSITION, Numbered


def function(tmp_path: Path, source: str, *, trust: bool = True, extra_info: str = ""):  # type: ignore[no-untyped-def]
    path = tmp_path / "reward.py"
    path.write_text(source)
    return grace_irl.load_reward(path, trust=trust).imitation_reward(extra_info)


def states(*pairs: tuple[int, int]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(pairs, np.float64)


@pytest.mark.parametrize("trust", [True, False])
def test_rows_are_episodes_until_done(tmp_path: Path, trust: bool) -> None:
    reward = function(tmp_path, STEPS, trust=trust, extra_info="x")
    none, act = np.zeros(2, bool), np.zeros(2)
    assert reward(states((0, 0), (9, 4)), act, states((0, 1), (9, 5)), none).tolist() == [1001, 1001]
    done = np.array([True, False])
    assert reward(states((0, 1), (9, 5)), act, states((0, 2), (9, 6)), done).tolist() == [1002, 1002]
    assert reward(states((1, 0), (9, 6)), act, states((1, 1), (9, 7)), none).tolist() == [1001, 1003]
    reward.close()


def test_a_row_that_does_not_go_on_starts_an_episode(tmp_path: Path) -> None:
    reward = function(tmp_path, STEPS)
    none, act = np.zeros(2, bool), np.zeros(2)
    reward(states((0, 0), (9, 0)), act, states((0, 1), (9, 1)), none)
    assert reward(states((9, 1), (0, 1)), act, states((9, 2), (0, 2)), none).tolist() == [1, 1]
    assert reward(states((9, 2)), act[:1], states((9, 3)), none[:1]).tolist() == [2]  # a smaller batch goes on
    assert reward(states((9, 3), (0, 2)), act, states((9, 4), (0, 3)), none).tolist() == [3, 1]


def test_rewards_are_one_per_row_in_single_precision(tmp_path: Path) -> None:
    reward = function(tmp_path, TRANSITION)
    found = reward(states((0, 0), (0, 3)), np.array([1, 2]), states((0, 1), (1, 5)), np.zeros(2, bool))
    assert found.dtype == np.float32
    assert found.tolist() == [11, 122]


@pytest.mark.skipif(importlib.util.find_spec("imitation") is None, reason="imitation is not installed")
def test_the_library_trains_on_it(tmp_path: Path) -> None:
    from imitation.rewards.reward_wrapper import RewardVecEnvWrapper

    reward = function(tmp_path, EPISODE)
    venv = RewardVecEnvWrapper(DummyVecEnv([lambda: Numbered(0), lambda: Numbered(1)]), reward)
    venv.reset()
    for _ in range(12):
        before = venv._old_obs.copy()
        _, rewards, _, infos = venv.step(np.zeros(2, np.int64))
        assert rewards == pytest.approx(before[:, 0] + (before[:, 1] + 1) / 100)
        assert [info["original_env_rew"] for info in infos] == [0.5, 0.5]
