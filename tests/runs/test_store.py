"""The database of a run."""

from __future__ import annotations

import math
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.cli.console import plain
from grace_irl.demos.labels import label
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Proposal
from grace_irl.runs.database import Database
from grace_irl.runs.record import from_text, to_text, trajectory_rows
from grace_irl.runs.store import Store
from grace_irl.search.protocol import Draft, Fate, Request, Result
from tests.fakes.data import vector_set
from tests.runs.older import made_older

METRICS = Metrics(-0.1234567890123456, 0.9, 0.8, False, 3, 4)
FULL = Separation(
    METRICS,
    METRICS,
    scale=2.0,
    offset=-1.0,
    tasks={"a": (METRICS, None), "b": (METRICS, METRICS)},
    monotonicity=0.25,
).evaluation(seconds=0.1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "run.db", create=True)


@pytest.mark.parametrize("evaluation", [FULL, Evaluation("timeout", "too slow", "trace")])
def test_an_evaluation_survives_text(evaluation: Evaluation) -> None:
    assert from_text(to_text(evaluation)) == evaluation


def test_plain_json_has_no_infinity() -> None:
    assert plain({"a": -math.inf, "b": (1, math.nan), "c": METRICS})["a"] is None
    assert plain(FULL)["evidence"]["separation"]["train"]["auc"] == 0.9


def test_told_results_come_back_in_order(store: Store) -> None:
    program = Program("p", "source", 7, "mutate", ("a", "b"))
    request = Request(0, "mutate", ("a", "b"), 2**61, (("include_expert", True),))
    store.add_request(request, 3)
    store.add_proposals({0: Proposal("source", sketch="s", tokens_in=5, tokens_out=6, seconds=0.5)})
    store.add_told(Result(request, program, FULL), [Fate("p", "kept", "place 1")], 3, 1.5)
    store.add_told(Result(Request(1, "mutate"), failure="no answer"), [], 3, 2.5)
    told = store.told()
    assert [(t.index, t.program_id, t.failure, t.seconds) for t in told.values()] == [
        (0, "p", "", 1.5),
        (1, None, "no answer", 2.5),
    ]
    record = store.records()["p"]
    assert (record.program, record.evaluation, record.index) == (program, FULL, 0)
    assert store.proposal(0) == Proposal("source", sketch="s", tokens_in=5, tokens_out=6, seconds=0.5)
    assert store.proposal(7) is None
    assert [(row.generation, row.fate.verdict) for row in store.fates()] == [(3, "kept")]


def test_the_first_score_of_a_program_stays(store: Store) -> None:
    program = Program("p", "source", 7)
    for index, evaluation in enumerate((FULL, Evaluation("timeout"))):
        store.add_told(Result(Request(index, "mutate"), program, evaluation), [], 0, 0.0)
    assert store.records()["p"].evaluation == FULL


def test_another_request_of_the_same_index_is_refused(store: Store) -> None:
    store.add_request(Request(0, "initialise", seed=1), 0)
    store.add_request(Request(0, "initialise", seed=1), 0)
    with pytest.raises(GraceError, match="differs from the recorded one"):
        store.add_request(Request(0, "initialise", seed=2), 0)


def test_final_fates_are_decided_anew(store: Store) -> None:
    store.add_told(Result(Request(0, "x"), failure="f"), [Fate("a", "kept", "r")], 0, 0.0)
    store.set_final_fates([Fate("b", "dropped", "r")], 0, 0)
    store.set_final_fates([Fate("c", "kept", "r")], 0, 0)
    assert [row.fate.program_id for row in store.fates()] == ["a", "c"]


