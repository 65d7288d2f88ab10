"""Records and images in every wrapper, one `Reward` object for each episode."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage

import grace_irl
from grace_irl.errors import InputError
from grace_irl.rewards.file import RewardFile
from tests.rewards.recorders import Numbered

LENGTHS = ((3, 1, 5), (2, 2, 2))
PROGRAM = """
class Reward:
    def reward_fn(self, state):
        at, phase = state["at"], state["phase"]
        self.first = getattr(self, "first", float(at[0]))
        assert at.dtype.name == "float64" and int(phase) == int(at[1]) % 2
        return 10000.0 * float(self.first != at[0]) + float(at[0]) + float(at[1]) / 100
"""
"""Rewards a state with its episode's number and its time; 10000 more for a state of another episode."""
TRUST = pytest.mark.parametrize("trust", [True, False], ids=["trusted", "sandboxed"])


class NumberedRecords(Numbered):
    """`Numbered` with records."""

    def __init__(self, number: int, lengths: tuple[int, ...] = (3, 1, 5)) -> None:
        super().__init__(number, lengths)
        self.observation_space = Dict({"at": Box(-1, 1e6, (2,), np.float64), "phase": Discrete(2)})  # type: ignore[assignment]

    def _state(self) -> Any:
        return {"at": super()._state(), "phase": np.int64(self._step % 2)}


class NumberedImages(Numbered):
    """`Numbered` as pictures: the episode and the time are values of pixels."""

    def __init__(self, number: int, lengths: tuple[int, ...] = (3, 1, 5)) -> None:
        super().__init__(number, lengths)
        self.observation_space = Box(0, 255, (36, 40, 3), np.uint8)

    def _state(self) -> Any:
        image = np.zeros((36, 40, 3), np.uint8)
        image[0, 1], image[2, 3] = super()._state()
        return image


IMAGES = """
class Reward:
    def reward_fn(self, state):
        at = [float(state[0, 1, 0]), float(state[2, 3, 2])]
        self.first = getattr(self, "first", at[0])
        assert state.shape == (36, 40, 3) and state.dtype.name == "int64"
        return 10000.0 * float(self.first != at[0]) + at[0] + at[1] / 100
"""
FORM: dict[str, tuple[Any, str]] = {"records": (NumberedRecords, PROGRAM), "images": (NumberedImages, IMAGES)}


@pytest.fixture(params=FORM)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def makes(form: str) -> list[Any]:
    return [functools.partial(FORM[form][0], number, lengths) for number, lengths in enumerate(LENGTHS)]


def reward_file(tmp_path: Path, form: str, trust: bool) -> RewardFile:
    (tmp_path / "reward.py").write_text(FORM[form][1])
    return grace_irl.load_reward(tmp_path / "reward.py", trust=trust)


def expected(number: int, steps: int) -> list[float]:
    """What each of `steps` steps pays."""
    paid: list[float] = []
    for episode in range(steps):
        length = LENGTHS[number][episode % 3]
        paid += [100 * number + episode + (step + 1) / 100 for step in range(length)]
    return paid[:steps]


@TRUST
def test_a_single_environment(tmp_path: Path, form: str, trust: bool) -> None:
    environment = reward_file(tmp_path, form, trust).wrap(makes(form)[1]())
    found: list[float] = []
    while len(found) < 6:
        environment.reset()
        over = False
        while not over:
            _, paid, over, _, _ = environment.step(0)
            found.append(float(paid))
    environment.close()
    assert found == pytest.approx(expected(1, 6))


@TRUST
def test_vector_environments_of_stable_baselines(tmp_path: Path, form: str, trust: bool) -> None:
    venv = reward_file(tmp_path, form, trust).wrap_vec(DummyVecEnv(makes(form)))
    venv.reset()
    found = np.array([venv.step(np.zeros(2, np.int64))[1] for _ in range(12)]).T
    venv.close()
    for number, paid in enumerate(found):
        assert paid == pytest.approx(expected(number, 12))


@TRUST
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.name)
def test_vector_environments_of_gymnasium(tmp_path: Path, form: str, trust: bool, mode: AutoresetMode) -> None:
    venv = reward_file(tmp_path, form, trust).wrap_vec(SyncVectorEnv(makes(form), autoreset_mode=mode))
    venv.reset()
    found: list[list[float]] = [[], []]
    again = np.zeros(2, bool)
    for _ in range(14):
        _, paid, over, _, _ = venv.step(np.zeros(2, np.int64))
        for slot in range(2):
            if not again[slot]:
                found[slot].append(float(paid[slot]))
        again = over if mode is AutoresetMode.NEXT_STEP else np.zeros(2, bool)
    venv.close()
    for number, steps in enumerate(found):
        assert steps == pytest.approx(expected(number, len(steps)))


@TRUST
def test_the_reward_function_of_imitation(tmp_path: Path, form: str, trust: bool) -> None:
    wrapper = pytest.importorskip("imitation.rewards.reward_wrapper").RewardVecEnvWrapper
    venv = wrapper(DummyVecEnv(makes(form)), reward_file(tmp_path, form, trust).imitation_reward())
    found = np.array([venv.step(np.zeros(2, np.int64))[1] for _ in range(12)]).T
    for number, paid in enumerate(found):
        assert paid == pytest.approx(expected(number, 12))
    venv.reward_fn.close()


@pytest.mark.parametrize(("form", "policy"), [("records", "MultiInputPolicy"), ("images", "CnnPolicy")])
def test_policies_of_stable_baselines_learn_on_it(tmp_path: Path, form: str, policy: str) -> None:
    venv = reward_file(tmp_path, form, False).wrap_vec(DummyVecEnv(makes(form)))
    PPO(policy, venv, n_steps=8, batch_size=16, n_epochs=1, device="cpu").learn(16)
    venv.close()


def test_images_that_are_turned_underneath_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="VecTransposeImage under the recovered reward; expected images as"):
        reward_file(tmp_path, "images", True).wrap_vec(VecTransposeImage(DummyVecEnv(makes("images"))))
