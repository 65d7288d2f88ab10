"""Rows of a Parquet file as numpy arrays, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate, PartLayout

LONGEST_TEXT = 1 << 20
"""Characters of what was done in a step, or what for. Real ones have 20 to 300."""


def read_ahead(batches: Iterator[pa.RecordBatch], names: Mapping[str, str]) -> Iterator[BatchRows]:
    """Decodes one batch ahead: Arrow decompresses on one core while the batch before is copied on another.

    One thread of ours instead of Arrow's pool, whose threads would each keep memory for their next batch.
    """

    def following() -> BatchRows | None:
        batch = next(batches, None)
        return None if batch is None else BatchRows(batch, names)

    with ThreadPoolExecutor(1, "parquet") as pool:
        coming = pool.submit(following)
        while (rows := coming.result()) is not None:
            coming = pool.submit(following)
            yield rows


class PartRows:
    """One part of the states of a batch: numbers in rows, or numbers of texts.

    Args:
        column: as Arrow has it.

    Raises:
        ArrowInvalid: a state is null.
    """

    def __init__(self, column: pa.Array) -> None:
        if column.null_count:
            raise pa.ArrowInvalid("a state is null")
        self._width: int | None = None
        if pa.types.is_dictionary(column.type):
            self.codes = numbers_of(column.indices)
            return
        if not is_list(column.type):
            self.values, self._width = numbers_of(column), 1
            return
        self.values = numbers_of(column.flatten())
        if pa.types.is_fixed_size_list(column.type):
            self._width = int(column.type.list_size)
        else:
            offsets = numbers_of(column.offsets).astype(np.int64)
            self._offsets = offsets - offsets[0]

    def size(self, row: int) -> int:
        """Numbers in a row."""
        return self._width if self._width is not None else int(self._offsets[row + 1] - self._offsets[row])

    def states(self, start: int, stop: int, size: int) -> NDArray[Any] | None:
        """Some rows, `(stop - start, size)`, or None if one of them is of another size."""
        if self._width is not None:
            if self._width != size:
                return None
            first, last = start * self._width, stop * self._width
        else:
            first, last = self._offsets[start], self._offsets[stop]
            if (np.diff(self._offsets[start : stop + 1]) != size).any():
                return None
        return self.values[first:last].reshape(stop - start, size)


class BatchRows:
    """The columns of one batch as numpy arrays, without a copy if Arrow's layout allows.

    Args:
        batch: of the file.
        names: names that columns have here, by those of the file; others keep theirs.
    """

    def __init__(self, batch: pa.RecordBatch, names: Mapping[str, str] | None = None) -> None:
        named = names or {}
        self._columns = {named.get(name, name): batch.column(name) for name in batch.schema.names}
        self._count = int(batch.num_rows)
        self._checked: dict[str, dict[int, str]] = {}
        self._made: dict[str, dict[int, str]] = {}
        self._parts: dict[str, PartRows] = {}

    def __len__(self) -> int:
        return self._count

    def part(self, name: str) -> PartRows:
        """A column of states.

        Raises:
            ArrowInvalid: a state is null.
        """
        if name not in self._parts:
            self._parts[name] = PartRows(self._columns[name])
        return self._parts[name]

    def checked(self, name: str, row: int, check: Callable[[str], str]) -> str:
        """The text of states in a row, as `check` gives it back; of equal ones in a batch, one is checked."""
        code = int(self.part(name).codes[row])
        known = self._checked.setdefault(name, {})
        if code not in known:
            known[code] = check(self.text(name, row) or "")
        return known[code]

    def text(self, name: str, row: int) -> str | None:
        """A text column's value in one row, or None if the column or the value is missing."""
        column = self._columns.get(name)
        return None if column is None else self._texts_of(column.slice(row, 1), name)[0]

    def texts(self, name: str, start: int, stop: int) -> set[str | None]:
        """The different values of a text column in some rows; {None} if it is missing."""
        column = self._columns.get(name)
        if column is None or stop <= start:
            return {None}
        part = column.slice(start, stop - start)
        if pa.types.is_dictionary(part.type) and not part.null_count:
            codes = numbers_of(part.indices)
            if (codes == codes[0]).all():  # nearly always: no text is decoded twice
                return {self.text(name, start)}
        return set(self._texts_of(part, name))

    def column(self, name: str, start: int, stop: int) -> pa.Array | None:
        """A column's rows as Arrow has them, or None if it is missing."""
        column = self._columns.get(name)
        return None if column is None else column.slice(start, stop - start)

    def words(self, name: str, start: int, stop: int) -> list[str | None]:
        """A text column's values in some rows; none at all if it is missing."""
        column = self.column(name, start, max(start, stop))
        if column is None:
            return []
        return self._texts_of(column, name)

    def _texts_of(self, part: pa.Array, name: str) -> list[str | None]:
        """Texts of a column; of a dictionary, each is made once, whatever the number of rows that it is in."""
        if part.null_count == len(part):
            return [None] * len(part)
        made = self._made.setdefault(name, {})
        try:
            if not pa.types.is_dictionary(part.type):
                return cast("list[str | None]", part.to_pylist())
            codes = part.indices.to_pylist()
            made.update({code: part.dictionary[code].as_py() for code in {*codes} - {None} - made.keys()})
        except UnicodeDecodeError:
            raise pa.ArrowInvalid(f"column {name!r} holds text that is not UTF-8") from None
        return [made.get(code) for code in codes]

    def numbers(self, name: str, start: int, stop: int) -> NDArray[Any] | None:
        """A column's values in some rows, or None if the column is missing or one of them is null."""
        column = self._columns.get(name)
        if column is None:
            return None
        part = column.slice(start, stop - start)
        if part.null_count or pa.types.is_null(part.type):
            return None
        if not is_list(part.type):
            return numbers_of(part)
        if pa.types.is_fixed_size_list(part.type):
            width = int(part.type.list_size)
        else:
            width = int(np.diff(numbers_of(column.offsets)).max())
            if (np.diff(numbers_of(part.offsets)) != width).any():
                raise pa.ArrowInvalid(f"column {name!r} holds lists of different sizes")
        return numbers_of(part.flatten()).reshape(stop - start, width)


