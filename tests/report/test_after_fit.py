"""The report that `grace_irl.fit` leaves."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import grace_irl
from grace_irl.cli import main
from grace_irl.report.write import UNSHOWN
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.run import Interrupted, Run
from tests.fakes.data import vector_set
from tests.fakes.scripted_proposer import ScriptedProposer
from tests.report.conftest import vectors

SETTINGS: dict[str, Any] = {"population": 4, "elite": 2, "generations": 1, "workers": 1}


def fitted(folder: Path, demos: Any, **settings: Any) -> Run:
    return grace_irl.fit(demos, out=folder, proposer=ScriptedProposer(), **SETTINGS, **settings)


def test_a_fit_leaves_a_report_with_its_states(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = fitted(tmp_path / "file", vectors(tmp_path / "set.parquet"))
        page = run.report_path.read_text()
        memory = fitted(tmp_path / "memory", vector_set(2, 2))
    assert run.best.program.id in page
    assert run.report_path == RunPaths(run.folder).report
    assert "names no file of them" not in memory.report_path.read_text()  # the states are those that it was given


def test_a_resumed_fit_leaves_a_new_one(tmp_path: Path) -> None:
    data = vector_set(2, 2)
    run = fitted(tmp_path / "run", data)
    run.report_path.unlink()
    grace_irl.fit(data, resume=run.folder, proposer=ScriptedProposer(), generations=2)
    assert run.report_path.is_file()


def test_a_report_with_states_is_not_replaced_by_one_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fitted(tmp_path / "run", vector_set(noise=0.05))
    page = tmp_path / "run" / "report.html"
    before = page.read_bytes()
    assert UNSHOWN.encode() not in before
    assert main(["report", str(run.folder)]) == 2
    assert "report.html: shows states, and a new report would not show all of them" in capsys.readouterr().err
    assert page.read_bytes() == before
    other = tmp_path / "other.html"
    assert main(["report", str(run.folder), "--out", str(other)]) == 0
    assert UNSHOWN in other.read_text()


def test_an_interrupted_fit_leaves_one(tmp_path: Path) -> None:
    def interrupt(snapshot: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        fitted(tmp_path / "run", vector_set(2, 2), listener=interrupt)
    assert RunPaths(caught.value.folder).report.is_file()


def test_a_fit_without_a_report_is_a_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*arguments: object) -> None:
        raise OSError("no space\nleft")

    monkeypatch.setattr("grace_irl.report.write.report", defect)
    notes: list[str] = []
    run = fitted(tmp_path / "my run", vector_set(2, 2), note=notes.append)
    assert run.best.fitness < 1
    assert notes[-1] == f"no report (OSError: no space left); try again with: grace-irl report '{run.folder}'"
    with pytest.warns(UserWarning, match="no report") as caught:
        fitted(tmp_path / "two", vector_set(2, 2))
    assert Path(caught[0].filename) == Path(__file__)
    assert not (tmp_path / "two" / "report.html").exists()
