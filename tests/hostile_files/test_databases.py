"""Databases of runs: data or one line, whatever their tables, cells and blobs hold, and whatever lies beside them."""

from __future__ import annotations

import shutil
import sqlite3
import struct
import tracemalloc
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from grace_irl.cli import main
from grace_irl.runs.expand.round import Round, write_round
from tests.hostile_files.traps import changed, demos, line, run

Capture = pytest.CaptureFixture[str]
READERS = (["show"], ["show", "--json"], ["report"], ["export", "--out"], ["export", "--recording"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    return run(folder, demos(folder))


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """A run that somebody else sent."""
    shutil.copy(made.parent / "set.parquet", tmp_path)
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def execute(folder: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as database:
        database.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            database.execute(statement, values)
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def commands(folder: Path) -> list[list[str]]:
    """Everything that reads a run."""
    data = str(folder.parent / "set.parquet")
    found = [
        [*command, str(folder.parent / "file")] if command[-1][0] == "-" and command[0] == "export" else command
        for command in READERS
    ]
    found = [
        [command[0], str(folder), *command[1:], *(["--force"] if command[0] == "export" else [])] for command in found
    ]
    return [*found, ["fit", "--resume", str(folder), "--demos", data, "--max-calls", "5", "--workers", "1"]]


def test_a_rollback_journal_deletes_no_file(copy: Path, tmp_path: Path, capsys: Capture) -> None:
    """SQLite rolls a hot journal back, and then deletes the file that the journal names as its parent."""
    precious = tmp_path / "precious"
    precious.write_text("the user's own")
    execute(copy, "PRAGMA journal_mode=DELETE")
    name = str(precious).encode()
    page = (copy / "run.db").read_bytes()[16:18]
    size = struct.unpack(">H", page)[0]
    header = struct.pack(
        ">8sIIIII", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 0, 1, len((copy / "run.db").read_bytes()) // size, 512, size
    )
    lock_page = 0x40000000 // size + 1
    total = sum(struct.unpack(f"{len(name)}b", name)) & 0xFFFFFFFF
    trailer = struct.pack(">I", lock_page) + name + struct.pack(">II", len(name), total) + header[:8]
    (copy / "run.db-journal").write_bytes(header.ljust(512, b"\0") + trailer)
    for command in commands(copy):
        assert main(command) == 2
        assert "run.db-journal: a rollback journal; expected" in line(capsys)
    assert precious.exists()


@pytest.mark.parametrize(
    "statements",
    [
        # A view that never ends, in the place of a table.
        (
            "DROP TABLE meta",
            "CREATE VIEW meta AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
            "SELECT i AS key, 'x' AS value FROM n",
        ),
        ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM programs; END",),
        ("CREATE VIEW more AS SELECT 1",),
        ("CREATE TABLE more (a)",),
        ("CREATE INDEX more ON events (kind)",),
        ("DROP TABLE rewards",),
        ("ALTER TABLE events ADD COLUMN bomb AS (zeroblob(1000000000))",),
        ("UPDATE sqlite_schema SET sql = 'nonsense' WHERE name = 'events'",),
    ],
    ids=lambda statements: statements[-1][:24],
)
def test_tables_that_a_run_does_not_have(copy: Path, statements: tuple[str, ...], capsys: Capture) -> None:
    execute(copy, *statements)
    for command in commands(copy):
        assert main(command) == 2
        assert "not the database of a run" in line(capsys)


def test_a_blob_is_inflated_to_the_length_that_it_must_have(copy: Path, capsys: Capture) -> None:
    bomb = zlib.compress(bytes(512 << 20), 9)
    assert len(bomb) < 1 << 20
    execute(copy, "UPDATE rewards SET blob = ?", values=(bomb,))
    tracemalloc.start()
    try:
        assert main(["report", str(copy)]) == 2
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "a row of 'rewards' is damaged" in line(capsys)
    assert peak < 128 << 20


def test_a_claim_of_many_states_is_not_believed(copy: Path, capsys: Capture) -> None:
    execute(copy, "UPDATE trajectories SET states = 1000000000000")
    for command in commands(copy):
        assert main(command) in (0, 1, 2)
        if command[0] in ("report", "fit"):
            assert "states or positives are out of range" in line(capsys)


CELLS = (b"\xff\x00", "", "x", "[]", "{}", "null", "[1", -1, 0, 2**62, 1.5, float("inf"), "\x1b[2J\u202e", "[" * 5000)


@pytest.mark.slow
def test_a_changed_cell_gives_data_or_one_line(made: Path, tmp_path: Path, capsys: Capture) -> None:
    """Every column of every table, each with half of the values that no run writes there."""
    with closing(sqlite3.connect(made / "run.db")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns = [(t, row[1]) for t in tables for row in database.execute(f"PRAGMA table_info({t})")]
    draw = np.random.default_rng(0)
    shutil.copy(made.parent / "set.parquet", tmp_path)
    wrong = []
    for table, column in columns:
        for cell in draw.choice(len(CELLS), len(CELLS) // 2, replace=False):
            folder = tmp_path / "run"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(made, folder)
            value = CELLS[cell]
            with closing(sqlite3.connect(folder / "run.db")) as database:
                database.execute("PRAGMA synchronous=OFF")  # a copy that no crash can hurt
                where = f"SELECT * FROM {table} LIMIT 1"
                if not database.execute(where).fetchone():
                    continue
                try:
                    key = database.execute(f"SELECT {column} FROM {table} LIMIT 1").fetchone()[0]
                    database.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS ?", (value, key))
                    database.commit()
                except (sqlite3.IntegrityError, OverflowError):
                    continue
            command = commands(folder)[int(draw.integers(len(commands(folder))))]
            try:
                code = main(command)
            except BaseException as error:
                wrong.append(f"{table}.{column} = {value!r:.30}, {command[0]}: {error!r}")
                continue
            said = capsys.readouterr().err.strip().splitlines()
            if code and (not said or "a defect" in said[-1] or not said[-1].isprintable()):
                wrong.append(f"{table}.{column} = {value!r:.30}, {command[0]}: {code} {said[-1:]}")
    assert not wrong, "\n".join(wrong)


def test_a_configuration_that_is_no_toml(copy: Path, capsys: Capture) -> None:
    for text in ("[" * 100_000, "a = " + "[" * 100_000, "\x00", "seed = 1e999", "seed = " + "9" * 5000):
        (copy / "config.toml").write_text(text)
        for command in commands(copy):
            assert main(command) == 2
            assert "config.toml" in line(capsys) or "seed" in text


@pytest.mark.parametrize("flag", ["--replay", "--config"])
def test_a_recording_with_very_deep_json(flag: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "deep.jsonl").write_text('{"config": ' + '{"method": ' * 200_000)
    assert main(["fit", flag, str(tmp_path / "deep.jsonl"), "--out", str(tmp_path / "out")]) == 2
    assert "deep.jsonl" in line(capsys)
    assert not (tmp_path / "out").exists()


def test_a_round_that_names_files_elsewhere(made: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "expansion"
    (folder / "rounds" / "0").mkdir(parents=True)
    shutil.copytree(made, folder / "rounds" / "0" / "run")
    changed(folder / "rounds" / "0" / "run", expand__rounds=1)
    for name in ("../../../../../../etc/passwd", "/etc/passwd", "rounds/0/run/../../../../up"):
        write_round(folder / "rounds" / "0" / "round.json", Round(0, run=name, reward="rounds/0/run/reward.py"))
        for command in (["show", str(folder)], ["report", str(folder)]):
            assert main(command) == 2
            assert f"names {name!r}, outside of" in line(capsys)
