"""The episodes of a Minari dataset in arrow or Parquet, one folder per episode.

The library Arrow allocates any size that a compressed column claims to have. So arrow files with compressed columns are
refused. Minari never writes such files. For Parquet files, the sizes are checked first (`parquet/pages.py`). Every
batch of rows is validated before use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from grace_irl.contents import require_inside
from grace_irl.demos.arrow_stream import batches_of
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.pages import Pages
from grace_irl.demos.parquet.schema import is_text, numbers_of
from grace_irl.demos.ui.texts import read_json
from grace_irl.errors import InputError

MAGIC = b"ARROW1\0\0"

COLUMNS = ("observations", "actions", "rewards", "terminations", "truncations", "infos.log_prob")
"""Columns that are read from a Parquet file. An arrow file is read as a whole. An arrow file is not compressed, so it
needs no more memory than its size."""

TEXT_BYTES = 64
"""Memory in bytes of one Python string in a list, without the characters of the string."""


class ArrowEpisodes:
    """The episodes of a dataset in arrow or Parquet (see `Episodes`).

    Args:
        folder: data folder of the dataset, with one subfolder per episode.
        memory: memory limit of the demonstration set.
        parquet: whether the files are Parquet. If not, they are arrow.
    """

    def __init__(self, folder: Path, memory: Memory, *, parquet: bool) -> None:
        self._folder = folder
        self._memory = memory
        self._parquet = parquet
        self._read: tuple[int, list[pa.RecordBatch]] | None = None

    def about(self, index: int, where: str) -> Mapping[str, Any]:
        """See `Episodes.about`."""
        file = self._folder / str(index) / "metadata.json"
        require_inside(file, self._folder)
        about = read_json(file, self._memory)
        if not isinstance(about, Mapping):
            raise InputError(f"{where}: {file} is no object; expected what Minari writes: write it again")
        return about

    def array(self, index: int, names: tuple[str, ...], shape: tuple[int, ...] | None, where: str) -> NDArray[Any]:
        """See `Episodes.array`."""
        parts = [self._numbers(column, shape, where) for column in self._columns(index, names, where)]
        self._memory.require(sum(part.nbytes for part in parts), f"{where}: {'/'.join(names)}")
        whole = np.concatenate(parts)
        return whole if names[0] == "observations" else whole[:-1]  # per-step columns have one extra row as padding

    def texts(self, index: int, names: tuple[str, ...], where: str) -> list[str]:
        """See `Episodes.texts`."""
        found: list[str] = []
        for column in self._columns(index, names, where):
            if not is_text(column.type) or column.null_count:
                raise InputError(f"{where}: {'/'.join(names)} is {column.type}; expected texts without nulls")
            self._memory.require(column.nbytes + TEXT_BYTES * len(column), f"{where}: {'/'.join(names)}")
            found += column.to_pylist()
        return found

    def holds(self, index: int, names: tuple[str, ...], where: str) -> bool:
        """See `Episodes.holds`."""
        kind: pa.DataType = pa.struct(list(self._batches(index, where)[0].schema))
        for name in names:
            place = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            if place < 0:
                return False
            kind = kind.field(place).type
        return not pa.types.is_struct(kind)

    def _columns(self, index: int, names: tuple[str, ...], where: str) -> Iterator[pa.Array]:
        if not self.holds(index, names, where):
            raise InputError(
                f"{where}: no column {'.'.join(names)[:80]!r}; expected what Minari writes: write it again"
            )
        for batch in self._batches(index, where):
            column = batch.column(names[0])
            for name in names[1:]:
                column = column.field(name)
            yield column

    def _numbers(self, column: pa.Array, shape: tuple[int, ...] | None, where: str) -> NDArray[Any]:
        if not pa.types.is_fixed_size_list(column.type):
            return _plain(column, where)
        width = column.type.list_size
        if shape is not None and int(np.prod(shape)) != width:
            raise InputError(f"{where}: lists of {width} numbers; expected arrays of shape {shape}")
        return _plain(column.flatten(), where).reshape(len(column), *((width,) if shape is None else shape))

    def _batches(self, index: int, where: str) -> list[pa.RecordBatch]:
        if self._read is None or self._read[0] != index:
            self._read = None
            self._read = index, self._opened(index, where)
        return self._read[1]

    def _opened(self, index: int, where: str) -> list[pa.RecordBatch]:
        folder = self._folder / str(index)
        require_inside(folder, self._folder)
        names = sorted(file for file in folder.iterdir() if file.name != "metadata.json" and file.name[0] not in "_.")
        batches: list[pa.RecordBatch] = []
        for file in names:
            require_inside(file, self._folder)
            if not file.is_file():
                raise InputError(f"{file}: not a file; expected the files of one episode")
            for batch in self._parquet_batches(file) if self._parquet else self._arrow_batches(file):
                batch.validate(full=True)
                batches.append(batch)
        if not sum(map(len, batches)):
            raise InputError(f"{where}: no rows; expected at least one state")
        return batches

    def _parquet_batches(self, file: Path) -> Iterator[pa.RecordBatch]:
        opened = pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)
        self._memory.require(
            Pages(file, opened, self._memory).batch_bytes(COLUMNS, opened.metadata.num_rows), str(file)
        )
        yield from opened.iter_batches(max(opened.metadata.num_rows, 1), columns=list(COLUMNS), use_threads=False)

    def _arrow_batches(self, file: Path) -> Iterator[pa.RecordBatch]:
        """The batches of a file, in order. The file's footer is ignored, because the footer may list other data."""
        self._memory.require(file.stat().st_size, str(file))
        data = file.read_bytes()
        if not data.startswith(MAGIC) or not data.endswith(MAGIC[:6]):
            raise InputError(f"{file}: no arrow file, or damaged; expected what Minari writes: write it again")
        yield from batches_of(pa.py_buffer(data).slice(len(MAGIC)), str(file))


def _plain(column: pa.Array, where: str) -> NDArray[Any]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"{where}: a column of {str(kind)[:80]}; expected numbers")
    return numbers_of(column)
