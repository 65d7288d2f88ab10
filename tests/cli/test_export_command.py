"""The command `export`: the winner and the best programs as files of their own."""

from __future__ import annotations

import ast
import csv
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grace_irl.cli import main
from grace_irl.runs.store import Store


def test_export_stands_alone_and_passes_the_contract(
    fitted: tuple[Path, dict[str, Any]], demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = fitted
    out = tmp_path / "reward.py"
    assert main(["export", str(folder), "--out", str(out)]) == 0
    tree = ast.parse(out.read_text())
    imported = {name.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for name in n.names}
    imported |= {str(n.module).split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= {"__future__", "math", "numpy", "re", "collections"}
    assert main(["export", str(folder), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["export", str(folder), "--out", str(out), "--force", "--json"]) == 0
    assert main(["score", str(out), "--demos", str(demos)]) == 0
    assert main(["export", str(folder), "--out", str(tmp_path / "absent" / "r.py")]) == 0
    assert (tmp_path / "absent" / "r.py").read_text() == out.read_text()
    assert main(["export", str(folder), "--out", str(tmp_path / "absent")]) == 2
    assert "absent: a folder; expected the path of a file, such as" in capsys.readouterr().err


def test_the_best_programs_are_exported_with_their_scores(
    fitted: tuple[Path, dict[str, Any]], demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, folder = str(fitted[0]), tmp_path / "best"
    assert main(["export", run, "--best", "3", "--out", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    rows = list(csv.DictReader((folder / "scores.csv").open()))
    assert told["files"] == [row["file"] for row in rows]
    assert {path.name for path in folder.iterdir()} == {*told["files"], "scores.csv"}
    assert len(rows) == 3
    assert (folder / rows[0]["file"]).read_text() == (fitted[0] / "reward.py").read_text()
    for row in rows:
        assert main(["score", str(folder / row["file"]), "--demos", str(demos)]) == 0
    for words, said in (
        (
            ["--best", "3", "--out", str(folder)],
            "best: not empty; expected a new folder: choose another, or replace these",
        ),
        (["--best", "3", "--out", str(folder / "scores.csv")], "scores.csv: a file; expected a new folder"),
        (["--best", "3"], "no folder to write; expected --out FOLDER, such as --best 3 --out best"),
        (["--best", "3", "--library", "--out", "x"], "--best with --library; expected one of them"),
        (["--best", "0", "--out", "x"], "'--best'"),
    ):
        capsys.readouterr()
        assert main(["export", run, *words]) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    assert main(["export", run, "--best", "1", "--out", str(folder), "--force"]) == 0
    assert {path.name for path in folder.iterdir()} == {told["files"][0], "scores.csv"}
    (folder / "mine.py").write_text("")
    assert main(["export", run, "--best", "1", "--out", str(folder), "--force"]) == 2
    assert (folder / "mine.py").exists()


def test_an_id_that_is_a_path_is_no_name_of_a_file(
    fitted: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store of somebody else's run may hold anything."""
    run, folder = shutil.copytree(fitted[0], tmp_path / "run"), tmp_path / "inside" / "best"
    with closing(Store(run / "run.db")) as store:
        valid = [
            name for name, record in store.records().items() if record.evaluation.valid and record.evaluation.complete
        ]
    other = next(name for name in valid if name != fitted[1]["program"])
    with closing(sqlite3.connect(run / "run.db")) as database, database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in [row[1] for row in database.execute(f"PRAGMA table_info({table})")]:
                database.execute(f"UPDATE {table} SET {column} = 'x/../../../evil' WHERE {column} = ?", (other,))
    assert main(["export", str(run), "--best", "100", "--out", str(folder)]) == 2
    assert "a program with id 'x/../../../evil'; expected 16 hex digits" in capsys.readouterr().err
    assert not folder.exists()
    assert not list(tmp_path.rglob("evil*"))
