"""The tables of run.db, the database of a run, and checks of a file that should be such a database.

The checks are needed because a file may be damaged or edited, and because SQLite stores values of any type in any
column. The checks compare the file's tables with `SCHEMA`, and the values of a row with the types of their columns.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, get_args

from grace_irl.errors import InputError
from grace_irl.programs.library import segment
from grace_irl.programs.program import Definition, Program, Within

FORMAT = 5  # format of run.db; a file with a higher number comes from a newer version
"""In format 1, the threshold of held-out accuracies was chosen on the held-out data. In format 2, requests had no
ancestors, and a repair was the only follow-up call. Format 3 lacked the columns `exhausted` and `takes_action`. In
format 4, the size of a program was its number of syntax nodes."""

SCHEMA = """
-- One file per run, which holds the whole state of the run. A new search that receives the stored results, in
-- order, is in the same state as the search of the run.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- The demonstrations. A digest is a hash of all that programs may see of a trajectory.
CREATE TABLE trajectories (
  place INTEGER PRIMARY KEY, digest TEXT NOT NULL, role TEXT NOT NULL, task TEXT NOT NULL,
  split TEXT NOT NULL, states INTEGER NOT NULL, positives INTEGER NOT NULL, source TEXT NOT NULL
);

-- Goal states of expert trajectories (label rule "goal"): who named them, and the whole answer of a model. The last
-- attempt for a trajectory counts. Indices are a JSON list of numbers from 1, or the JSON text null if the answer
-- cannot be used.
CREATE TABLE goals (
  digest TEXT NOT NULL, attempt INTEGER NOT NULL, origin TEXT NOT NULL, indices TEXT NOT NULL, failure TEXT NOT NULL,
  prompt TEXT NOT NULL, raw TEXT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL,
  seconds REAL NOT NULL, PRIMARY KEY (digest, attempt)
);

-- The requests of the search, in order.
CREATE TABLE requests (
  idx INTEGER PRIMARY KEY, generation INTEGER NOT NULL, operator TEXT NOT NULL, parents TEXT NOT NULL,
  seed TEXT NOT NULL, context TEXT NOT NULL, sample INTEGER NOT NULL, samples INTEGER NOT NULL,
  ancestors TEXT NOT NULL
);

-- The answers of the proposer, with prompt and raw text. Attempt 0 is the first answer to a request. Later attempts are
-- follow-up calls, each with the name of its step.
CREATE TABLE proposals (
  idx INTEGER NOT NULL, attempt INTEGER NOT NULL, step TEXT NOT NULL, source TEXT NOT NULL, failure TEXT NOT NULL,
  reasoning TEXT NOT NULL, prompt TEXT NOT NULL, raw TEXT NOT NULL, sketch TEXT NOT NULL,
  tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, seconds REAL NOT NULL, prior REAL NOT NULL,
  exhausted INTEGER NOT NULL, PRIMARY KEY (idx, attempt)
);

-- The results that the search received (its method `tell`), in order. `seconds` is the search time until then,
-- including that before the run was resumed. `drafts` is a JSON list of the ids of versions that follow-up calls
-- replaced. `notes` is a JSON object with the texts of follow-up calls that write no program.
CREATE TABLE results (
  idx INTEGER PRIMARY KEY, program TEXT, failure TEXT NOT NULL, seconds REAL NOT NULL,
  drafts TEXT NOT NULL, notes TEXT NOT NULL
);

-- Every program that the search received, with its first score. `idx` is the first request that it answered.
CREATE TABLE programs (
  id TEXT PRIMARY KEY, idx INTEGER NOT NULL, source TEXT NOT NULL, size INTEGER NOT NULL,
  operator TEXT NOT NULL, parents TEXT NOT NULL, prior REAL NOT NULL, evaluation TEXT NOT NULL,
  takes_action INTEGER NOT NULL
) WITHOUT ROWID;

-- The functions and classes of these programs (docs/runs.md: Reuse). `first` and `last` are lines of the source.
CREATE TABLE definitions (
  program TEXT NOT NULL, place INTEGER NOT NULL, digest TEXT NOT NULL, name TEXT NOT NULL, within TEXT NOT NULL,
  calls INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (program, place)
) WITHOUT ROWID;

