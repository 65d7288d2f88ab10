"""Facts about the task of a run in its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grace_irl.config import Config
from grace_irl.report.account import _notes
from grace_irl.report.task import LONGEST, task_facts
from grace_irl.runs.config import resolve

TASK = {
    "env": "/home/someone/tank.py:make",
    "score": "/home/someone/tank.py:near",
    "scored": "share of states near the set point",
    "text": "Follow\nthe set point.",
    "steps": 1000,
    "evaluations": 10,
    "episodes": 20,
    "ppo": {"n_steps": 64, "gamma": 0.9},
}


def configured(**flags: object) -> Config:
    return resolve(flags={"method": "eureka", "policy.task": "tank.toml", **flags})


def written(folder: Path, content: object) -> Path:
    (folder / "task.json").write_text(json.dumps(content))
    return folder


def test_the_task_is_told_in_full_and_without_folders(tmp_path: Path) -> None:
    assert task_facts(written(tmp_path, TASK), configured()) == [
        ("environment", "tank.py:make"),
        ("score", "tank.py:near (share of states near the set point)"),
        ("task", "Follow the set point."),
        (
            "training",
            "1 of 1000 steps for each program; at most 10 evaluations of 20 episodes; the best one counts; PPO with "
            "gamma 0.9, n_steps 64",
        ),
    ]


def test_the_runs_own_trainings_count(tmp_path: Path) -> None:
    content = {**TASK, "ppo": {}, "max_steps": 30, "short_steps": 100, "floor": 0.5}
    own = configured(**{"policy.train_steps": 300, "policy.train_seeds": 3, "policy.checkpoint": "last"})
    assert dict(task_facts(written(tmp_path, content), own))["training"] == (
        "3 of 300 steps for each program; at most 10 evaluations of 20 episodes; the last one counts; episodes of at "
        "most 30 steps; first 100 steps, whose score must reach 0.5"
    )


@pytest.mark.parametrize("content", [[1], {"text": "x" * 10_000, "ppo": [1], "env": 7}, {"env": None, "steps": {}}])
def test_a_task_of_another_form_ends_no_report(content: object, tmp_path: Path) -> None:
    found = task_facts(written(tmp_path, content), configured())
    assert all(len(value) <= LONGEST for _, value in found)
    assert bool(found) == isinstance(content, dict)


def test_a_run_without_its_task_has_no_facts_about_it(tmp_path: Path) -> None:
    assert task_facts(tmp_path, configured()) == []
    (tmp_path / "task.json").write_bytes(b"\xff{")
    assert task_facts(tmp_path, configured()) == []


def test_messages_that_resumed_runs_repeat_are_told_once() -> None:
    events = [("1", "started", "x"), ("2", "note", "a"), ("3", "note", "b"), ("4", "stopped", "y"), ("5", "note", "a")]
    assert _notes(events) == (("2", "a (2 times)"), ("3", "b"))
