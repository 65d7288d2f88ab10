"""Readers of tables in files: CSV, JSON Lines, and Parquet with one column per number of a state."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from grace_irl.demos.foreign.arrow import columns_of
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.foreign.episode import EpisodesSource
from grace_irl.demos.foreign.objects import source_of
from grace_irl.demos.foreign.streamed import StreamedTable, table_bytes
from grace_irl.demos.foreign.table import table_source
from grace_irl.demos.memory import BeyondLimitError, Memory
from grace_irl.demos.source import Source
from grace_irl.errors import InputError

DELIMITERS = (",", "\t", ";", "|")
"""Possible separators of cells. The reader takes the separator that is most frequent in the first line."""

DECIMAL_COMMA = re.compile(r"-?\d+,\d+([eE][+-]?\d+)?")
"""Pattern of a number with a decimal comma. Files with such numbers separate cells by semicolons."""

CSV_FACTOR, JSON_FACTOR = 6, 20
"""Maximum bytes of memory per byte of a file, while the file's rows become episodes."""

DAMAGED = (OSError, EOFError, zlib.error, UnicodeDecodeError)
"""Errors from files that are truncated, not in gzip format, or not UTF-8."""

MOST_GZIP = 1032
"""Maximum number of unpacked bytes per byte of gzip."""


def open_csv(file: Path, memory: Memory, columns: Columns = Columns()) -> EpisodesSource:
    """Open a CSV or TSV file, which may be compressed by gzip.

    Args:
        file: the file. Its first line names the columns.
        memory: memory limit of the demonstration set.
        columns: the user's choice of columns.

    Raises:
        InputError: lines with different numbers of cells, text that is not UTF-8, or columns that cannot be used.
    """
    _require(memory, _size(file) * CSV_FACTOR, file)
    try:
        with _opened(file) as stream:
            head = stream.readline(1 << 20).decode("utf-8", "replace")
        delimiter = max(DELIMITERS, key=head.count)
        table = _csv(file, delimiter, ".")
        if delimiter == ";" and _has_decimal_commas(table):
            table = _csv(file, delimiter, ",")
    except (pa.ArrowException, *DAMAGED) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0].removeprefix("CSV parse error: ").rstrip(". ")
        raise InputError(
            f"{file}: not readable as CSV ({said[:200]}); expected a line of names, then one line for each state"
        ) from None
    return table_source(columns_of(table, str(file)), str(file), columns)


def open_json_lines(file: Path, memory: Memory, columns: Columns = Columns()) -> Source:
    """Open a file with one JSON object per line.

    An object is either a state, with a key for the episode of the state, or a whole episode.

    Args:
        file: the file, which may be compressed by gzip.
        memory: memory limit of the demonstration set.
        columns: the user's choice of columns.

    Raises:
        InputError: a line that is not a JSON object, or objects that cannot be used.
    """
    _require(memory, _size(file) * JSON_FACTOR, file)
    rows = []
    try:
        with _opened(file) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    rows.append(_object(line, f"{file}: line {number}"))
    except DAMAGED as error:
        raise InputError(f"{file}: not readable ({error}); expected a whole file: write or copy it again") from None
    if not rows:
        raise InputError(f"{file}: no lines; expected a JSON object in each line")
    return source_of(rows, str(file), columns)


def open_wide_parquet(file: Path, memory: Memory, columns: Columns = Columns()) -> Source:
    """Open a Parquet file with one column per number of a state. A file larger than memory is read in parts.

    Args:
        file: the file.
        memory: memory limit of the demonstration set.
        columns: the user's choice of columns.

    Raises:
        InputError: a damaged file, or columns that cannot be used.
    """
    try:
        opened = pq.ParquetFile(file)
        if table_bytes(opened.metadata) > memory.left:
            return StreamedTable(file, memory, columns)
        table = columns_of(opened.read(use_threads=False), str(file))
        pa.default_memory_pool().release_unused()  # else pyarrow keeps the freed memory for later files
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        raise InputError(
            f"{file}: not readable as Parquet ({said}); expected a whole file: it may be truncated, write or "
            "copy it again"
        ) from None
    return table_source(table, str(file), columns)


