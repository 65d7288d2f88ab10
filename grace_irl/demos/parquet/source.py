"""Reads demonstrations in Parquet: one row per state, the metadata of the set in the file.

A trajectory of T steps is T+1 consecutive rows with one number in `episode`; `action`, `reward` and
`log_prob` are null in its last row. States are lists, fixed in size or not; grids have `height` and `width`
beside them, so that trajectories of one file may differ in size. docs/demonstrations.md has the whole schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from grace_irl.demos.header import KEY, Header
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.episode import NumberStates, ParquetEpisode, PartStates, States, Texts, TextStates
from grace_irl.demos.parquet.pages import Pages
from grace_irl.demos.parquet.rows import (
    COLUMNS,
    PART,
    STATE_COLUMNS,
    STEP_COLUMNS,
    TEXT_COLUMNS,
    WORD_COLUMNS,
    WORDED_COLUMNS,
    BatchRows,
    is_list,
    is_text,
    numbers_of,
    part_columns,
    part_of,
    read_ahead,
    text_columns,
)
from grace_irl.demos.parquet.screenshots import SetPictures
from grace_irl.demos.trajectory import Demonstration, Metadata, Role
from grace_irl.errors import InputError
from grace_irl.states import KINDS
from grace_irl.states.kind import Allocate, StateKind
from grace_irl.states.record import RECORD
from grace_irl.states.vector import VECTOR

BATCH_ROWS = 16_384
"""Rows decoded at once, and rows of a row group: small beside a million, large beside a batch's overhead."""

UNEVEN = "columns of different numbers of rows"

HEAVY_ROWS = 512
"""The same for kinds whose states are large."""

FOREIGN = {"episode": "episode_index", "reward": "next.reward", "terminated": "next.done"}
"""Names of columns in robots' data sets (LeRobot's)."""

EPISODE_ROWS = 1 << 18
"""The same for the numbers of episodes alone."""

SHARED_TEXTS = 1024
"""Texts that are looked for among later ones."""

NUMBER_BYTES = 128
"""Of an episode's number and length, while its file is read."""


