"""`grace-irl report`, and the report that `fit` leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from grace_irl.cli import main
from grace_irl.cli.report import report_of_fit
from grace_irl.runs.folder import RunLock, RunPaths
from tests.fakes.scripted_proposer import ScriptedProposer
from tests.report.conftest import fitted, vectors


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return fitted(tmp_path / "run", vectors(tmp_path / "set.parquet"), ScriptedProposer())


def test_it_prints_where_the_report_is(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunLock(RunPaths(run).lock):  # a live one will do
        assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert main(["report", str(run), "--out", str(tmp_path / "new" / "page.html")]) == 0
    assert (tmp_path / "new" / "page.html").read_bytes() == (run / "report.html").read_bytes()


def test_what_cannot_be_reported_is_one_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs").mkdir()
    for arguments, message in (
        ([str(tmp_path / "nowhere")], "no such folder; expected the folder of a run"),
        ([str(tmp_path / "jobs")], "no run.db in it"),
        ([str(run), "--out", str(tmp_path / "jobs")], "cannot be written"),
        ([str(run), "--json"], "No such option"),
    ):
        assert main(["report", *arguments]) == 2
        out, err = capsys.readouterr()
        assert message in err
        assert (out, len(err.splitlines())) == ("", 1)


def test_no_report_is_a_warning_and_no_failure(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "report.html").mkdir()
    assert report_of_fit(run) is None
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("grace-irl: warning: no report (")
    assert f"grace-irl report {run}" in line

    def defect(*arguments: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("grace_irl.report.write.report", defect)
    assert report_of_fit(run) is None
    assert "no report (ZeroDivisionError: a b)" in capsys.readouterr().err
    assert report_of_fit(tmp_path / "nothing was made there") is None
    assert capsys.readouterr().err == ""
