"""The SQLite file of a run's database: opening, schema checks, and errors for the user."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from grace_irl.contents import require_plain_database
from grace_irl.errors import GraceError, InputError
from grace_irl.runs.schema import FORMAT, SCHEMA, ColumnTypes, require_schema, views

LONGEST = 1 << 28  # maximum size of one value in bytes
PRAGMAS = (
    "trusted_schema=OFF",  # a schema from somebody else must not call functions
    "cell_size_check=ON",
    "mmap_size=0",
    "journal_mode=WAL",
    "synchronous=NORMAL",
)


class Database:
    """The SQLite file of a run, in WAL mode. Methods may be called from several threads.

    If this user may read the file but not write it, a copy is opened. `close` deletes the copy.

    Attributes:
        path: the file.
        format: version number of the schema.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open or create a database.

        Raises:
            InputError: a file that is not the database of a run, a database of a newer version, or a link.
            GraceError: the machine is at fault, such as a full disk.
        """
        require_plain_database(path)
        if not create and not path.is_file():
            compared = (path.parent / "compare.toml").is_file()
            found = "a comparison, whose results are in its table.md" if compared else f"no {path.name} in it"
            below = ", such as those in its jobs/*/fit" if compared else ""
            raise InputError(f"{path.parent}: {found}; expected the folder of a run{below}")
        self.path = path
        self._lock = threading.RLock()
        self._open = False  # while False, `__init__` handles database errors itself
        self._copy = None if create or _writable(path) else _copied(path)
        opened = path if self._copy is None else Path(self._copy.name) / path.name
        try:
            self._db = sqlite3.connect(opened, check_same_thread=False, isolation_level=None, timeout=30.0)
        except sqlite3.OperationalError as error:
            raise self._trouble(error) from None
        self._columns = ColumnTypes(self._db, path)
        try:
            for pragma in PRAGMAS:
                self._db.execute(f"PRAGMA {pragma}")
            self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            if create:
                self._create()
            self._check()
            self._open = True
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            self.close()
            if _machines_fault(error):
                raise self._trouble(error) from None
            raise InputError(f"{path}: not the database of a run ({error}); expected one made by fit") from None
        except BaseException:
            self.close()
            raise

    def _create(self) -> None:
        self._db.executescript(f"BEGIN;{SCHEMA}INSERT INTO meta VALUES ('format', '{FORMAT}');COMMIT;")

    def _check(self) -> None:
        tables = require_schema(self._db, self.path, ("meta",))
        rows = self.rows("SELECT value FROM meta WHERE key = ?", ("format",))
        found = str(rows[0][0]) if rows else ""
        if not _FORMAT.fullmatch(found) or int(found) > FORMAT:
            raise InputError(
                f"{self.path.parent}: a run of format {(found or 'unknown')[:20]}; "
                f"this version reads format {FORMAT} and older: use the version of grace-irl that made it"
            )
        self.format = int(found)
        require_schema(self._db, self.path, tables, self.format)
        self._db.executescript(views(self.format))
        for table, column, other, key in _REFERENCES:
            strays = f"{column} FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT {key} FROM {other})"
            if self._db.execute(f"SELECT {strays} LIMIT 1").fetchone():
                with self.reading(table):
                    raise ValueError(f"a {column} that is not in {other!r}")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()
            if self._copy is not None:
                self._copy.cleanup()

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query. Its first table's column types are checked.

        Raises:
            InputError: the file is damaged.
            GraceError: the machine is at fault.
        """
        with self._lock, self._troubles():
            cursor = self._db.execute(sql, values)
            rows = cursor.fetchall()
            self._columns.require(_TABLE.findall(sql)[0], [about[0] for about in cursor.description], rows)
            return rows

    def write(self, statements: Sequence[tuple[str, Sequence[Sequence[object]]]]) -> None:
        """Execute statements, each with its rows of values, in one transaction.

        Raises:
            InputError: the file is damaged.
            GraceError: the machine is at fault.
        """
        with self._lock, self._troubles():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for sql, rows in statements:
                    self._db.executemany(sql, rows)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # after some errors, such as a full disk, SQLite has already rolled back
                    self._db.execute("ROLLBACK")
                raise

    def reading(self, table: str) -> AbstractContextManager[None]:
        """Turn errors in the values of a table into an `InputError` that names the table."""
        return self._columns.reading(table)

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        """Turn database errors into errors for the user. An error from a defect of this code stays unchanged.

        The new error is a GraceError if the machine is the cause (a full disk, a file locked by another process), and
        an InputError if the file is damaged.
        """
        try:
            yield
        except sqlite3.DatabaseError as error:
            if not self._open or isinstance(error, sqlite3.ProgrammingError | sqlite3.IntegrityError):
                raise
            raise self._trouble(error) from None

    def _trouble(self, error: Exception) -> GraceError:
        kind = GraceError if _machines_fault(error) else InputError
        return kind(
            f"{self.path}: {error}; expected a whole database, on a disk with room: free some space, or put a copy back"
        )


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _copied(path: Path) -> TemporaryDirectory[str]:
    """Copy a database from a place that this user may only read, because SQLite writes files beside a database.

    Raises:
        GraceError: the database cannot be read or copied.
    """
    copy = TemporaryDirectory(prefix="grace-irl-")
    try:
        for each in (path, path.with_name(f"{path.name}-wal")):
            if each.exists():
                shutil.copyfile(each, Path(copy.name) / each.name)
    except OSError as error:
        copy.cleanup()
        raise GraceError(
            f"{path}: cannot be read ({error.strerror}); expected a file that this user may read, and room for its copy"
        ) from None
    return copy


def _machines_fault(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _MACHINE


_MACHINE = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
)
"""SQLite error codes whose cause is the machine, such as a full disk, and not the file's content."""
_REFERENCES = (
    ("results", "idx", "requests", "idx"),
    ("results", "program", "programs", "id"),
    ("programs", "idx", "requests", "idx"),
    ("definitions", "program", "programs", "id"),
    ("functions", "program", "programs", "id"),
)
"""References as (table, column, other table, key). Each value of the column must be a key of the other table."""
_TABLE = re.compile(r" FROM (\w+)")
_FORMAT = re.compile(r"[0-9]{1,9}")  # excludes non-ASCII digits, and numbers too long for `int`
