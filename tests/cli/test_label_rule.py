"""The label rule through the command line: one for all file formats, with its reason, and experts alone."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.label_rule import choose_rule
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from tests.demos.test_label_rule import GRID_FORMATS, SHIPPED, _minari_root, grids, vectors  # noqa: F401

QUICK = ["--population", "4", "--elite", "2", "--generations", "1", "--workers", "1", "--json"]


def fitted(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    """What `fit` answers, and what it said on the way."""
    code = main(["fit", *words])
    told = capsys.readouterr()
    assert code == 0, told.err
    found: dict[str, Any] = json.loads(told.out.strip().splitlines()[-1])
    return found, told.err


def line_of(text: str) -> str:
    """The line about the label rule."""
    (found,) = [line for line in text.splitlines() if line.startswith("label rule")]
    return found


def reward(found: dict[str, Any]) -> str:
    """The file without where the demonstrations lie."""
    text = Path(found["reward_path"]).read_text()
    return re.sub(r"(?m)^.*\bdemos\b.*$", "", text)


@pytest.mark.slow
def test_the_same_trajectories_have_one_rule_one_reason_and_one_reward_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, said = [], []
    for form, name in GRID_FORMATS:
        if form.startswith("minari"):
            pytest.importorskip("minari")
        save(grids(), name if form.startswith("minari") else tmp_path / name, form)
        path = name if form.startswith("minari") else str(tmp_path / name)
        found, told = fitted(capsys, "--demos", path, "--out", str(tmp_path / f"run-{form}"), *QUICK)
        answers.append(found)
        said.append(line_of(told))
    assert {found["label"] for found in answers} == {"last"}
    assert set(said) == {
        "label rule last: the environment ended all 8 expert trajectories, and a time limit all 8 negative ones "
        "(--label chooses otherwise: all, goal)"
    }
    assert len({reward(found) for found in answers}) == 1
    assert {found["held_out"]["accuracy"] for found in answers} == {1.0}


def test_tasks_of_environments_that_call_for_different_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(vectors("Hopper-v5", task="hop"), tmp_path / "hop.parquet")
    save(vectors("PointMaze_UMaze-v3", task="maze"), tmp_path / "maze.parquet")
    words = ["--demos", str(tmp_path / "hop.parquet"), "--demos", str(tmp_path / "maze.parquet")]
    assert main(["fit", *words, "--out", str(tmp_path / "run"), *QUICK]) == 2
    assert capsys.readouterr().err.strip() == (
        "grace-irl: Hopper-v5 calls for 'all', and PointMaze_UMaze-v3 calls for 'last'; expected one label rule in a "
        "fit: choose it with --label, or fit each by itself"
    )
    assert not (tmp_path / "run").exists()
    found, told = fitted(capsys, *words, "--label", "all", "--out", str(tmp_path / "run"), *QUICK)
    assert found["label"] == "all"
    assert "chosen with --label" in line_of(told)
    assert main(["demos", "inspect", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label_rule"].startswith("undecided: Hopper-v5")


def test_files_that_state_different_rules_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(vectors(label="all", task="a"), tmp_path / "a.parquet")
    save(vectors("x", label="last", task="b"), tmp_path / "b.parquet")
    assert main(["fit", "--demos", str(tmp_path), "--out", str(tmp_path / "run"), *QUICK]) == 2
    assert "a.parquet states 'all', and " in capsys.readouterr().err


@pytest.mark.parametrize(("environment", "rule"), [("MountainCar-v0", "last"), ("Hopper-v5", "all")])
def test_a_scrambled_set_keeps_its_rule(
    environment: str, rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(vectors(environment), tmp_path / "set.parquet")
    assert main(["demos", "scramble", str(tmp_path / "set.parquet"), str(tmp_path / "other.parquet")]) == 0
    assert choose_rule(load([str(tmp_path / "other.parquet")])).rule == rule
    chosen = ["demos", "select", "--from", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "chosen.parquet")]
    assert main(chosen) == 0, capsys.readouterr().err
    assert choose_rule(load([str(tmp_path / "chosen.parquet")])).rule == rule


@pytest.mark.slow
def test_experts_alone_are_enough_where_their_other_states_are_negative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, folder = tmp_path / "alone.parquet", tmp_path / "run"
    save(grids(roles=("expert",)), alone)
    found, told = fitted(capsys, "--demos", str(alone), "--out", str(folder), *QUICK)
    assert found["label"] == "last"
    assert found["held_out"]["accuracy"] == 1.0
    assert "nothing here tells goal states from states that experts never visit" in told
    assert "2 held-out expert trajectories" in told
    assert [note for note in found["notes"] if note.startswith("label rule last")]
    assert main(["show", str(folder)]) == 0
    assert "label rule last: tasks on grids end" in capsys.readouterr().out
    assert "tasks on grids end where a goal is reached" in (folder / "report.html").read_text()
    for demos in (alone, SHIPPED):
        assert main(["score", found["reward_path"], "--demos", str(demos), "--json"]) == 0
        scored = json.loads(capsys.readouterr().out)
        assert (scored["label"], scored["accuracy"]) == ("last", 1.0)
    assert main(["fit", "--demos", str(alone), "--estimate", "--proposer", "llm"]) == 0
    capsys.readouterr()
    again, _ = fitted(capsys, "--resume", str(folder), "--json")
    assert reward(again) == reward(found)
    recording = tmp_path / "recording.jsonl"
    assert main(["export", str(folder), "--recording", str(recording)]) == 0, capsys.readouterr().err
    capsys.readouterr()
    for source in (folder, recording):
        replayed, _ = fitted(
            capsys,
            "--replay",
            str(source),
            "--demos",
            str(alone),
            "--out",
            str(tmp_path / f"again-{source.name}"),
            "--json",
        )
        assert (replayed["label"], replayed["program"]) == ("last", found["program"])


@pytest.mark.slow
def test_experts_alone_with_marked_goals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experts = grids(roles=("expert",))
    marked = [replace(item, goals=(item.trajectory.num_steps,)) for item in experts]
    save(replace(experts, items=tuple(marked)), tmp_path / "set.parquet")
    found, told = fitted(capsys, "--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "run"), *QUICK)
    assert line_of(told).startswith("label rule goal: goal states are marked in all 8 expert trajectories")
    assert found["held_out"]["accuracy"] == 1.0


def test_experts_alone_are_refused_for_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(vectors("Hopper-v5").select(role="expert"), tmp_path / "expert.parquet")
    words = ["--demos", str(tmp_path / "expert.parquet"), "--out", str(tmp_path / "run"), *QUICK]
    assert main(["fit", *words]) == 2
    assert capsys.readouterr().err.strip() == (
        "grace-irl: demonstrations: no negative trajectory, and label rule all (Hopper-v5 has no goal at which an "
        "episode ends) makes every expert state positive; expected at least one: name a file with --negatives, or "
        "choose --label last if experts end at a goal"
    )
    assert not (tmp_path / "run").exists()


def test_experts_of_one_state_each_have_nothing_to_be_told_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [Demonstration(Trajectory(np.full((1, 2), number), source=str(number)), "expert") for number in range(3)]
    save(Demonstrations(Metadata("vector"), tuple(items)), tmp_path / "expert.parquet")
    words = ["--demos", str(tmp_path / "expert.parquet"), "--out", str(tmp_path / "run"), "--label", "last", *QUICK]
    assert main(["fit", *words, "--held-out", "0"]) == 2
    assert "3 positive and 0 negative states for training; expected some of each" in capsys.readouterr().err


def aged(folder: Path) -> None:
    """Makes a run one of an earlier version, which kept the rule in its database only."""
    config = folder / "config.toml"
    text = config.read_text()
    assert text.count('label = "all"') == 1
    config.write_text(text.replace('label = "all"', 'label = ""'))
    with sqlite3.connect(folder / "run.db") as database:
        database.execute("DELETE FROM meta WHERE key = 'label_reason'")


@pytest.mark.slow
def test_an_earlier_run_keeps_the_rule_that_it_began_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(grids(4), tmp_path / "set.parquet")
    folder = tmp_path / "run"
    words = ["--demos", str(tmp_path / "set.parquet"), "--out", str(folder), "--label", "all", *QUICK]
    fitted(capsys, *words)
    aged(folder)
    again, told = fitted(capsys, "--resume", str(folder), "--generations", "2", "--json")
    assert again["label"] == "all"
    assert line_of(told).startswith("label rule all: as the run began")
    aged_copy = tmp_path / "copy"
    shutil.copytree(folder, aged_copy)
    replayed, _ = fitted(
        capsys,
        *("--replay", str(aged_copy), "--demos", str(tmp_path / "set.parquet")),
        *("--out", str(tmp_path / "replayed"), "--json"),
    )
    assert (replayed["label"], replayed["program"]) == ("all", again["program"])


@pytest.mark.slow
def test_an_earlier_recording_keeps_the_rule_of_its_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(grids(4), tmp_path / "set.parquet")
    words = ["--demos", str(tmp_path / "set.parquet"), "--label", "all", *QUICK]
    found, _ = fitted(capsys, *words, "--out", str(tmp_path / "run"))
    recording = tmp_path / "recording.jsonl"
    assert main(["export", str(tmp_path / "run"), "--recording", str(recording)]) == 0
    head, *lines = recording.read_text().splitlines()
    about = json.loads(head)
    assert about["config"]["data"]["label"] == "all"
    about["config"]["data"]["label"] = ""
    recording.write_text("\n".join([json.dumps(about), *lines]) + "\n")
    capsys.readouterr()
    replayed, told = fitted(
        capsys,
        *("--replay", str(recording), "--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "b"), "--json"),
    )
    assert (replayed["label"], replayed["program"]) == ("all", found["program"])
    assert "as the version chose that made the recording" in line_of(told)
    other, _ = fitted(
        capsys,
        *("--replay", str(recording), "--demos", str(tmp_path / "set.parquet"), "--out", str(tmp_path / "c")),
        *("--label", "last", "--json"),
    )
    assert other["label"] == "last"


def test_score_takes_the_rule_that_the_reward_was_fitted_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, last in (("expert", 9), ("negative", 4)):
        rows = [f"{episode},{step},{episode}" for episode in range(4) for step in range(last)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["episode,x,other", *rows]) + "\n")
    demos = [str(tmp_path / "expert.csv"), str(tmp_path / "negative.csv")]
    fitted(capsys, "--demos", *demos, "--label", "last", "--out", str(tmp_path / "run"), *QUICK)
    words = ["score", str(tmp_path / "run" / "reward.py"), "--demos", *demos, "--workers", "1"]
    capsys.readouterr()
    for more, rule in (([], "last: the reward was fitted with it"), (["--label", "all"], "all: chosen with --label")):
        assert main([*words, *more]) == 0
        assert f"label rule {rule} (--label chooses otherwise" in capsys.readouterr().out
    assert grace_irl.score(words[1], demos, workers=1).label == "last"
    path = tmp_path / "run" / "reward.py"
    path.write_text(path.read_text().replace("last (which", "goal (which"))
    found = grace_irl.score(path, demos, workers=1)
    assert (found.label, "the reward was fitted with goal, whose states are not" in found.label_reason) == ("all", True)
    path.write_text(path.read_text().replace("goal (which", "none (which"))
    assert grace_irl.score(path, demos, workers=1).label == "all"
