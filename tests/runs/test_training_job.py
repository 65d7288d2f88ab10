"""Trainings of an expansion, which go through an executor: what they give and refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
import torch

import grace_irl
from grace_irl.errors import GraceError, InputError
from grace_irl.rl.environments import make, register, registration
from grace_irl.rl.learning import ProgramPay
from grace_irl.rl.ppo import train
from grace_irl.rl.trained import load_policy
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.learner import EPISODES, EVALUATIONS, PpoLearner
from tests.rl.cart_pole import experts

REWARD = "class Reward:\n    def reward_fn(self, state):\n        return 1.0 - abs(float(state[2]))\n"
STEPS = 2048


def learner(notes: list[str], **flags: object) -> PpoLearner:
    found = PpoLearner(resolve(flags={"expand.form": "raw", **flags}).expand, note=notes.append)
    found.check(experts(1))
    return found


@pytest.mark.slow
def test_a_training_in_a_process_of_its_own_gives_the_policy_that_one_here_gives(tmp_path: Path) -> None:
    path, folder, notes = tmp_path / "reward.py", tmp_path / "1" / "training", list[str]()
    path.write_text(REWARD)
    there = learner(notes, **{"expand.trust": True}).train(path, STEPS, 3, folder, None)
    here = train(
        lambda: make("CartPole-v1"),
        STEPS,
        reward=ProgramPay(grace_irl.load_reward(path, trust=True)),
        seed=3,
        evaluations=EVALUATIONS,
        episodes=EPISODES,
    )
    weights = load_policy(there.policy).network.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in here.policy.network.state_dict().items())
    assert (there.steps, there.paid) == (here.steps, tuple(each.paid for each in here.curve))
    assert notes == [f"round 1: {each.steps} steps, true return {each.mean:.4g}" for each in here.curve]


def test_a_reward_that_fails_ends_the_training_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(REWARD.replace("1.0 -", "1 / 0 -"))
    with pytest.raises(GraceError, match=r"^[^\n]*reward\.py: runtime: [^\n]*$"):
        learner([], **{"expand.trust": True}).train(path, STEPS, 3, tmp_path / "1" / "training", None)


def test_a_training_is_on_the_device_of_its_learner(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(REWARD)
    learner = PpoLearner(resolve().expand, note=lambda _: None, device="nowhere")
    learner.check(experts(1))
    with pytest.raises(GraceError, match=r"device.*: nowhere"):
        learner.train(path, STEPS, 3, tmp_path / "1" / "training", None)


def test_environments_that_the_user_registered_are_known_to_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium, "registry", dict(gymnasium.registry))
    monkeypatch.setattr("gymnasium.envs.registration.registry", gymnasium.registry)
    known, again = gymnasium.spec("CartPole-v1"), registration("CartPole-v1")
    assert again is not None
    register(again)
    assert gymnasium.spec("CartPole-v1") is known
    assert registration("file.py:make") is None
    gymnasium.register("Own-v0", entry_point="tests.rl.cart_pole:Own", max_episode_steps=7)
    text = registration("Own-v0")
    assert text is not None
    del gymnasium.registry["Own-v0"]
    register(text)
    assert gymnasium.spec("Own-v0").max_episode_steps == 7
    gymnasium.register("Short-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=7)
    assert '"max_episode_steps": 7' in (registration("Short-v0") or "")
    gymnasium.register("Odd-v0", entry_point="tests.rl.cart_pole:Own", kwargs={"table": {1.0}})
    with pytest.raises(InputError, match=r"the arguments {'table': {1\.0}}; expected arguments that are JSON"):
        registration("Odd-v0")
    gymnasium.register("Made-v0", entry_point=lambda: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="a function of this process; expected an entry point"):
        registration("Made-v0")
