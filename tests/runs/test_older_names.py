"""A run whose ids follow an older rule goes on as if they were today's."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from contextlib import closing
from pathlib import Path

from grace_irl.runs.fit import Parts, resume, start
from grace_irl.runs.run import Run
from tests.fakes.data import vector_set
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.fakes.scripted_proposer import ScriptedProposer
from tests.runs.scripted_run import CONFIG
from tests.runs.test_resume import memory

COLUMNS = {
    "programs": ("id", "parents"),
    "results": ("program", "draft"),
    "requests": ("parents",),
    "definitions": ("program",),
    "functions": ("program",),
    "fates": ("program",),
    "rewards": ("program",),
}
NAME = re.compile(r"\b[0-9a-f]{16}\b")


def older(text: str) -> str:
    """A text in which ids are those of another rule."""
    return NAME.sub(lambda found: hashlib.sha256(found[0].encode()).hexdigest()[:16], text)


def renamed(database: Path) -> None:
    """Makes a run one of an older version."""
    with closing(sqlite3.connect(database)) as db:
        db.create_function("older", 1, lambda text: text and older(text))
        for table, columns in COLUMNS.items():
            for column in columns:
                db.execute(f"UPDATE {table} SET {column} = older({column})")
        db.execute("UPDATE meta SET value = older(value) WHERE key = 'best'")
        db.execute("DELETE FROM meta WHERE key = 'identity'")
        db.commit()


def parts() -> Parts:
    return Parts(vector_set(noise=0.05), ScriptedProposer(width=1), InProcessSandbox())


def went_on(folder: Path) -> Run:
    return resume(folder, {"search.generations": 12}, parts=parts())


def test_a_run_of_an_older_version_knows_its_programs_again(tmp_path: Path) -> None:
    short = CONFIG.model_copy(update={"search": CONFIG.search.model_copy(update={"generations": 3})})
    for name in ("old", "new"):
        start(short, tmp_path / name, parts())
    renamed(tmp_path / "old" / "run.db")
    before = {record[0] for record in memory(tmp_path / "old")[1]}  # type: ignore[attr-defined]
    went_on(tmp_path / "old")
    went_on(tmp_path / "new")

    def told(name: str) -> list[tuple[object, ...]]:
        """What was told, by sources in place of names."""
        results, records, _, fates, *_ = memory(tmp_path / name)
        source = {each[0]: each[1].source for each in records}  # type: ignore[attr-defined]
        rows: list[tuple[object, ...]] = [(index, source.get(program)) for index, program, _ in results]  # type: ignore[attr-defined]
        return rows + [(row.index, row.fate.verdict, source[row.fate.program_id]) for row in fates]  # type: ignore[attr-defined]

    assert told("old") == told("new")
    after = [record[0] for record in memory(tmp_path / "old")[1]]  # type: ignore[attr-defined]
    assert before < set(after)
    assert any(row[1] == "duplicate" and row[0] > 20 for row in told("new"))