def holding(store: Store, **states: int) -> None:
    """Trajectories of so many states, by digest."""
    rows = [(n, digest, "expert", "t", "train", count, 0, "") for n, (digest, count) in enumerate(states.items())]
    store._file.write([("INSERT INTO trajectories VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)])


def test_rewards_are_exact_and_compact(store: Store) -> None:
    steps = np.repeat([0.0, 1.0], 5_000)
    odd = np.array([math.nan, 0.1, -1e308, 5e-324])
    holding(store, steps=10_000, odd=4)
    store.put("p", {"steps": steps, "odd": odd})
    found = store.get("p", ["steps", "odd", "absent"])
    assert set(found) == {"steps", "odd"}
    assert np.array_equal(found["steps"], steps)
    assert np.array_equal(found["odd"], odd, equal_nan=True)
    assert store.get("q", ["steps"]) == {}
    size = store._file.rows("SELECT length(blob) FROM rewards WHERE trajectory = 'steps'")[0][0]
    assert size < steps.nbytes / 50


def test_the_problem_is_kept(store: Store) -> None:
    problem = label(vector_set(2, 1), "last")
    store.set_problem(problem)
    assert store.trajectories() == trajectory_rows(problem)
    assert [row.positives for row in store.trajectories()] == [1, 1, 0]


def test_threads_may_write_at_once(store: Store) -> None:
    def write(name: str) -> None:
        for number in range(20):
            store.put(name, {str(number): np.zeros(3)})

    holding(store, **{str(number): 3 for number in range(20)})
    threads = [threading.Thread(target=write, args=(f"p{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(store.get(f"p{i}", map(str, range(20)))) == 20 for i in range(4))


def test_a_full_disk_is_no_damage_when_a_run_is_opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(code: int) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = code
        raise error

    path = store.folder / "run.db"
    monkeypatch.setattr(Database, "_check", lambda _: fails(sqlite3.SQLITE_IOERR))
    with pytest.raises(GraceError, match=r"run\.db: disk I/O error; expected .*free some space") as caught:
        Store(path)
    assert caught.value.exit_code == 1
    monkeypatch.setattr(Database, "_check", lambda _: fails(sqlite3.SQLITE_CORRUPT))
    with pytest.raises(InputError, match="not the database of a run"):
        Store(path)


def test_a_full_disk_is_said_in_one_line_and_what_is_there_stays(store: Store) -> None:
    pages = store._file._db.execute("PRAGMA page_count").fetchone()[0]
    store._file._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(GraceError, match=r"run\.db: database or disk is full; expected .*free some space"):
        store.set_meta("large", "x" * 1_000_000)
    store._file._db.execute("PRAGMA max_page_count = 100000")
    assert store.meta("large") == ""
    store.set_meta("large", "fits")
    assert store.meta("large") == "fits"


def test_a_database_that_lost_a_table_is_no_defect(store: Store) -> None:
    store._file._db.execute("DROP TABLE proposals")
    with pytest.raises(GraceError, match="no such table: proposals; expected a whole database"):
        store.spent()


@pytest.mark.parametrize("said", ["99", "\u00b2", "9" * 5000, "-1", ""])
def test_a_format_that_is_none_of_ours(said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(tmp_path / "run.db", create=True).close()
    with closing(sqlite3.connect(tmp_path / "run.db")) as database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'format'", (said,))
        database.commit()
    (tmp_path / "config.toml").write_text("")
    assert main(["show", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "a run of format" in told
    assert told.count("\n") == 1


def test_a_newer_run_an_absent_one_and_another_file_are_refused(tmp_path: Path) -> None:
    newer = tmp_path / "newer.db"
    Store(newer, create=True).close()
    with sqlite3.connect(newer) as database:
        database.execute("UPDATE meta SET value = '99'")
    text = tmp_path / "text.db"
    text.write_text("no database " * 1000)
    empty = tmp_path / "empty.db"
    empty.touch()
    for path, said in (
        (newer, "format 99"),
        (tmp_path / "absent.db", "expected the folder of a run"),
        (text, "not the database of a run"),
        (empty, "not the database of a run"),
    ):
        with pytest.raises(InputError, match=said):
            Store(path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_database_reads_as_a_new_one(version: int, tmp_path: Path) -> None:
    """But for the threshold, which format 1 did not know."""
    path = tmp_path / "run.db"
    store = Store(path, create=True)
    request, draft = Request(0, "mutate", ("a",)), Program("d", "x = (", 1)
    store.add_request(request, 1)
    store.add_proposals({0: Proposal("x = (")})
    store.add_proposals({0: Proposal("source")}, 1, "repair")
    told = Result(request, Program("p", "source", 7), FULL, drafts=(Draft(draft, Evaluation("rejected", "line 1")),))
    store.add_told(told, [Fate("p", "kept", "")], 1, 2.0)
    store.add_request(Request(1, "mutate"), 1)
    store.add_proposals({1: Proposal("", "exhausted: 20 variations", exhausted=True)})
    store.add_told(Result(Request(1, "mutate"), failure="exhausted: 20 variations", exhausted=True), [], 1, 3.0)
    new = store.told(), store.records(), list(store.proposals()), store.requests()
    store.close()
    made_older(path, version)
    old = Store(path)
    assert old.format == version
    assert (old.told(), list(old.proposals()), old.requests()) == (new[0], new[2], new[3])
    before, after = (Separation.of(records["p"].evaluation) for records in (new[1], old.records()))
    assert before == after
    assert old.records()["d"].evaluation == new[1]["d"].evaluation
    old.close()


def test_a_run_is_read_where_this_user_may_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the results that a killed process left in the log beside the database. Nothing is written there."""
    store = Store(tmp_path / "run.db", create=True)
    store.set_meta("label", "last")
    (tmp_path / "seen").mkdir()
    for file in [*tmp_path.glob("run.db*")]:
        (tmp_path / "seen" / file.name).write_bytes(file.read_bytes())
    store.close()
    before = {file.name: file.read_bytes() for file in (tmp_path / "seen").iterdir() if not file.name.endswith("-shm")}
    (tmp_path / "seen" / "run.db-shm").unlink(missing_ok=True)
    monkeypatch.setattr("grace_irl.runs.database.os.access", lambda *_: False)
    with closing(Store(tmp_path / "seen" / "run.db")) as read:
        assert read.meta("label") == "last"
    assert "run.db-wal" in before
    assert {file.name: file.read_bytes() for file in (tmp_path / "seen").iterdir()} == before