def _require(memory: Memory, nbytes: int, file: Path) -> None:
    """Check that a text file, which is read as a whole, fits into memory.

    Raises:
        BeyondLimitError: the file needs more memory than the limit.
    """
    try:
        memory.require(nbytes, str(file))
    except BeyondLimitError as error:
        raise BeyondLimitError(f"{error}; as Parquet, a table of any size is read in parts") from None


def _csv(file: Path, delimiter: str, point: str) -> pa.Table:
    # Arrow parses blocks of a file, and must know if a cell with a line break may lie in two of them. It accepts any
    # quotes, so it could take many rows for one cell with line breaks.
    try:
        table = _parsed(file, delimiter, point)
    except pa.ArrowInvalid:
        if not _is_whole(file, delimiter):
            raise
        return _parsed(file, delimiter, point, line_breaks=True)
    if _has_line_breaks(table) and not _is_whole(file, delimiter):
        raise pa.ArrowInvalid("a quoted cell ends in another row, within a cell")
    return table


def _parsed(file: Path, delimiter: str, point: str, *, line_breaks: bool = False) -> pa.Table:
    with _opened(file) as stream:
        return arrow_csv.read_csv(
            stream,
            read_options=arrow_csv.ReadOptions(use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=line_breaks),
            convert_options=arrow_csv.ConvertOptions(decimal_point=point, strings_can_be_null=False),
        )


def _has_line_breaks(table: pa.Table) -> bool:
    places = [place for place, kind in enumerate(table.schema.types) if pa.types.is_string(kind)]
    return any(pc.any(pc.match_substring(table.column(place), "\n")).as_py() for place in places)


def _is_whole(file: Path, delimiter: str) -> bool:
    """Whether all quotes of a CSV file enclose whole cells, and all rows have as many cells."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        with io.TextIOWrapper(_opened(file), encoding="utf-8", newline="") as text:
            rows = csv.reader(text, delimiter=delimiter, strict=True)
            width = len(next(rows, ()))
            return all(len(row) == width for row in rows if row)
    except (csv.Error, UnicodeDecodeError):
        return False
    finally:
        csv.field_size_limit(limit)


def _has_decimal_commas(table: pa.Table) -> bool:
    """Whether a table writes decimals with commas.

    The result is True if no column holds decimals with points, and some column holds decimals with commas. Most texts
    of that column must be numbers: decimals with commas, or whole numbers.
    """
    if any(pa.types.is_floating(column.type) for column in table.columns):
        return False
    for column in table.columns:
        texts = [text for text in column.to_pylist() if text] if pa.types.is_string(column.type) else []
        commas = sum(DECIMAL_COMMA.fullmatch(text) is not None for text in texts)
        if commas and commas + sum(text.lstrip("-").isdigit() for text in texts) > len(texts) / 2:
            return True
    return False


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {str(error)[:100]}; expected a JSON object in each line") from None
    if not isinstance(found, dict):
        raise InputError(f"{where}: {type(found).__name__}; expected a JSON object in each line")
    return found


def _is_packed(file: Path) -> bool:
    return file.suffix.lower() == ".gz"


def _opened(file: Path) -> Any:
    return gzip.open(file, "rb") if _is_packed(file) else file.open("rb")


def _size(file: Path) -> int:
    """The size of a file's text in bytes. For a compressed file, the size is an estimate."""
    size = file.stat().st_size
    if not _is_packed(file):
        return size
    # If a gzip file has one member, the last four bytes hold the unpacked size modulo 2**32. In a damaged file, these
    # bytes may hold any number.
    stated = 0
    if 4 <= size < 1 << 30:
        with file.open("rb") as stream:
            stream.seek(-4, os.SEEK_END)
            stated = int.from_bytes(stream.read(), "little")
    return min(max(stated, size), size * MOST_GZIP)
