"""The form `guided` in every wrapper: potentials of one episode never reach the next one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv

import grace_irl
from grace_irl.programs.export import export_source
from grace_irl.rewards.file import RewardFile
from grace_irl.rl.learning import ProgramPay
from tests.rewards.recorders import EPISODE, TRANSITION, Numbered

STEPS, SLOTS, GAMMA, THRESHOLD = 14, 3, 0.9, 100.5
"""The first environment's states and some of the second's lie between 0 and the threshold, the third's above it."""
Stepped = tuple[np.ndarray, np.ndarray]
"""Rewards and ends of episodes, `(STEPS, SLOTS)` each."""


def makes() -> list[Callable[[], Any]]:
    return [functools.partial(Numbered, number) for number in range(SLOTS)]


def single(reward: RewardFile, form: Any) -> Stepped:
    found: Any = [[], []]
    for make in makes():
        environment = reward.wrap(make(), scale=form, gamma=GAMMA)
        environment.reset()
        for each in found:
            each.append([])
        for _ in range(STEPS):
            _, paid, over, _, _ = environment.step(0)
            found[0][-1].append(paid)
            found[1][-1].append(over)
            if over:
                environment.reset()
        environment.close()
    return np.array(found[0]).T, np.array(found[1]).T


def of_stable_baselines(reward: RewardFile, form: Any) -> Stepped:
    venv = reward.wrap_vec(DummyVecEnv(makes()), scale=form, gamma=GAMMA)
    venv.reset()
    stepped = [venv.step(np.zeros(SLOTS, np.int64)) for _ in range(STEPS)]
    venv.close()
    return np.array([each[1] for each in stepped]), np.array([each[2] for each in stepped])


def of_gymnasium(mode: AutoresetMode, reward: RewardFile, form: Any) -> Stepped:
    venv = reward.wrap_vec(SyncVectorEnv(makes(), autoreset_mode=mode), scale=form, gamma=GAMMA)
    venv.reset()
    found: Any = [[], []]
    for _ in range(STEPS):
        _, paid, over, _, _ = venv.step(np.zeros(SLOTS, np.int64))
        found[0].append(paid)
        found[1].append(over)
        if mode is AutoresetMode.DISABLED and over.any():
            venv.reset(options={"reset_mask": over})
    venv.close()
    return np.array(found[0]), np.array(found[1])


def of_imitation(reward: RewardFile, form: Any) -> Stepped:
    wrapper = pytest.importorskip("imitation.rewards.reward_wrapper").RewardVecEnvWrapper
    venv = wrapper(DummyVecEnv(makes()), reward.imitation_reward(scale=form, gamma=GAMMA))
    venv.reset()
    stepped = [venv.step(np.zeros(SLOTS, np.int64)) for _ in range(STEPS)]
    venv.reward_fn.close()
    return np.array([each[1] for each in stepped]), np.array([each[2] for each in stepped])


WRAPPERS = {
    "single": single,
    "stable_baselines": of_stable_baselines,
    **{mode.name: functools.partial(of_gymnasium, mode) for mode in AutoresetMode},
    "imitation": of_imitation,
}


def exported(tmp_path: Path, source: str, trust: bool = True) -> RewardFile:
    facts = [("label", "last (which expert states are positive)")]
    text = export_source(source, title="Counts.", facts=facts, scale=1.0, threshold=THRESHOLD)
    (path := tmp_path / "reward.py").write_text(text)
    return grace_irl.load_reward(path, trust=trust)


@pytest.mark.parametrize("trust", [True, False], ids=["trusted", "sandboxed"])
@pytest.mark.parametrize("source", [EPISODE, TRANSITION], ids=["of a state", "of a transition"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_guided_is_the_default_of_a_goal_and_knows_episodes(
    wrapper: str, source: str, trust: bool, tmp_path: Path
) -> None:
    reward = exported(tmp_path, source, trust)
    raw, over = WRAPPERS[wrapper](reward, "raw")
    guided, _ = WRAPPERS[wrapper](reward, "auto")
    between = (raw > 0) & (raw <= THRESHOLD)
    assert between.any()
    assert over.any()
    before, expected = np.zeros(SLOTS), []
    for rewards, inside, ended in zip(raw, between, over, strict=True):
        potential = np.where(inside, rewards, 0.0)
        expected.append(rewards - potential + GAMMA * potential - before)
        before = np.where(ended, 0.0, potential)
    np.testing.assert_allclose(guided, expected, rtol=1e-5, atol=1e-4)


def test_a_training_takes_the_discount_of_its_learner(tmp_path: Path) -> None:
    reward = exported(tmp_path, EPISODE)
    for gamma in (0.5, 1.0):
        venv = ProgramPay(reward)(DummyVecEnv(makes()), gamma)
        venv.reset()
        paid = [venv.step(np.zeros(SLOTS, np.int64))[1][0] for _ in range(2)]
        np.testing.assert_allclose(paid, [0.01 * gamma, 0.02 * gamma - 0.01], rtol=1e-5)
        venv.close()
