"""The writer of the methods that train policies, without a model: what random episodes and their scores tell it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="grace-irl[rl] is not installed")

from grace_irl.cli import main
from grace_irl.demos.labels import Problem
from grace_irl.demos.trajectory import Metadata
from grace_irl.methods.trained import writer
from grace_irl.runs import proposers
from grace_irl.runs.config import resolve
from grace_irl.search.protocol import Request
from grace_irl.tasks import random_episodes
from grace_irl.tasks.task import read_task

Capture = pytest.CaptureFixture[str]
CORRIDOR = Path(__file__).resolve().parents[1] / "cli" / "corridor.py"
SCORE = "def right(rollout):\n    return float(int(rollout.trajectory.states[-1]['place']) > 3)\n"


def planned(task: str, count: int = 40) -> list[str]:
    """The terms of single-term designs for a task."""
    proposer = writer(Problem(Metadata("vector"), "all", ()), resolve(flags={"method": "random", "policy.task": task}))

    async def all_of() -> list[str]:
        found = [await proposer.propose(Request(0, "plan", (), seed), ()) for seed in range(count)]
        return [next(iter(json.loads(each.sketch))) for each in found]

    return asyncio.run(all_of())


def test_a_task_s_score_guides_the_writer() -> None:
    """Of 123 terms on Snake, a few say that food was eaten."""
    found = planned("snake")
    eaten = {
        "fall length",
        "level change(length)",
        "level change(food)",
        "level change(food_x)",
        "level change(food_y)",
    }
    assert sum(name in eaten for name in found) > len(found) / 8
    assert len({*found}) > len(found) / 4


def test_the_score_of_records_guides_the_writer(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(SCORE)
    task = tmp_path / "corridor.toml"
    task.write_text(f'env = "{CORRIDOR}:records"\ntext = "Go right."\nscore = "score.py:right"\n')
    found = planned(str(task), 300)
    assert found.count("level place") > 2 * found.count("lower place") > 0


@pytest.mark.parametrize("more", [[], ["--proposer", "manual", "--seed-synthesis", "3"]], ids=["alone", "first"])
def test_states_that_nobody_can_write_about_are_refused_before_episodes_are_scored(
    more: list[str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[object] = []
    monkeypatch.setattr(random_episodes, "scored_episodes", lambda *_: played.append(_))
    assert main(["fit", "--method", "random", "--task", "doorkey", "--out", str(tmp_path / "run"), *more]) == 2
    assert "expected vectors or records. A model or a person can write" in capsys.readouterr().err
    assert not played
    assert not (tmp_path / "run").exists()


def test_a_score_that_fails_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "score.py").write_text("def right(rollout):\n    raise ValueError('no food')\n")
    task = tmp_path / "pole.toml"
    task.write_text('env = "CartPole-v1"\ntext = "Balance."\nscore = "score.py:right"\n')
    assert main(["fit", "--method", "random", "--task", str(task), "--out", str(tmp_path / "run")]) == 2
    assert "task pole: its score fails on an episode: ValueError: no food" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("name", "plays"), [("manual", True), ("replay", False)])
def test_only_a_run_that_begins_with_synthesised_programs_makes_their_writer(
    name: str, plays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording holds them already."""
    made: list[object] = []
    monkeypatch.setattr(proposers, "_synthesis", lambda *given: made.append(given))
    as_it_is = replace(proposers.PROPOSERS[name], check=lambda config, *_: config)
    monkeypatch.setitem(proposers.PROPOSERS, name, as_it_is)
    flags = {"method": "random", "policy.task": "snake", "proposer.name": name, "proposer.seed_synthesis": 2}
    proposers.checked(resolve(flags=flags), Problem(read_task("snake").metadata, "all", ()))
    assert bool(made) is plays
