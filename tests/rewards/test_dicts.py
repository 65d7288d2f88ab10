"""Observations of a `Dict` space in every wrapper: records, one `Reward` object for each episode."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv

import grace_irl
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


def makes() -> list[Any]:
    return [functools.partial(NumberedRecords, number, lengths) for number, lengths in enumerate(LENGTHS)]


def reward_file(tmp_path: Path, trust: bool) -> RewardFile:
    (tmp_path / "reward.py").write_text(PROGRAM)
    return grace_irl.load_reward(tmp_path / "reward.py", trust=trust)


def expected(number: int, steps: int) -> list[float]:
    """What each of `steps` steps pays."""
    paid: list[float] = []
    for episode in range(steps):
        length = LENGTHS[number][episode % 3]
        paid += [100 * number + episode + (step + 1) / 100 for step in range(length)]
    return paid[:steps]


@TRUST
def test_a_single_environment(tmp_path: Path, trust: bool) -> None:
    environment = reward_file(tmp_path, trust).wrap(makes()[1]())
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
def test_vector_environments_of_stable_baselines(tmp_path: Path, trust: bool) -> None:
    venv = reward_file(tmp_path, trust).wrap_vec(DummyVecEnv(makes()))
    venv.reset()
    found = np.array([venv.step(np.zeros(2, np.int64))[1] for _ in range(12)]).T
    venv.close()
    for number, paid in enumerate(found):
        assert paid == pytest.approx(expected(number, 12))


@TRUST
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=lambda mode: mode.name)
def test_vector_environments_of_gymnasium(tmp_path: Path, trust: bool, mode: AutoresetMode) -> None:
    venv = reward_file(tmp_path, trust).wrap_vec(SyncVectorEnv(makes(), autoreset_mode=mode))
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
def test_the_reward_function_of_imitation(tmp_path: Path, trust: bool) -> None:
    wrapper = pytest.importorskip("imitation.rewards.reward_wrapper").RewardVecEnvWrapper
    venv = wrapper(DummyVecEnv(makes()), reward_file(tmp_path, trust).imitation_reward())
    found = np.array([venv.step(np.zeros(2, np.int64))[1] for _ in range(12)]).T
    for number, paid in enumerate(found):
        assert paid == pytest.approx(expected(number, 12))
    venv.reward_fn.close()
