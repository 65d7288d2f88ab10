"""Goal states outside the sample of a run: what marks them, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.goals import load_goals, with_goals
from grace_irl.runs import rest as rests
from grace_irl.runs.caller import Parts
from grace_irl.runs.fit import resume
from grace_irl.runs.run import Interrupted
from grace_irl.runs.score import score
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import ScriptedProposer
from tests.runs.test_rest import SAMPLE, digests, fitted, others


def test_goals_that_nothing_marks_are_counted(tmp_path: Path) -> None:
    given = vector_set(60, 60, 16)
    file, marks = tmp_path / "set.parquet", tmp_path / "goals.toml"
    save(given, file)
    sample = load([file], sample=SAMPLE)
    marks.write_text("".join(f'"{i.trajectory.digest}" = [16]\n' for i in sample if i.role == "expert"))
    run = fitted(file, tmp_path / "run", **{"data.label": "goal", "data.goals": str(marks)})
    assert run.rest is not None
    assert run.rest.unlabelled == 60 - len(sample.select(role="expert"))
    assert run.rest.experts == 0
    assert run.rest.accuracy is None
    assert run.rest.fitness is None
    assert run.rest.trajectories == 60 - len(sample.select(role="negative"))
    assert "rest-unlabelled" in [warning.code for warning in run.warnings]


def goal_files(folder: Path) -> dict[str, object]:
    """Flags for a set whose data mark state 16 alone, and for a file with four goal states of each expert."""
    file, given = folder / "goals.toml", vector_set(60, 60, 16)
    items = (replace(item, goals=(15,) if item.role == "expert" else None) for item in given)
    save(replace(given, items=tuple(items)), folder / "set.parquet")
    experts = given.select(role="expert")
    file.write_text("".join(f'"{item.trajectory.digest}" = [13, 14, 15, 16]\n' for item in experts))
    return {"data.label": "goal", "data.goals": str(file)}


def test_a_file_of_goals_wins_over_the_marks_outside_the_sample(tmp_path: Path) -> None:
    flags = goal_files(tmp_path)
    run = fitted(tmp_path / "set.parquet", tmp_path / "run", **flags)
    assert run.rest is not None
    left = with_goals(others(tmp_path / "set.parquet"), load_goals(tmp_path / "goals.toml"))
    assert run.rest.experts == 4 * len(left.select(role="expert"))
    found = score(run.reward_path, left, rule="goal", sandbox=InProcessSandbox())
    assert run.rest.episodes == found.metrics.episodes
    assert run.rest.accuracy == pytest.approx(found.metrics.accuracy, abs=1e-12)


def test_a_file_of_goals_marks_what_the_data_do_not(tmp_path: Path) -> None:
    flags = goal_files(tmp_path)
    save(vector_set(60, 60, 16), tmp_path / "set.parquet")
    run = fitted(tmp_path / "set.parquet", tmp_path / "run", **flags)
    assert run.rest is not None
    assert run.rest.unlabelled == 0
    assert run.rest.experts == 4 * len(others(tmp_path / "set.parquet").select(role="expert"))


def test_a_resumed_test_needs_no_file_of_goals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = goal_files(tmp_path)
    whole = fitted(tmp_path / "set.parquet", tmp_path / "whole", **flags)
    with monkeypatch.context() as patched:
        patched.setattr(rests, "rewarded", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(Interrupted):
            fitted(tmp_path / "set.parquet", tmp_path / "run", **flags)
    (tmp_path / "goals.toml").unlink()
    run = resume(tmp_path / "run", parts=Parts(proposer=ScriptedProposer(), sandbox=InProcessSandbox()))
    assert run.rest is not None
    assert run.rest.experts == 4 * len(others(tmp_path / "set.parquet").select(role="expert"))
    assert run.rest == whole.rest


def test_a_replay_keeps_the_goals_outside_its_sample(tmp_path: Path) -> None:
    run = fitted(tmp_path / "set.parquet", tmp_path / "run", **goal_files(tmp_path))
    assert main(["export", str(run.folder), "--recording", str(tmp_path / "run.jsonl")]) == 0
    for number, recording in enumerate((run.folder, tmp_path / "run.jsonl")):
        again = grace_irl.fit([tmp_path / "set.parquet"], replay=recording, out=tmp_path / str(number))
        assert again.rest is not None
        assert run.rest is not None
        assert replace(again.rest, program=run.rest.program) == run.rest


def test_goals_outside_the_sample_are_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fitted(tmp_path / "set.parquet", tmp_path / "run", **goal_files(tmp_path))
    experts = len(load([tmp_path / "set.parquet"], sample=SAMPLE).select(role="expert"))
    capsys.readouterr()
    assert main(["show", str(run.folder)]) == 0
    assert f"goal states: {4 * experts} in {experts} of {experts} expert" in " ".join(capsys.readouterr().out.split())


def test_a_goal_state_outside_its_trajectory_ends_only_the_test(tmp_path: Path) -> None:
    flags = goal_files(tmp_path)
    sample = digests(load([tmp_path / "set.parquet"], sample=SAMPLE))
    lines = (tmp_path / "goals.toml").read_text().splitlines()
    wrong = (line if line[1:17] in sample else line.replace("16]", "17]") for line in lines)
    (tmp_path / "goals.toml").write_text("\n".join(wrong))
    run = fitted(tmp_path / "set.parquet", tmp_path / "run", **flags)
    assert run.rest is not None
    assert "goal state 17 of 16 states" in run.rest.failure
    (warning,) = (each for each in run.warnings if each.code == "rest-fails")
    assert warning.line.endswith("correct the file of goal states, and fit anew with it (--goals)")
