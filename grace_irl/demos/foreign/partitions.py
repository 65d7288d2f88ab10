"""Reader of folders of Parquet files in partitions, such as `episode=3/part-0.parquet` (Hive, Spark, pandas).

The name of a partition gives a column of the table and the column's value for the rows inside, here `episode` and 3.
All files are read as one table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from grace_irl.contents import require_inside
from grace_irl.demos.foreign.arrow import columns_of
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.foreign.episode import EpisodesSource
from grace_irl.demos.foreign.streamed import FACTOR
from grace_irl.demos.foreign.table import table_source
from grace_irl.demos.memory import Memory
from grace_irl.errors import InputError

DEEPEST = 5
"""Maximum depth of the partitions in which files are searched."""


def is_dataset(folder: Path) -> bool:
    """Whether a folder has partitions with Parquet files."""
    return next(_files(folder), None) is not None


def open_dataset(folder: Path, memory: Memory, columns: Columns = Columns()) -> EpisodesSource:
    """Open a folder that `is_dataset` recognises.

    Args:
        folder: the folder.
        memory: memory limit of the demonstration set.
        columns: the user's choice of columns.

    Raises:
        InputError: damaged files, or columns that cannot be used.
    """
    files = sorted(_files(folder), key=lambda file: [_natural(part) for part in file.parts])
    for file in files:
        require_inside(file, folder)
    try:
        about = [pq.read_metadata(file) for file in files]
        sizes = [each.row_group(group).total_byte_size for each in about for group in range(each.num_row_groups)]
        cells = sum(each.num_rows * (each.num_columns + DEEPEST) for each in about)
        memory.require(FACTOR * max(sum(sizes), 8 * cells), str(folder))
        found = ds.dataset(
            [str(file) for file in files],
            format="parquet",
            partitioning=ds.partitioning(_schema(folder, files), flavor="hive"),
            partition_base_dir=str(folder),
        )
        table = columns_of(found.to_table(use_threads=False), str(folder))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        raise InputError(
            f"{folder}: partitions that are not readable as one table ({said[:200]}); expected whole Parquet "
            "files with the same columns: write or copy them again"
        ) from None
    return table_source(table, str(folder), columns)


def _files(folder: Path, depth: int = 0) -> Iterator[Path]:
    """The Parquet files in the partitions of a folder, in any order."""
    for inside in folder.iterdir():
        if "=" in inside.name and inside.is_dir() and depth < DEEPEST:
            yield from _files(inside, depth + 1)
        elif depth and inside.suffix.lower() == ".parquet" and not inside.name.startswith((".", "_")):
            yield inside


def _schema(folder: Path, files: Sequence[Path]) -> pa.Schema:
    """The columns from the names of partitions. A column that the first file also holds has its type from that file."""
    stored, values = pq.read_schema(files[0]), dict[str, list[str]]()
    for file in files:
        for part in file.parent.relative_to(folder).parts:
            name, _, value = part.partition("=")
            values.setdefault(name, []).append(value)
    kinds = {name: pa.int64() if all(map(str.isdecimal, each)) else pa.string() for name, each in values.items()}
    return pa.schema({name: stored.field(name).type if name in stored.names else kinds[name] for name in kinds})


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts `part-2` before `part-10`."""
    return [(each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in re.split(r"(\d+)", name)]
