"""Sub-environments start again by themselves: which object rewards which state, and what is told of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

import grace_irl
from grace_irl.errors import InputError
from grace_irl.rewards.runner import InProcessRunner
from grace_irl.rewards.sb3 import RewardVecEnv
from grace_irl.rewards.scale import SOFTNESS, Scale
from tests.rewards.recorders import EPISODE, STEPS, TRANSITION, Numbered

LENGTHS = ((3, 1, 5), (2, 2, 2), (4, 1, 1))
BOTH = pytest.mark.parametrize("trust", [True, False], ids=["trusted", "sandboxed"])


def numbered(*, truncated: bool = False) -> DummyVecEnv:
    makes: list[Callable[[], Any]] = [
        lambda number=number, lengths=lengths: Numbered(number, lengths, truncated=truncated)
        for number, lengths in enumerate(LENGTHS)
    ]
    return DummyVecEnv(makes)


def wrapped(tmp_path: Path, source: str, *, trust: bool, truncated: bool = False) -> RewardVecEnv:
    path = tmp_path / "reward.py"
    path.write_text(source)
    return grace_irl.load_reward(path, trust=trust).wrap_vec(numbered(truncated=truncated))


def expected(lengths: tuple[int, ...], steps: int) -> list[tuple[int, int]]:
    """(episode, step) that each of `steps` steps reaches."""
    reached, episode, step = [], 0, 0
    for _ in range(steps):
        step += 1
        reached.append((episode, step))
        if step == lengths[episode % len(lengths)]:
            episode, step = episode + 1, 0
    return reached


@BOTH
def test_each_episode_has_an_object_of_its_own_in_every_sub_environment(tmp_path: Path, trust: bool) -> None:
    venv = wrapped(tmp_path, STEPS, trust=trust)
    venv.reset()
    for at in range(20):
        actions: Any = [0, 0, 0] if at % 2 else np.zeros(3, np.int64)
        _, rewards, _, infos = venv.step(actions)
        for number, lengths in enumerate(LENGTHS):
            episode, step = expected(lengths, at + 1)[-1]
            assert rewards[number] == 1000 * (episode % 2) + step  # the instruction of every second one has a letter
            assert infos[number]["reward_terms"] == {"steps": step, "episode": 100 * number + episode}
            assert infos[number]["original_reward"] == 0.5
    venv.close()


@BOTH
def test_the_terminal_state_is_rewarded_by_the_old_episode(tmp_path: Path, trust: bool) -> None:
    venv = wrapped(tmp_path, EPISODE, trust=trust)
    observations = venv.reset()
    for at in range(20):
        observations, rewards, dones, infos = venv.step(np.zeros(3, np.int64))
        for number, lengths in enumerate(LENGTHS):
            episode, step = expected(lengths, at + 1)[-1]
            assert rewards[number] == pytest.approx(100 * number + episode + step / 100)
            assert dones[number] == (step == lengths[episode % 3])
            if dones[number]:
                assert infos[number]["terminal_observation"].tolist() == [100 * number + episode, step]
                assert observations[number].tolist() == [100 * number + episode + 1, 0]
    venv.close()


@BOTH
def test_transitions_never_cross_episodes(tmp_path: Path, trust: bool) -> None:
    venv = wrapped(tmp_path, TRANSITION, trust=trust)
    venv.reset()
    for at in range(15):
        _, rewards, _, _ = venv.step(np.array([at % 4, 1, 3]))
        np.testing.assert_array_equal(rewards, 1 + 10 * np.array([at % 4, 1, 3]))
    venv.close()


@pytest.mark.parametrize("truncated", [True, False])
def test_what_ended_an_episode_stays_told(tmp_path: Path, truncated: bool) -> None:
    venv = wrapped(tmp_path, EPISODE, trust=True, truncated=truncated)
    venv.reset()
    ended = 0
    for _ in range(20):
        _, _, dones, infos = venv.step(np.zeros(3, np.int64))
        for done, info in zip(dones, infos, strict=True):
            assert info["TimeLimit.truncated"] == (done and truncated)
            ended += done
    assert ended > 15


def test_a_reset_in_mid_episode_starts_new_objects_everywhere(tmp_path: Path) -> None:
    venv = wrapped(tmp_path, STEPS, trust=True)
    for _ in range(3):
        venv.reset()
        _, rewards, _, _ = venv.step(np.zeros(3, np.int64))
        assert (rewards % 1000).tolist() == [1, 1, 1]


@pytest.mark.slow
def test_sub_environments_in_processes_of_their_own_are_told_apart_too(tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(STEPS)
    makes: list[Callable[[], Any]] = [functools.partial(Numbered, n, lengths) for n, lengths in enumerate(LENGTHS)]
    venv = grace_irl.load_reward(tmp_path / "reward.py").wrap_vec(SubprocVecEnv(makes, start_method="spawn"))
    venv.reset()
    for at in range(8):
        _, rewards, _, _ = venv.step(np.zeros(3, np.int64))
        ends = [expected(lengths, at + 1)[-1] for lengths in LENGTHS]
        assert rewards.tolist() == [1000 * (episode % 2) + step for episode, step in ends]
    venv.close()


def test_rewards_come_in_the_form_that_was_chosen() -> None:
    forms = {
        "logit": lambda r: 2 * r - 1,
        "probability": lambda r: 1 / (1 + np.exp(1 - 2 * r)),
        "soft": lambda r: 1 / (1 + np.exp((1 - 2 * r) / SOFTNESS)),
    }
    for form, give in forms.items():
        venv = RewardVecEnv(numbered(), InProcessRunner(EPISODE, "reward.py"), Scale(form, 2.0, -1.0))  # type: ignore[arg-type]
        venv.reset()
        _, rewards, _, _ = venv.step(np.zeros(3, np.int64))
        np.testing.assert_allclose(rewards, give(np.array([0.01, 100.01, 200.01])), rtol=1e-6)
    with pytest.raises(InputError, match="expected one of auto, raw, guided, logit, probability, soft, progress"):
        Scale("log")  # type: ignore[arg-type]


def test_a_mission_that_is_none_is_an_empty_instruction() -> None:
    class Silent(Numbered):
        mission = None

        def reset(self, **words: Any) -> tuple[Any, dict[str, Any]]:
            return super().reset(**words)[0], {}

    venv = RewardVecEnv(DummyVecEnv([lambda: Silent(0)]), InProcessRunner(STEPS, "reward.py"))
    venv.reset()
    assert venv.step(np.zeros(1, np.int64))[1].tolist() == [1.0]


def test_normalised_observations_are_refused() -> None:
    scorer = InProcessRunner(EPISODE, "reward.py")
    with pytest.raises(InputError, match="wrap with the reward first"):
        RewardVecEnv(VecNormalize(numbered()), scorer)
    RewardVecEnv(VecNormalize(numbered(), norm_obs=False), scorer)
    VecNormalize(RewardVecEnv(numbered(), scorer)).reset()
