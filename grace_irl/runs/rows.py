"""Rows of run.db as they must be: SQLite keeps whatever is put into a column, and files are damaged or edited."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grace_irl.errors import InputError

DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, zlib.error)
"""What reading a row raises that is not as it was written."""

_KINDS: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "TEXT": (str,), "REAL": (float, int), "BLOB": (bytes,)}


class ColumnTypes:
    """The declared types of the columns of a database, by table.

    Args:
        database: an open one.
        path: of its file.
    """

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path
        self._tables: dict[str, dict[str, tuple[type, ...]]] = {}

    def require(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Refuses values of other types than their columns declare.

        Args:
            table: that the rows are of.
            names: of what was selected; what is no column of the table may be anything.
            rows: of it.

        Raises:
            InputError: such a value.
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
        """What is raised within is damage of this table.

        Raises:
            InputError: in its place.
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
