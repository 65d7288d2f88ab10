"""Unpacked sizes of the pages in a Parquet file, read before Arrow unpacks the pages.

Arrow allocates the size that a page's header claims. The header of a page of one kilobyte may claim gigabytes, while
the file's footer claims a small size. So this module adds up the sizes in all page headers before Arrow decodes data.
Headers are structs of parquet.thrift in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from grace_irl.demos.memory import Memory
from grace_irl.errors import InputError

LONGEST_HEADER = 1 << 20
"""Maximum size of a page header in bytes. Usual headers have 20 to 200 bytes. A header with the page's minimum and
maximum value may have more."""

TEXT_ENCODINGS = {0, 2, 6, 8}
"""Accepted encodings of texts: PLAIN, PLAIN_DICTIONARY, DELTA_LENGTH_BYTE_ARRAY and RLE_DICTIONARY. DELTA_BYTE_ARRAY is
refused. In that encoding, a text may repeat the beginning of the previous text, so few bytes may unpack to any length.
"""

LEVEL_BYTES = 12
"""Additional bytes in memory per value, for the value's definition and repetition levels, list offset and null flag."""

_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_HEADERS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
"""Map from a kind of page to the number of the header field that only pages of this kind have."""


@dataclass(frozen=True)
class Chunk:
    """Sizes of a column chunk, which is one column in one row group.

    Attributes:
        values: number of values (numbers or texts), including nulls and empty lists.
        unpacked: size of all pages in bytes, unpacked.
        largest: size of the largest page in bytes, unpacked.
        text: whether the values are texts or bytes, instead of numbers.
        width: bytes in memory per value, without levels and flags (`LEVEL_BYTES`). The width of a number is the size of
            its type. The width of a text outside structs is 0, because `unpacked` counts the text. The width of a text
            in a struct is the size of the longest dictionary entry, because Arrow copies an entry into each row.
    """

    values: int
    unpacked: int
    largest: int
    text: bool
    width: int

    @property
    def decoded(self) -> int:
        """Upper bound on the memory in bytes that the decoded values need."""
        return self.values * (LEVEL_BYTES + self.width) + self.unpacked * self.text + self.largest

    def part(self, rows: int) -> int:
        """Upper bound on the memory in bytes that `rows` decoded rows need, if each row has one value."""
        if self.text:
            return self.decoded
        return min(self.values, rows) * (LEVEL_BYTES + self.width) + self.largest


