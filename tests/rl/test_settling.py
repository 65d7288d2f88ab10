"""Rewards that are paid at the end of a rollout: training is the same, bit for bit, as with a reward in each step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import grace_irl
import grace_irl.rl.learning
import grace_irl.rl.ppo
from grace_irl.rewards.runner import InProcessRunner
from grace_irl.rewards.sb3 import RewardVecEnv
from grace_irl.rewards.scale import Form, Scale
from grace_irl.rl.hyperparameters import Hyperparameters
from grace_irl.rl.learning import ProgramPay
from grace_irl.rl.ppo import Training, train
from grace_irl.rl.settling import settling
from grace_irl.rl.views import SpaceView
from grace_irl.sandbox.session import RewardSession, TurnRewards
from grace_irl.states.vector import VECTOR

SHORT = Hyperparameters("test", n_envs=3, n_steps=16, batch_size=16, n_epochs=2, net_arch=(8,))

PROGRAM = """
import random

class Reward:
    def __init__(self, extra_info=None):
        self.seen = 0

    def reward_fn(self, state):
        self.seen += 1
        return float(state[0]) * self.seen + 0.01 * random.random()

    def terms_fn(self, state):
        return {"seen": self.seen, "first": float(state[0])}


SCALE = 1.0
OFFSET = 0.0
THRESHOLD = 0.5
"""


class Walk(gymnasium.Env[Any, Any]):
    """A walk on a line, whose episodes end by termination at 1, or by a time limit after 7 steps."""

    observation_space = Box(-9, 9, (2,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._steps = np.zeros(2), 0
        return self._place.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        self._place[0] += self.np_random.normal(0.3 * (2 * int(action) - 1), 0.3)
        self._place[1] = self._steps
        return self._place.copy(), 0.5, bool(self._place[0] > 1), self._steps == 7, {}


def walk() -> tuple[Any, Any]:
    environment = Walk()
    return environment, SpaceView("", environment.observation_space, VECTOR)


def trained(path: Path, *, trust: bool, normalise: bool, form: Form) -> Training:
    reward = ProgramPay(grace_irl.load_reward(path, trust=trust), form=form, terms=True)
    settings = SHORT.__class__(**{**vars(SHORT), "norm_reward": normalise})
    return train(walk, 200, reward=reward, settings=settings, evaluations=2, episodes=1, seed=3)


@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize(("normalise", "form"), [(False, "raw"), (True, "raw"), (True, "progress"), (True, "guided")])
def test_training_is_the_same_as_with_a_reward_in_each_step(
    trust: bool, normalise: bool, form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reward.py"
    path.write_text(PROGRAM)
    late = trained(path, trust=trust, normalise=normalise, form=form)
    used = []

    def each_step(*_: Any) -> None:
        used.append(True)

    monkeypatch.setattr(grace_irl.rl.ppo, "settling", each_step)
    at_once = trained(path, trust=trust, normalise=normalise, form=form)
    assert used
    assert [each.paid for each in late.curve] == [each.paid for each in at_once.curve]
    assert late.curve[0].terms["seen"] > 1
    for one, other in zip(*(each.policy.network.state_dict().values() for each in (late, at_once)), strict=True):
        assert torch.equal(one, other)


def test_a_step_without_a_component_counts_in_its_mean(tmp_path: Path) -> None:
    """The component stands at the first of up to 7 steps of an episode, and the others have none at all."""
    path = tmp_path / "reward.py"
    path.write_text(PROGRAM.replace('return {"seen"', 'return {} if self.seen > 2 else {"one": 1.0, "seen"'))
    (point, *_) = trained(path, trust=True, normalise=False, form="raw").curve
    assert 1 / 7 <= point.terms["one"] < 0.5


def test_a_training_waits_for_the_sandbox_once_a_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps of a rollout are posted, and one call returns their rewards."""
    path = tmp_path / "reward.py"
    path.write_text(PROGRAM)
    waits: list[int] = []
    settle = RewardSession.settle

    def counted(self: RewardSession) -> list[TurnRewards]:
        found = settle(self)
        waits.append(sum(len(turn.rewards) for turn in found))
        return found

    monkeypatch.setattr(RewardSession, "settle", counted)
    trained(path, trust=False, normalise=True, form="raw")
    steps = SHORT.n_envs * SHORT.n_steps
    assert [wait for wait in waits if wait] == [steps] * -(-200 // steps)


class KilledError(Exception):
    """The end of a process that dies after the first part of a training."""


@pytest.mark.parametrize("trust", [True, False])
def test_a_resumed_training_gives_what_an_uninterrupted_one_gives(trust: bool, tmp_path: Path) -> None:
    """The statistics that normalise the rewards are those of the rewards that were settled."""
    path = tmp_path / "reward.py"
    path.write_text(PROGRAM)
    settings = SHORT.__class__(**{**vars(SHORT), "norm_reward": True})
    options: dict[str, Any] = {"settings": settings, "evaluations": 2, "episodes": 1, "seed": 3}

    def part(out: str, progress: Any = None) -> Training:
        reward = ProgramPay(grace_irl.load_reward(path, trust=trust), form="progress", terms=True)
        return train(walk, 200, reward=reward, out=tmp_path / out, progress=progress, **options)

    def dies(_: Any) -> None:
        raise KilledError

    whole = part("whole")
    with pytest.raises(KilledError):
        part("resumed", dies)
    resumed = part("resumed")
    assert len(resumed.curve) == 2
    assert [(each.paid, each.terms) for each in resumed.curve] == [(each.paid, each.terms) for each in whole.curve]
    for one, other in zip(*(each.policy.network.state_dict().values() for each in (resumed, whole)), strict=True):
        assert torch.equal(one, other)


def rewarded(normalise: bool = False) -> tuple[RewardVecEnv, Any]:
    venv = RewardVecEnv(DummyVecEnv([Walk, Walk]), InProcessRunner(PROGRAM, "program"), Scale())
    return venv, VecNormalize(venv, norm_obs=False) if normalise else venv


def test_steps_after_a_reset_are_settled_without_those_before() -> None:
    venv, _ = rewarded()
    venv.defer()
    venv.reset()
    assert venv.step(np.zeros(2, int))[1].tolist() == [0, 0]
    venv.reset()
    venv.step(np.zeros(2, int))
    venv.step(np.zeros(2, int))
    assert venv.settle().rewards.shape == (2, 2)
    assert venv.settle().rewards.shape == (0, 2)


def test_only_learners_that_wait_for_the_end_of_a_rollout_are_paid_then() -> None:
    venv, scaled = rewarded(normalise=True)
    assert settling(PPO("MlpPolicy", scaled, n_steps=8, batch_size=8), venv, scaled) is not None
    venv.reset()
    assert venv.step(np.zeros(2, int))[1].tolist() == [0, 0]
    assert not scaled.training
    venv, scaled = rewarded(normalise=True)
    assert settling(DQN("MlpPolicy", scaled), venv, scaled) is None
    assert scaled.training
    native: Any = DummyVecEnv([Walk, Walk])
    assert settling(PPO("MlpPolicy", native, n_steps=8, batch_size=8), native, native) is None