-- Each distinct function or class once, with its source in the first program that defines it.
CREATE TABLE functions (
  digest TEXT PRIMARY KEY, name TEXT NOT NULL, program TEXT NOT NULL, source TEXT NOT NULL
) WITHOUT ROWID;

-- The verdict on each candidate. `final` is 1 if it was given because the run ended: a resumed run gives it anew.
CREATE TABLE fates (
  id INTEGER PRIMARY KEY, idx INTEGER NOT NULL, generation INTEGER NOT NULL, program TEXT NOT NULL,
  verdict TEXT NOT NULL, reason TEXT NOT NULL, final INTEGER NOT NULL
);

-- Rewards (T+1,) as deflated little-endian float64.
CREATE TABLE rewards (
  program TEXT NOT NULL, trajectory TEXT NOT NULL, blob BLOB NOT NULL, PRIMARY KEY (program, trajectory)
) WITHOUT ROWID;

CREATE TABLE events (id INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL);
"""


OLDER = {
    5: (("size INTEGER NOT NULL", "nodes INTEGER NOT NULL"),),
    4: (
        ("exhausted INTEGER NOT NULL, PRIMARY", "PRIMARY"),
        ("evaluation TEXT NOT NULL,\n  takes_action INTEGER NOT NULL\n", "evaluation TEXT NOT NULL\n"),
    ),
    3: (
        ("samples INTEGER NOT NULL,\n  ancestors TEXT NOT NULL\n", "samples INTEGER NOT NULL\n"),
        ("attempt INTEGER NOT NULL, step TEXT NOT NULL, source", "attempt INTEGER NOT NULL, source"),
        (",\n  drafts TEXT NOT NULL, notes TEXT NOT NULL\n", ", draft TEXT\n"),
    ),
}
"""Changes of `SCHEMA` as pairs (new text, old text), by the format that introduced the new text."""

_STEP = "CASE attempt WHEN 0 THEN '' ELSE 'repair' END"
_PROPOSALS = """
CREATE TEMP VIEW proposals AS SELECT idx, attempt, {step} AS step, source, failure, reasoning, prompt, raw, sketch,
  tokens_in, tokens_out, seconds, prior, failure LIKE 'exhausted%' AS exhausted FROM main.proposals;"""
_PROGRAMS = """
-- Programs of older files are shown, and never scored again. So it does not matter which arguments they take.
CREATE TEMP VIEW programs AS SELECT id, idx, source, nodes AS size, operator, parents, prior, evaluation,
  {takes_action} AS takes_action FROM main.programs;
"""
_BEFORE_3 = """
CREATE TEMP VIEW requests AS SELECT *, '[]' AS ancestors FROM main.requests;
CREATE TEMP VIEW results AS SELECT idx, program, failure, seconds,
  CASE WHEN draft IS NULL THEN '[]' ELSE json_array(draft) END AS drafts, '{}' AS notes FROM main.results;