class ParquetColumn:
    """One array of a trajectory, filled from batches; None if a batch lacks it."""

    def __init__(self, length: int, allocate: Allocate) -> None:
        self._length = length
        self._allocate = allocate
        self._missing = False
        self._array: NDArray[Any] | None = None

    def fill(self, rows: BatchRows, name: str, start: int, stop: int, filled: int) -> None:
        """Takes rows `start` to `stop` as entries from `filled` on."""
        if self._missing or (stop <= start and self._length):
            return
        values = rows.numbers(name, start, stop)
        self._missing = values is None
        if values is not None:
            if self._array is None:
                self._array = self._allocate((self._length, *values.shape[1:]), values.dtype)
            self._array[filled : filled + stop - start] = values

    @property
    def array(self) -> NDArray[Any] | None:
        return None if self._missing else self._array


class Words:
    """One text for each step of a trajectory, filled from batches; all of them or none.

    Args:
        name: of the column.
        steps: how many there are.
    """

    def __init__(self, name: str, steps: int) -> None:
        self._name = name
        self._steps = steps
        self._found: list[str | None] = []

    def fill(self, rows: BatchRows, start: int, stop: int) -> None:
        """Takes rows `start` to `stop`."""
        self._found += rows.words(self._name, start, stop)

    def texts(self, where: str) -> tuple[str, ...]:
        """All of them.

        Args:
            where: file and episode.

        Raises:
            InputError: one that is missing beside others, or too long.
        """
        texts = tuple(text for text in self._found if text is not None)
        if texts and len(texts) < self._steps:
            raise InputError(
                f"{where}, step {self._found.index(None)}: no {self._name} beside others; expected one for each step, "
                "or none: fill it in"
            )
        longest = max(map(len, texts), default=0)
        if longest > LONGEST_TEXT:
            raise InputError(
                f"{where}: {self._name} of {longest:,} characters; expected at most {LONGEST_TEXT:,}: cut it"
            )
        return texts


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list, of a fixed size or not (as pandas and polars write lists)."""
    return bool(pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of a list's values, or of a plain column's."""
    return kind.value_type if is_list(kind) else kind


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """The dtype of numbers of this type, without pandas."""
    # Unlike an array made of Python objects, this does not import pandas if there is one: 40 MiB.
    found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return found


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """The numbers of an Arrow array without nulls. `Array.to_numpy` would import pandas, if it is installed."""
    if array.null_count:
        raise pa.ArrowInvalid("null among numbers")
    if pa.types.is_boolean(array.type):
        bits = np.frombuffer(array.buffers()[1], np.uint8)
        flags = np.unpackbits(bits, count=array.offset + len(array), bitorder="little")
        return flags[array.offset :].view(np.bool_)
    return np.from_dlpack(array)