class ParquetSource:
    """A Parquet file of this schema, opened (see `Source`).

    Texts are read as a dictionary, so that one which is in many rows is in memory once.

    Args:
        path: of it.
        memory: of the set.

    Raises:
        InputError: not Parquet, truncated, empty, of another schema, or larger than the memory.
    """

    def __init__(self, path: Path, memory: Memory) -> None:
        self.path = path
        self._memory = memory
        try:
            # pre_buffer would hold a whole row group of a foreign file in memory, compressed and decoded.
            schema = pq.read_schema(path)
            self._file = pq.ParquetFile(
                path, read_dictionary=text_columns(schema), pre_buffer=False, page_checksum_verification=True
            )
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last of names of columns
            raise InputError(
                f"{path}: not readable as Parquet ({first_line(error)}); expected a whole file: "
                "it may be truncated, write or copy it again"
            ) from None
        self._schema: pa.Schema = self._file.schema_arrow
        raw = (self._file.metadata.metadata or {}).get(KEY.encode())
        self.header = _guess(self._schema) if raw is None else Header.from_json(raw, str(path))
        if self.header.role is None and "role" in self._schema.names:
            self.header = replace(self.header, role="mixed")
        self.pictures = SetPictures(path, self._schema)
        self._parts = part_columns(self._schema.names)
        self._kind.require_names(list(self._parts), str(path))
        foreign = "episode" not in self._schema.names
        self._names = {name: theirs for name, theirs in FOREIGN.items() if foreign and theirs in self._schema.names}
        self._check_columns()
        self._batch_rows = HEAVY_ROWS if self._kind.heavy else BATCH_ROWS
        self._columns = self._wanted()
        pages = Pages(path, self._file, memory)
        memory.require(pages.batch_bytes(self._columns, self._batch_rows), f"{path}: a batch of rows")
        memory.require(pages.batch_bytes([self._name("episode")], EPISODE_ROWS), f"{path}: column 'episode'")
        self._lengths = self._episode_lengths()
        self._shared: dict[str, str] = {}
        self._texts = Texts(memory, self._kind)

    @property
    def _kind(self) -> StateKind:
        return self.header.metadata.state_kind

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        episode: ParquetEpisode | None = None
        index = 0
        before = 0
        try:
            batches = self._file.iter_batches(self._batch_rows, columns=self._columns, use_threads=False)
            for rows in read_ahead(batches, {theirs: name for name, theirs in self._names.items()}):
                start = 0
                while start < len(rows):
                    if index == len(self._lengths):
                        raise pa.ArrowInvalid(UNEVEN)
                    if episode is None:
                        episode = ParquetEpisode(self, rows, start, index, self._lengths[index], allocate)
                    start = episode.fill(rows, start, before)
                    if episode.full:
                        yield episode.demonstration(role)
                        episode, index = None, index + 1
                before += len(rows)
            if index < len(self._lengths):
                raise pa.ArrowInvalid(UNEVEN)
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{self.path}: episode {index} is damaged ({first_line(error)}); expected a whole Parquet "
                "file: "
                "write or copy it again"
            ) from None

    def _wanted(self) -> list[str]:
        """The columns that trajectories are made of."""
        columns = (*self._parts.values(), *TEXT_COLUMNS, *STEP_COLUMNS, *STATE_COLUMNS, *self._kind.sides)
        wanted = [name for name in map(self._name, columns) if name in self._schema.names]
        if self._kind.annotated:
            wanted += [name for name in WORD_COLUMNS if name in self._schema.names]
            wanted += self.pictures.columns  # and not the pictures themselves
        return wanted

    def _name(self, name: str) -> str:
        """The name that a column of the schema has in the file."""
        return self._names.get(name, name)

    def _check_columns(self) -> None:
        names, kind = self._schema.names, self._kind
        stated = [f"{PART}{part.name}" for part in self.header.parts] or list(self._parts.values()) or ["state"]
        needed = ["episode", *stated, *kind.sides]
        missing = [name for name in needed if self._name(name) not in names]
        if missing:
            raise InputError(
                f"{self.path}: no column {missing[0]!r} among {', '.join(names)[:200] or 'none'}; expected one "
                "row per state "
                "with the columns of docs/demonstrations.md"
            )
        for part_name, column in self._parts.items():
            found = self._column(column)
            part = part_of(part_name, found)
            if part is None or not kind.stores(part):
                raise InputError(f"{self.path}: column {column!r} is {str(found)[:80]}; expected {kind.stored_as}")
        for name, (fits, expected) in (COLUMNS | (WORDED_COLUMNS if kind.annotated else {})).items():
            found = self._column(self._name(name)) if self._name(name) in names else None
            if found is not None and not fits(found):
                raise InputError(f"{self.path}: column {name!r} is {found}; expected {expected}")
        if self._file.metadata.num_rows == 0:
            raise InputError(f"{self.path}: no rows; expected at least one trajectory")

    def _episode_lengths(self) -> list[int]:
        """Rows of each episode, from the one small column: memory is reserved before states come."""
        lengths: list[int] = []
        seen: set[int] = set()
        last: int | None = None
        try:
            for batch in self._file.iter_batches(EPISODE_ROWS, columns=[self._name("episode")], use_threads=False):
                self._memory.require(NUMBER_BYTES * len(lengths), f"{self.path}: {len(lengths):,} episodes")
                ids = numbers_of(batch.column(0))
                bounds = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
                for start, stop in pairwise(bounds):
                    number = int(ids[start])
                    if number == last:
                        lengths[-1] += stop - start
                        continue
                    if number in seen:
                        raise InputError(
                            f"{self.path}: episode {number} comes back after another one; "
                            "expected the rows of an episode together: sort by episode and step"
                        )
                    seen.add(number)
                    lengths.append(stop - start)
                    last = number
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{self.path}: column 'episode' cannot be read ({first_line(error)}); expected integers without nulls"
            ) from None
        if not lengths:
            raise InputError(f"{self.path}: no rows; expected at least one trajectory")
        return lengths

    def require(self, nbytes: int, what: str) -> None:
        """See `Memory.require`."""
        self._memory.require(nbytes, what)

    def shared(self, text: str) -> str:
        """The same text, as it was made of an earlier batch: one that is in many episodes is in memory once."""
        if len(self._shared) >= SHARED_TEXTS:
            self._shared.clear()
        return self._shared.setdefault(text, text)

    def states(self, where: str, rows: BatchRows, row: int, length: int, allocate: Allocate) -> PartStates:
        """The collector of the states of the trajectory that begins in this row."""
        shapes = {part.name: part.shape for part in self.header.parts}
        found: dict[str, States] = {}
        for name, column in self._parts.items():
            if self._is_text(column):
                found[name] = TextStates(where, self._texts, column, allocate)
                continue
            shape = shapes.get(name) if name else None
            if name and shape is None and not is_list(self._column(column)):
                shape = ()
            found[name] = NumberStates(where, rows, row, length, self._kind, column, shape, allocate)
        return PartStates(self._kind, found)

    def _column(self, name: str) -> pa.DataType:
        return self._schema.field(name).type

    def _is_text(self, column: str) -> bool:
        return is_text(self._column(column))


def first_line(error: Exception) -> str:
    """The first line of an error's message, without its full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")


def _guess(schema: pa.Schema) -> Header:
    """The header of a file that somebody else wrote: the columns show the kind, or several."""
    found = part_columns(schema.names)
    parts = [part_of(name, schema.field(column).type) for name, column in list(found.items())[:1]]
    fitting = [kind for kind in KINDS.values() if parts and all(part and kind.stores(part) for part in parts)]
    fitting = [kind for kind in fitting if set(kind.sides) <= set(schema.names)]
    most = max((len(kind.sides) for kind in fitting), default=0)
    fitting = [kind for kind in fitting if len(kind.sides) == most]
    kind = fitting[-1] if fitting else RECORD if found and "" not in found else VECTOR
    names = tuple(kind.name for kind in fitting)
    return Header(Metadata(kind.name, view=kind.view), kinds=names if len(names) > 1 else ())
