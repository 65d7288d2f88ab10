"""Views of tasks: the states that they make of observations, and their faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

from grace_irl.errors import InputError
from grace_irl.tasks.random_episodes import random_episodes
from tests.tasks.test_faults import OWN, own_task
from tests.tasks.test_policy_evaluator import TASK, UP, judged


def test_an_observation_of_another_length_is_the_environments_fault(tmp_path: Path) -> None:
    own_task(tmp_path)
    shorter = "found = super().step(action)\n        return (found[0][: 4 - (self.steps > 40)], *found[1:])"
    (tmp_path / "own.py").write_text(OWN.replace("return super().step(action)", shorter))
    task = replace(TASK, env=f"{tmp_path / 'own.py'}:make")
    with pytest.raises(InputError, match="ValueError: a state of 3 numbers, and the first one has 4"):
        judged(tmp_path / "run", UP, task)


VIEWED = """
import statistics

import gymnasium
import numpy as np

from grace_irl.demos.trajectory import Metadata
from grace_irl.rl.environments import FunctionView


class Varied(gymnasium.ObservationWrapper):
    \"\"\"A pole whose observation has one number more at each other step.\"\"\"

    count = 0

    def observation(self, seen):
        self.count += 1
        return seen if self.count % 2 else np.append(seen, 0.0)


def view(of):
    return FunctionView(Metadata("vector"), of=of)


def padded():
    return Varied(gymnasium.make("CartPole-v1")), view(lambda env, seen: np.asarray(seen[:4], float))


def failing():
    return gymnasium.make("CartPole-v1"), view(lambda env, seen: statistics.mean([]))
"""


def test_a_view_may_make_equal_states_of_unequal_observations(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(VIEWED)
    names = ("x", "velocity", "angle", "angular velocity")
    task = replace(TASK, env=f"{tmp_path / 'own.py'}:padded", fields=names)
    assert task.metadata.fields == names
    assert len(random_episodes(task)) == 8


def test_a_view_that_fails_is_named_with_the_users_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(VIEWED)
    line = next(number for number, text in enumerate(VIEWED.splitlines(), 1) if "mean([])" in text)
    said = rf"task tiny: its environment fails: StatisticsError: .* \(own.py, line {line}\); expected"
    with pytest.raises(InputError, match=said):
        random_episodes(replace(TASK, env=f"{tmp_path / 'own.py'}:failing"))