TEXT_COLUMNS = ("role", "task", "split", "instruction")
"""One value through an episode."""

STEP_COLUMNS = ("action", "reward", "log_prob")
"""Null in the last row of an episode."""

STATE_COLUMNS = ("goal", "terminated", "truncated")

WORD_COLUMNS = ("action_text", "step_instruction")
"""Columns of actions and their purpose in words; null in the last row of an episode."""

SCREENSHOT = "screenshot"
"""A struct: the field `PICTURE` is the picture itself, the others hold its place."""

PICTURE = "bytes"
PLACE_TEXTS = ("path", "sha256")
PLACE_NUMBERS = ("start", "length", "record", "step")


def is_text(kind: pa.DataType) -> bool:
    """Whether it is text, of any layout; a column of nulls may be one."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    views = (pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_string_view(kind))
    return any(views) or bool(pa.types.is_null(kind))


PART = "state/"
"""The beginning of the names of columns of named parts."""

FOREIGN_PART = "observation."
"""The same in robots' data sets (LeRobot's), which join nested names with dots."""


def part_columns(names: Sequence[str]) -> dict[str, str]:
    """The columns that hold states, by the names of the parts; {} if there are none."""
    if "state" in names:
        return {"": "state"}
    ours = {name.removeprefix(PART): name for name in names if name.startswith(PART)}
    theirs = {
        name.removeprefix(FOREIGN_PART).replace(".", "/"): name for name in names if name.startswith(FOREIGN_PART)
    }
    return ours or theirs


def text_columns(schema: pa.Schema) -> list[str]:
    """The columns that are texts and are read as a dictionary; in a struct, Arrow cannot read one."""
    wanted = {*part_columns(schema.names).values(), *TEXT_COLUMNS, *WORD_COLUMNS}
    counts = Counter(schema.names)
    return [field.name for field in schema if field.name in wanted and counts[field.name] == 1 and is_text(field.type)]


def fields_of(kind: pa.DataType) -> dict[str, pa.DataType]:
    """The fields of a struct; {} of anything else."""
    return {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_screenshot(kind: pa.DataType) -> bool:
    fields = fields_of(kind)
    picture = fields.get(PICTURE, pa.binary())
    return (
        "path" in fields
        and (pa.types.is_binary(picture) or pa.types.is_large_binary(picture) or pa.types.is_null(picture))
        and all(is_text(fields.get(name, pa.string())) for name in PLACE_TEXTS)
        and all(_is_whole(fields.get(name, pa.int64())) for name in PLACE_NUMBERS)
    )


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_null(kind))


def part_of(name: str, kind: pa.DataType) -> PartLayout | None:
    """The part of states that a column of this type holds; None of a column that holds none.

    A side of lists that may differ in size counts as 0.
    """
    if is_text(kind):
        return PartLayout(name, "", ())
    values = value_type(kind)
    if not _is_number(values) and not pa.types.is_boolean(values):
        return None
    shape = (getattr(kind, "list_size", 0),) if is_list(kind) else ()
    return PartLayout(name, dtype_of(values).str, shape)


TEXT = (is_text, "text")
NUMBER = (lambda kind: _is_number(kind) or pa.types.is_null(kind), "a number")
FLAG = (lambda kind: pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind), "a bool")
COLUMNS: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "episode": (pa.types.is_integer, "an integer"),
    **dict.fromkeys(("height", "width"), (pa.types.is_integer, "an integer")),
    "action": (
        lambda kind: _is_number(value_type(kind)) or pa.types.is_boolean(kind) or pa.types.is_null(kind),
        "a number or a list of numbers",
    ),
    **dict.fromkeys(("reward", "log_prob"), NUMBER),
    **dict.fromkeys(STATE_COLUMNS, FLAG),
    **dict.fromkeys(TEXT_COLUMNS, TEXT),
}
"""The types that a column may have, and their names."""

WORDED_COLUMNS: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    **dict.fromkeys(WORD_COLUMNS, TEXT),
    SCREENSHOT: (_is_screenshot, f"a struct with {PICTURE!r} (binary) and 'path' (text)"),
}
"""The same of those that only kinds with pictures and words have (`StateKind.annotated`)."""
