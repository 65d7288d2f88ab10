"""Rows of run.db that are not as they were written: one clear line, wherever they are read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.demos.labels import label
from grace_irl.errors import InputError
from grace_irl.programs.program import Program
from grace_irl.propose.goals import GoalAnswer
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.record import to_text
from grace_irl.runs.store import Store
from grace_irl.search.protocol import Fate, Request, Result
from tests.fakes.data import vector_set
from tests.runs.test_store import FULL

SHIPPED = Path(__file__).parents[2] / "datasets" / "babyai-go-to-obj"


def full(path: Path) -> Path:
    """A database with a row in every table that is read."""
    with closing(Store(path, create=True)) as store:
        store.set_problem(label(vector_set(), "all"))
        store.add_goals([GoalAnswer("d", 0, "file", (1,))])
        request = Request(0, "mutate", ("a",), 1)
        store.add_request(request, 0)
        store.add_proposals({0: Proposal("source")})
        store.add_told(
            Result(request, Program("p", "source", 7, "mutate", ("a",)), FULL), [Fate("p", "kept", "")], 0, 1.0
        )
        first = store.trajectories()[0]
        store.put("p", {first.digest: np.arange(float(first.states))})
        store.add_event("started", "")
    return path


def change(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(sql, values).rowcount == 1, sql


READS: dict[str, Callable[[Store], object]] = {
    "meta": lambda store: store.meta("format"),
    "trajectories": Store.trajectories,
    "goals": Store.goals,
    "requests": Store.requests,
    "proposal": lambda store: store.proposal(0),
    "proposals": lambda store: list(store.proposals()),
    "told": Store.told,
    "fates": Store.fates,
    "records": Store.records,
    "rewards": lambda store: store.get("p", [row.digest for row in store.trajectories()]),
    "events": Store.events,
    "spent": Store.spent,
}

EVALUATION = json.loads(to_text(FULL))


@pytest.mark.parametrize(
    ("read", "sql", "value", "said"),
    [
        ("goals", "UPDATE goals SET indices = ?", "[1", "'goals' is damaged (ValueError"),
        ("goals", "UPDATE goals SET indices = ?", "3", "'goals' is damaged (ValueError"),
        ("goals", "UPDATE goals SET tokens_in = ?", "many", "'goals' is damaged (TypeError: tokens_in is str, not int"),
        ("requests", "UPDATE requests SET generation = ?", "first", "(TypeError: generation is str, not int)"),
        ("proposal", "UPDATE proposals SET source = ?", b"\x00", "(TypeError: source is bytes, not str)"),
        ("proposals", "UPDATE proposals SET seconds = ?", "long", "(TypeError: seconds is str, not float or int)"),
        ("spent", "UPDATE proposals SET seconds = ?", "long", "'proposals' is damaged"),
        ("told", "UPDATE results SET seconds = ?", b"1", "(TypeError: seconds is bytes"),
        ("fates", "UPDATE fates SET verdict = ?", b"kept", "(TypeError: verdict is bytes, not str)"),
        ("records", "UPDATE programs SET evaluation = ?", "{", "'programs' is damaged (ValueError: Invalid JSON"),
        ("records", "UPDATE programs SET evaluation = ?", "[" * 100_000, "(ValueError: Invalid JSON: recursion limit"),
        ("records", "UPDATE programs SET evaluation = ?", "{}", "'programs' is damaged (ValueError: status: Field req"),
        ("records", "UPDATE programs SET evaluation = ?", "null", "'programs' is damaged (ValueError"),
        (
            "records",
            "UPDATE programs SET evaluation = ?",
            json.dumps({**EVALUATION, "metrics": {"auc": "high"}}),
            "(ValueError: metrics.auc: Input should be a valid number)",
        ),
        ("records", "UPDATE programs SET parents = ?", "a, b", "'programs' is damaged (ValueError"),
        ("records", "UPDATE programs SET size = ?", "seven", "(TypeError: size is str, not int)"),
        ("rewards", "UPDATE rewards SET blob = ?", b"no zlib", "'rewards' is damaged (error: Error -3"),
        ("rewards", "UPDATE rewards SET blob = ?", "text", "(TypeError: blob is str, not bytes)"),
        ("rewards", "UPDATE rewards SET blob = ?", b"x\x9cK\x04\x00\x00b\x00b", "'rewards' is damaged (ValueError"),
        ("trajectories", "UPDATE trajectories SET states = ? WHERE place = 0", "3 or 4", "(TypeError: states is str"),
        ("events", "UPDATE events SET kind = ?", b"\xff", "(TypeError: kind is bytes, not str)"),
    ],
)
def test_a_damaged_row_is_one_line(read: str, sql: str, value: Any, said: str, tmp_path: Path) -> None:
    path = full(tmp_path / "run.db")
    change(path, sql, value)
    with closing(Store(path)) as store, pytest.raises(InputError) as caught:
        READS[read](store)
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"{path}: a row of ")
    assert message.endswith("expected it as grace-irl wrote it: put a copy of the file back, or fit into a new folder")
    assert len(message.splitlines()) == 1
    assert caught.value.exit_code == 2


def test_a_whole_database_is_read(tmp_path: Path) -> None:
    """The control, with a result that has no program and no draft."""
    path = full(tmp_path / "run.db")
    with closing(Store(path)) as store:
        store.add_request(Request(1, "mutate"), 0)
        store.add_told(Result(Request(1, "mutate"), failure="no answer"), [], 0, 2.0)
        for read in READS.values():
            assert read(store)


def test_the_format_of_a_damaged_database(tmp_path: Path) -> None:
    path = full(tmp_path / "run.db")
    change(path, "UPDATE meta SET value = ? WHERE key = 'format'", b"\x01")
    with pytest.raises(InputError, match="a row of 'meta' is damaged"):
        Store(path)


def test_show_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert main(["fit", "--demos", str(SHIPPED), "--out", str(run), "--generations", "1", "--population", "2"]) == 0
    with closing(sqlite3.connect(run / "run.db")) as database, database:
        database.execute("UPDATE programs SET evaluation = '{}'")
    capsys.readouterr()
    for command in (["show", str(run)], ["fit", "--resume", str(run)]):
        assert main(command) == 2
        err = capsys.readouterr().err
        assert "run.db: a row of 'programs' is damaged (ValueError: status: Field required); expected it as" in err
        assert "defect" not in err


def test_damaged_evidence_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine and the database do not look into it, so that whoever shows it finds the damage."""
    run = tmp_path / "run"
    assert main(["fit", "--demos", str(SHIPPED), "--out", str(run), "--generations", "1", "--population", "2"]) == 0
    with closing(sqlite3.connect(run / "run.db")) as database, database:
        database.execute('UPDATE programs SET evaluation = replace(evaluation, \'"experts":\', \'"experts":0.5,"x":\')')
    capsys.readouterr()
    assert main(["show", str(run)]) == 2
    err = capsys.readouterr().err
    assert "the evidence of an evaluation is damaged (train.experts" in err
    assert "put a copy of run.db back" in err
    assert err.count("\n") == 1
