"""Columns of demonstrations in Parquet: their names, and the types that they may have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grace_irl.states.kind import PartLayout


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
