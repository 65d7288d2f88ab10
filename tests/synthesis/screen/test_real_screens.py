"""Goals on real screens: what is learnt from the training side separates the held-out side."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos.labels import Problem, label
from grace_irl.evaluate.metrics import Ranking, ranking
from grace_irl.synthesis.screen.sketcher import UiSketcher

ROOT = Path(__file__).parents[3]
DATA = ROOT / ".." / "shared" / "data" / "android"
if str(ROOT / "benchmarks") not in sys.path:
    sys.path.append(str(ROOT / "benchmarks"))

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the real screens of ../shared/data/android")


@cache
def sides() -> dict[str, tuple[Problem, Problem]]:
    """Training and held-out data of each problem of the benchmark."""
    from android.problems import problems

    return {one.name: (label(one.train, "last"), label(one.test, "last")) for one in problems(DATA)}


@cache
def program(name: str) -> tuple[str, str]:
    """The first program of a problem, and its story."""
    sketcher = UiSketcher(sides()[name][0].items)
    sketch = sketcher.initial()[0]
    return sketcher.source(sketch), sketcher.reasoning(sketch)


def judged(source: str, data: Problem) -> Ranking:
    space: dict[str, object] = {}
    exec(source, space)
    values, positive = [], []
    for item in data.items:
        reward = space["Reward"](item.trajectory.extra_info)  # type: ignore[operator]
        values += [reward.reward_fn(state.decode()) for state in item.trajectory.states.tolist()]
        positive += item.positive.tolist()
    return ranking(np.array(values), np.array(positive))


@pytest.mark.parametrize("name", ["alarm", "alarm-times", "reminder", "choice", "two-tasks"])
def test_the_first_program_separates_both_sides(name: str) -> None:
    train, held_out = sides()[name]
    source, _ = program(name)
    assert judged(source, train).separated
    assert judged(source, held_out).separated


def test_a_title_and_a_time_of_an_event() -> None:
    """Start and end of an event are told apart by nothing that two goals show; one held-out screen is wrong."""
    train, held_out = sides()["event"]
    source, _ = program("event")
    assert judged(source, train).separated
    assert judged(source, held_out).accuracy > 0.99


def test_the_alarm_is_what_was_said() -> None:
    """With several times in training the program reads the time, and finds the days in the same card."""
    source, story = program("alarm-times")
    assert "self.times" in source
    assert "items(screen, " in source
    assert "Saturday, Sunday" in story


def test_one_reward_for_two_tasks_reads_the_instruction() -> None:
    """The goal of one task is none of the other."""
    train, _ = sides()["two-tasks"]
    space: dict[str, object] = {}
    exec(program("two-tasks")[0], space)
    goals = {
        item.trajectory.extra_info: item.trajectory.states[-1].decode() for item in train.items if item.positive.any()
    }
    assert len(goals) == 2
    for said in goals:
        for asked, screen in goals.items():
            reward = space["Reward"](said).reward_fn(screen)  # type: ignore[operator]
            assert (reward == 1.0) is (asked == said)
