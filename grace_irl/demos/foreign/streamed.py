"""Reader of Parquet tables that are larger than memory. It reads one batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from grace_irl.demos.components import source_in_order
from grace_irl.demos.foreign.arrow import columns_of
from grace_irl.demos.foreign.columns import Columns, column_of_episodes
from grace_irl.demos.foreign.episode import EpisodesSource
from grace_irl.demos.foreign.table import table_source
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.pages import Pages
from grace_irl.demos.trajectory import Demonstration, Role
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate

BATCH_BYTES = 8 << 20
"""Target for the size of a batch of rows in bytes."""

FACTOR = 4
"""Maximum bytes of memory per byte of a table or a batch of its rows, while the rows become episodes."""


def table_bytes(about: pq.FileMetaData) -> int:
    """Maximum memory in bytes that a file with this metadata needs, if it is read as a whole."""
    stored = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
    return int(FACTOR * max(stored, 8 * about.num_rows * about.num_columns))


class StreamedTable:
    """An open Parquet file with one column per number of a state (see `Source`). Its rows are read in batches.

    The attribute `header` describes the set of demonstrations. The header is made from the first episodes of the file.
    The rows of an episode must be consecutive, and a column must give the episode of each row.

    Args:
        file: the file.
        memory: memory limit of the demonstration set.
        columns: the user's choice of columns.

    Attributes:
        nbytes: size of the whole table in bytes.

    Raises:
        InputError: no column of episodes, an episode beyond the memory limit, or columns that cannot be used.
    """

    def __init__(self, file: Path, memory: Memory, columns: Columns) -> None:
        self.path = file
        self._memory, self._columns = memory, columns
        about = pq.read_metadata(file)
        self._row = 8 * about.num_columns
        self.nbytes = int(about.num_rows) * self._row
        names = [about.schema.column(place).path for place in range(about.num_columns)]
        found = columns.episode or column_of_episodes(names)
        if found is None or found not in names:
            memory.require(table_bytes(about), f"{file}, whose episodes have no numbers,")
        self._episode = str(found)
        first = next(self._parts())
        self.header = replace(table_source(first, str(file), columns).header, span=None)
        self._fields: Sequence[str] = self.header.metadata.fields

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        number, known = 0, set[Any]()
        for part in self._parts():
            ids = dict.fromkeys(part[self._episode].tolist())
            if again := known & ids.keys():
                raise InputError(
                    f"{self.path}: {self._episode} {next(iter(again))} comes back after another one; expected the rows "
                    "of an episode together: sort by episode and step"
                )
            known |= ids.keys()
            source = table_source(part, str(self.path), self._columns, number)
            self._require_alike(source)
            ordered = source_in_order(source, self._fields)
            source.header = replace(self.header, role=source.header.role)
            for item in ordered.demonstrations(role, allocate):
                number += 1
                yield item

    def _require_alike(self, source: EpisodesSource) -> None:
        """Check that the states of `source` have the same columns as the states of the first episodes."""
        if sorted(source.header.metadata.fields) != sorted(self.header.metadata.fields):
            raise InputError(
                f"{self.path}: some episodes have other numbers in their states than the first ones; expected the "
                "same: name the columns (--state-columns)"
            )

    def _batch_bytes(self, opened: pq.ParquetFile, rows: int) -> int:
        """Upper bound on the memory in bytes of a decoded batch of rows. A batch may span two row groups."""
        pages, schema = Pages(self.path, opened, self._memory), opened.schema_arrow
        if any(pa.types.is_nested(schema.field(name).type) for name in schema.names):
            return pages.batch_bytes(schema.names, rows)
        return 2 * max(sum(each.part(rows) for each in chunks) for chunks in pages.chunks(schema.names).values())

    def _parts(self) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
        """Yield the table in parts of whole episodes, in order."""
        rest: dict[str, np.ndarray[Any, Any]] | None = None
        rows = max(min(BATCH_BYTES, self._memory.left // (2 * FACTOR)) // self._row, 1)
        try:
            opened = pq.ParquetFile(self.path, pre_buffer=False)
            self._memory.require(self._batch_bytes(opened, rows), f"{self.path}: a batch of rows")
            for batch in opened.iter_batches(rows, use_threads=False):
                part = columns_of(pa.Table.from_batches([batch]), str(self.path))
                if rest is not None:
                    part = {name: np.concatenate([rest[name], column]) for name, column in part.items()}
                ids = part[self._episode]
                self._memory.require(FACTOR * self._row * len(ids), f"{self.path}: an episode")
                last = np.flatnonzero(ids != ids[-1])  # rows before the last episode, which may go on in the next batch
                stop = int(last[-1]) + 1 if len(last) else 0
                rest = {name: column[stop:].copy() for name, column in part.items()}
                if stop:
                    yield {name: column[:stop] for name, column in part.items()}
        except (pa.ArrowException, OSError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
            raise InputError(
                f"{self.path}: not readable as Parquet ({said}); expected a whole file: it may be truncated, write or "
                "copy it again"
            ) from None
        if rest is not None:
            yield rest