class Pages:
    """The pages of all columns of a file.

    Args:
        path: path of the file.
        file: the file, opened by pyarrow.
        memory: memory limit for all files of the data set.

    Raises:
        InputError: a chunk in another file, an encrypted chunk, size statistics that do not fit the column, or a
            damaged footer.
    """

    def __init__(self, path: Path, file: pq.ParquetFile, memory: Memory) -> None:
        self._path = path
        self._memory = memory
        self._about: Any = file.metadata
        self._size = path.stat().st_size
        self._chunks: dict[tuple[int, int], Chunk] = {}
        self._require_plain_chunks()

    def chunks(self, names: Sequence[str], group: int | None = None) -> dict[int, list[Chunk]]:
        """The chunks of some columns, by row group.

        Args:
            names: names of columns, or `column.field` for a field of a struct.
            group: index of one row group; None for all.

        Raises:
            InputError: a page that is larger than the memory limit, pages that contradict the footer, or texts in an
                encoding outside `TEXT_ENCODINGS`.
        """
        schema, about = self._about.schema, self._about
        paths = [schema.column(number).path for number in range(about.num_columns)]
        wanted = [n for n, path in enumerate(paths) if any(f"{path}.".startswith(f"{name}.") for name in names)]
        groups = range(about.num_row_groups) if group is None else [group]
        with self._path.open("rb") as file:
            return {number: [self._chunk(file, number, column) for column in wanted] for number in groups}

    def batch_bytes(self, names: Sequence[str], rows: int) -> int:
        """Upper bound on the memory in bytes of any `rows` consecutive rows, decoded.

        A row group that has any of these rows counts in full, because one row may hold all values of the group.

        Args:
            names: names of columns as for `chunks`.
            rows: number of rows.

        Raises:
            InputError: the errors of `chunks`.
        """
        decoded = [sum(chunk.decoded for chunk in chunks) for chunks in self.chunks(names).values()]
        ends = [0]
        for number in range(self._about.num_row_groups):
            ends.append(ends[-1] + self._about.row_group(number).num_rows)
        largest = first = 0
        running = 0
        for last, size in enumerate(decoded):
            running += size
            while ends[last] - ends[first + 1] >= rows:
                running -= decoded[first]
                first += 1
            largest = max(largest, running)
        return largest

    def _chunk(self, file: BinaryIO, group: int, column: int) -> Chunk:
        if (group, column) in self._chunks:
            return self._chunks[group, column]
        about = self._about.row_group(group).column(column)
        kind = self._about.schema.column(column)
        where = f"{self._path}: column {kind.path!r}, row group {group}"
        text = about.physical_type == "BYTE_ARRAY"
        values = unpacked = largest = longest = 0
        for page, start in self._headers(file, about, where):
            self._memory.require(page[2], f"{where}: a page")
            unpacked += page[2]
            largest = max(largest, page[2])
            numbers = page.get(_HEADERS.get(page[1], -1), {})
            if page[1] in (_DATA, _DATA_V2):
                values += numbers.get(1, 0)
            encoding = numbers.get(4 if page[1] == _DATA_V2 else 2, 0)
            if text and page[1] == _DICTIONARY and "." in kind.path:
                longest = _longest(file, start, page, about.compression)
            if text and numbers and encoding not in TEXT_ENCODINGS:
                raise InputError(
                    f"{where}: texts in an encoding (DELTA_BYTE_ARRAY or the like) that does not say how long they "
                    "are; expected plain texts or a dictionary: write it again"
                )
        if values != about.num_values:
            raise InputError(
                f"{where}: pages of {values:,} values, and {about.num_values:,} in the footer; expected as many: "
                "write or copy it again"
            )
        width = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT96": 12, "FIXED_LEN_BYTE_ARRAY": max(kind.length, 0)}
        chunk = Chunk(values, unpacked, largest, text, longest if text else width.get(about.physical_type, 8))
        return self._chunks.setdefault((group, column), chunk)

    def _require_plain_chunks(self) -> None:
        """Check that all chunks lie in this file, are not encrypted and have size statistics that fit their column.

        pyarrow raises no error for encryption or wrong statistics, but ends the process.

        Raises:
            InputError: a chunk that fails this check, or a footer that cannot be read.
        """
        with self._path.open("rb") as file:
            file.seek(max(self._size - 8, 0))
            length = int.from_bytes(file.read(4), "little")
            file.seek(max(self._size - 8 - length, 0))
            data = file.read(length)
        try:
            groups = _Reading(data).struct().get(4)
            for number, group in enumerate(groups or []):
                for column, chunk in enumerate(group[1]):
                    self._require_plain(chunk, f"{self._path}: column {column}, row group {number}", column)
        except (IndexError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"{self._path}: a footer that is damaged ({error}); {_AGAIN}") from None

    def _require_plain(self, chunk: dict[int, Any], where: str, column: int) -> None:
        if 1 in chunk:
            raise InputError(f"{where}: lies in another file; expected it in this one")
        if 3 not in chunk or 8 in chunk or 9 in chunk:
            raise InputError(f"{where}: encrypted, or without a description; expected plain columns: write it again")
        kind, sizes = self._about.schema.column(column), chunk[3].get(16, {})
        levels = ((2, kind.max_repetition_level), (3, kind.max_definition_level))
        wrong = any(len(sizes.get(field) or range(most + 1)) != most + 1 for field, most in levels)
        if wrong or (1 in sizes and kind.physical_type != "BYTE_ARRAY"):
            raise InputError(f"{where}: size statistics that do not fit the column; {_AGAIN}")

    def _headers(self, file: BinaryIO, about: Any, where: str) -> Iterator[tuple[dict[int, Any], int]]:
        """Yield the header of each page of a chunk, and the offset of the page's data in the file.

        A header is a map from field numbers (as in parquet.thrift) to values.
        """
        start = about.data_page_offset
        if about.has_dictionary_page and 0 < about.dictionary_page_offset < start:
            start = about.dictionary_page_offset
        end = start + about.total_compressed_size
        if not 0 < start <= end <= self._size:
            raise InputError(f"{where}: outside of the file; expected a whole file: write or copy it again")
        values = 0
        while start < end and values < about.num_values:
            page, length = self._header(file, start, where)
            kind, unpacked, packed = (page.get(field, -1) for field in (1, 2, 3))
            inner = page.get(_HEADERS.get(kind, -1) if type(kind) is int else -1, {})
            counts: list[Any] = [inner.get(field, 0) for field in (1, 2, 4)] if isinstance(inner, dict) else [None]
            if not all(type(each) is int for each in (kind, unpacked, packed, *counts)) or min(unpacked, packed) < 0:
                raise InputError(f"{where}: a page without its size; {_AGAIN}")
            begin = start + length
            start = begin + packed
            values += counts[0] if kind in (_DATA, _DATA_V2) else 0
            if start > end:
                raise InputError(f"{where}: a page that is cut off; {_AGAIN}")
            yield page, begin

    def _header(self, file: BinaryIO, start: int, where: str) -> tuple[dict[int, Any], int]:
        """The header of one page, and its length in bytes."""
        length = 512
        while True:
            file.seek(start)
            reading = _Reading(file.read(length))
            try:
                return reading.struct(), reading.at
            except IndexError:
                if length >= LONGEST_HEADER or start + length >= self._size:
                    raise InputError(f"{where}: a page's header that is cut off; {_AGAIN}") from None
                length *= 16
            except ValueError as error:
                raise InputError(f"{where}: a page's header that is damaged ({error}); {_AGAIN}") from None


def _longest(file: BinaryIO, start: int, page: dict[int, Any], compression: str) -> int:
    """Size in bytes of the longest text on a dictionary page.

    If the page cannot be decompressed here, the result is the page's unpacked size, which is an upper bound.
    """
    file.seek(start)
    packed, size = file.read(page[3]), page[2]
    try:
        data = (
            packed if compression == "UNCOMPRESSED" else pa.decompress(packed, size, compression.lower(), asbytes=True)
        )
    except (pa.ArrowException, OSError, ValueError):  # Hadoop's LZ4 format, or damaged data
        return int(size)
    # On the page, each text comes after its length, an integer of 4 bytes.
    at = longest = 0
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        longest = max(longest, length)
        at += 4 + length
    return min(longest, int(size))


_AGAIN = "expected a whole Parquet file: write or copy it again"


class _Reading:
    """A parser for bytes in Thrift's compact protocol. It raises IndexError if the bytes end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read a struct as a map from field numbers to values. The value is None for floats, texts and bytes.

        Raises:
            ValueError: invalid data, or fields of other types than numbers, booleans, texts, bytes, lists and structs.
        """
        if depth > 8:
            raise ValueError("nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) & 15:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int, *, listed: bool = False) -> Any:
        if kind in (1, 2):  # a boolean: in a list it is a byte; elsewhere type 1 means true and type 2 means false
            return self._byte() == 1 if listed else kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, depth + 1, listed=True) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"a field of type {kind}")

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number of more than 64 bits")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