"""


def views(version: int) -> str:
    """SQL for temporary views that show a database of an older format with the tables and columns of `FORMAT`."""
    if version >= FORMAT:
        return ""
    made = _PROGRAMS.format(takes_action="takes_action" if version > 3 else "0")
    if version < 4:
        made += _PROPOSALS.format(step="step" if version > 2 else _STEP)
    return made + (_BEFORE_3 if version < 3 else "")


def require_schema(
    database: sqlite3.Connection, path: Path, tables: Sequence[str], version: int = FORMAT
) -> tuple[str, ...]:
    """Refuse a database whose tables differ from the schema of its format.

    Views and triggers from somebody else could run any SQL.

    Args:
        database: an open connection.
        path: the database file.
        tables: names of the tables to check. With two or more names, the function checks the whole database: it also
            refuses views, triggers and tables that the schema lacks.
        version: the format of the database.

    Returns:
        The names of all objects that `SCHEMA` defines.

    Raises:
        InputError: a table or another object differs from `SCHEMA`.
    """
    expected = _schema(version)
    found = {row[0]: row for row in database.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema")}
    names = [name for name in (*expected, *found) if name in tables]
    if len(tables) > 1:
        names += [name for name in found if name not in expected]
    wrong = next((name for name in names if found.get(name) != expected.get(name)), None)
    if wrong is not None:
        raise InputError(
            f"{path}: not the database of a run ({wrong!r} is not as this version makes it); expected one made by fit"
        )
    return tuple(expected)


@cache
def _schema(version: int) -> dict[str, tuple[str, str, str, str | None]]:
    made = SCHEMA
    for now, before in (pair for since, pairs in OLDER.items() if version < since for pair in pairs):
        made = made.replace(now, before)
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(made)
        return {row[0]: row for row in database.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema")}


DEFINITION_COLUMNS = "program, digest, name, within, calls, first, last"


def definition_rows(program: Program) -> list[tuple[object, ...]]:
    """The rows of the table `definitions` for a program: one per function or class."""
    return [
        (program.id, place, each.digest, each.name, each.within, each.calls, each.first, each.last)
        for place, each in enumerate(program.functions)
    ]


def function_rows(program: Program) -> list[tuple[object, ...]]:
    """The rows of the table `functions` for a program. They include functions that the table may have already."""
    return [(each.digest, each.name, program.id, segment(program.source, each)) for each in program.functions]


def definitions(rows: Iterable[tuple[Any, ...]]) -> dict[str, tuple[Definition, ...]]:
    """Group rows of the table `definitions` by program.

    Args:
        rows: values of `DEFINITION_COLUMNS`, sorted by program and place.

    Raises:
        ValueError: a damaged row.
    """
    found: dict[str, list[Definition]] = {}
    for program, digest, name, within, calls, first, last in rows:
        if within not in get_args(Within):
            raise ValueError(f"{within!r} is none of {', '.join(get_args(Within))}")
        found.setdefault(program, []).append(Definition(name, digest, within, calls, first, last))
    return {program: tuple(each) for program, each in found.items()}


DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, zlib.error)
"""Types of errors that a damaged row can cause."""

_KINDS: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "TEXT": (str,), "REAL": (float, int), "BLOB": (bytes,)}


class ColumnTypes:
    """Checks of values from a database against the types of their columns.

    Args:
        database: an open connection.
        path: the database file.
    """

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path
        self._tables: dict[str, dict[str, tuple[type, ...]]] = {}

    def require(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Refuse values whose types differ from the declared types of their columns.

        Args:
            table: the table's name.
            names: names of the selected columns. Values of a computed column, which is not in the table, are not
                checked.
            rows: the selected rows.

        Raises:
            InputError: a value of a different type.
        """
        if not rows:
            return
        declared = self._declared(table)
        for place, name in enumerate(names):
            kinds = declared.get(name)
            wrong = None if kinds is None else next((row for row in rows if not isinstance(row[place], kinds)), None)
            if kinds is not None and wrong is not None:
                found, expected = type(wrong[place]).__name__, " or ".join(kind.__name__ for kind in kinds)
                with self.reading(table):
                    raise TypeError(f"{name} is {found}, not {expected}")

    @contextmanager
    def reading(self, table: str) -> Iterator[None]:
        """Report an error of `DAMAGE` within the block as a damaged row of this table.

        Raises:
            InputError: such an error occurred.
        """
        try:
            yield
        except DAMAGE as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
            raise InputError(
                f"{self._path}: a row of {table!r} is damaged ({reason}); expected it as grace-irl wrote it: "
                "put a copy of the file back, or fit into a new folder"
            ) from None

    def _declared(self, table: str) -> dict[str, tuple[type, ...]]:
        if table not in self._tables:
            about = self._database.execute(f"PRAGMA table_info({table})").fetchall()
            self._tables[table] = {
                name: _KINDS[kind] if needed or key else (*_KINDS.get(kind, (object,)), type(None))
                for _, name, kind, needed, _, key in about
            }
        return self._tables[table]
