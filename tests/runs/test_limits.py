"""The sandbox limits in a run's settings hold wherever a program of the run gives rewards, not in its search alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.compare.fitted import ProgramReward
from grace_irl.config import Config, SandboxConfig
from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration
from grace_irl.errors import GraceError
from grace_irl.runs.config import resolve
from grace_irl.runs.expand.learner import PpoLearner
from grace_irl.runs.expand.likeness import like_experts
from grace_irl.runs.expand.round import Round, favourite
from grace_irl.runs.sandbox import limits_of
from grace_irl.runs.score import score
from tests.rl.cart_pole import experts, play

LARGE = """import numpy as np


class Reward:
    def reward_fn(self, state):
        np.empty(700 << 20, dtype=np.uint8)
        return 1.0 - abs(float(state[2]))
"""
"""A reward that needs more memory than the default limit."""


FLAGS = {"data.label": "last", "sandbox.workers": 1}
Call = Callable[[Path, Config, Path], object]


def rewards(reward: Path, config: Config, _: Path) -> object:
    return grace_irl.load_reward(reward).rewards([play(1).trajectory], limits=limits_of(config.sandbox))


def scored(reward: Path, config: Config, _: Path) -> object:
    known = experts(1)
    both = replace(known, items=(*known.items, play(1, "negative")))
    return score(reward, both, rule="all", limits=limits_of(config.sandbox))


def likeness(reward: Path, config: Config, _: Path) -> object:
    fallen = replace(play(2).trajectory, terminated=True)
    known = replace(experts(1), items=(Demonstration(fallen, "expert"),))
    return like_experts(reward, [play(1).trajectory], known, config)


def best_round(reward: Path, config: Config, folder: Path) -> object:
    (folder / "rounds" / "1").mkdir(parents=True)
    save(experts(1), folder / "rounds" / "1" / "rollouts.parquet")
    return favourite([Round(1)], folder, reward, config, "all")


@pytest.mark.parametrize("call", [rewards, scored, likeness, best_round])
def test_a_reward_that_needs_more_memory_has_it_outside_the_search_too(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(LARGE)
    assert call(path, resolve(flags={**FLAGS, "sandbox.memory_mb": 1500}), tmp_path / "large")
    with pytest.raises(GraceError, match="memory"):
        call(path, resolve(flags=FLAGS), tmp_path / "small")


def test_a_training_of_an_expansion_has_the_limits_of_the_run(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    path = tmp_path / "reward.py"
    path.write_text(LARGE.replace("700 <<", "100 <<"))
    learner = PpoLearner(resolve().expand, sandbox=SandboxConfig(memory_mb=50), note=lambda _: None)
    learner.check(experts(1))
    with pytest.raises(GraceError, match="memory"):
        learner.train(path, 2048, 3, tmp_path / "1" / "training", None)


def test_a_reward_in_a_comparison_has_the_limits_of_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_text(LARGE)
    states = play(1).trajectory.states
    step = (states[:1], np.zeros(1, int), states[1:2], np.zeros(1, bool))
    assert ProgramReward(path, sandbox=SandboxConfig(memory_mb=1500))(*step).shape == (1,)
    with pytest.raises(GraceError, match="memory"):
        ProgramReward(path)(*step)
