"""`grace_irl.load_reward`."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.programs.export import export_source
from tests.fakes.data import vector_set

PROGRAM = """from dataclasses import dataclass


@dataclass
class Reward:
    extra_info: str | None = None
    seen: int = 0

    def reward_fn(self, state):
        self.seen += 1
        return float(state[0]) + self.seen
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "reward.py"
    path.write_text(export_source(PROGRAM, title="Counts.", facts=(), scale=3.0, offset=-1.0))
    return path


def test_a_trusted_file_gives_one_object_per_trajectory(file: Path) -> None:
    reward = grace_irl.load_reward(file, trust=True)
    first, second = reward("go"), reward()
    assert [first.reward_fn([1.0]), first.reward_fn([1.0]), second.reward_fn([1.0])] == [2.0, 3.0, 2.0]
    assert first.extra_info == "go"
    assert reward.discriminator_logit(2.0) == 5.0
    assert reward.discriminator_logit(np.array([0.0, 1.0]), log_pi=1.0).tolist() == [-2.0, 1.0]


def test_a_file_that_is_not_trusted_runs_only_in_the_sandbox(file: Path) -> None:
    reward = grace_irl.load_reward(file)
    with pytest.raises(grace_irl.InputError, match="not trusted"):
        reward("go")
    trajectories = [item.trajectory for item in vector_set(2, 1, 5)]
    for trajectory, values in zip(trajectories, reward.rewards(trajectories), strict=True):
        assert values == pytest.approx(trajectory.states[:, 0] + np.arange(1, 6))


def test_a_program_gets_the_same_types_online_as_in_the_sandbox(tmp_path: Path) -> None:
    path = tmp_path / "types.py"
    path.write_text(
        "class Reward:\n"
        "    def reward_fn(self, state, action, next_state):\n"
        "        return f'{state.dtype} {action.dtype} {next_state.dtype}'\n"
        "    def debug_fn(self, state):\n"
        "        return str(state.dtype)\n"
    )
    reward = copy.copy(grace_irl.load_reward(path, trust=True)())
    vector, grid = np.zeros(2, np.float32), np.zeros((2, 2, 3), np.uint8)
    assert reward.reward_fn(vector, np.int64(1), vector) == "float64 float64 float64"
    assert reward.reward_fn(grid, np.zeros(3, np.float32), grid) == "int64 float64 int64"
    assert (reward.debug_fn(vector), reward.debug_fn(grid)) == ("float64", "int64")


@pytest.mark.parametrize(
    ("text", "said"), [("x = 1\n", "no class Reward"), ("1 / 0\n", "ZeroDivisionError"), ("class (", "SyntaxError")]
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(grace_irl.GraceError, match=said):
        grace_irl.load_reward(path, trust=True)()
    with pytest.raises(grace_irl.InputError, match=r"absent\.py"):
        grace_irl.load_reward(tmp_path / "absent.py")
