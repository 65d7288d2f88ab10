"""The schema of demonstrations in Parquet: names of columns and their allowed types, for the reader and the writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grace_irl.states.kind import PartLayout


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list of fixed or variable size. pandas and polars write variable sizes."""
    return bool(pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a list type. Any other type is returned unchanged."""
    return kind.value_type if is_list(kind) else kind


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """The NumPy dtype of a numeric Arrow type."""
    # Despite its name, this method does not import pandas, which would take 40 MiB.
    found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
    return found


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """The numbers of an Arrow array without nulls.

    `Array.to_numpy` is not used, because `to_numpy` would import pandas if pandas is installed.

    Raises:
        ArrowInvalid: the array has nulls.
    """
    if array.null_count:
        raise pa.ArrowInvalid("null among numbers")
    if pa.types.is_boolean(array.type):
        bits = np.frombuffer(array.buffers()[1], np.uint8)
        flags = np.unpackbits(bits, count=array.offset + len(array), bitorder="little")
        return flags[array.offset :].view(np.bool_)
    return np.from_dlpack(array)


TEXT_COLUMNS = ("role", "task", "split", "instruction")
"""Text columns with the same value in all rows of an episode."""

STEP_COLUMNS = ("action", "reward", "log_prob")
"""Numeric columns with one value per step. They are null in the last row of an episode."""

STATE_COLUMNS = ("goal", "terminated", "truncated")
"""Columns with one flag per state."""

WORD_COLUMNS = ("action_text", "step_instruction")
"""Text columns that describe each action and its purpose. They are null in the last row of an episode."""

SCREENSHOT = "screenshot"
"""Name of the screenshot column. Each screenshot is a struct with the picture itself, with its place (a file and an
offset, for example), or with both."""

PICTURE = "bytes"
"""Name of the field with the picture in the struct of a screenshot. `PLACE_TEXTS` and `PLACE_NUMBERS` name the fields
with the picture's place."""
PLACE_TEXTS = ("path", "sha256")
PLACE_NUMBERS = ("start", "length", "record", "step")


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is text in any of Arrow's layouts. A column of nulls also counts as text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    views = (pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_string_view(kind))
    return any(views) or bool(pa.types.is_null(kind))


PART = "state/"
"""Prefix of a column with a named part of the states, as in `state/camera`."""

FOREIGN_PART = "observation."
"""Prefix of a column with a part of the states in LeRobot's data sets for robots, as in `observation.camera.left`."""


def part_columns(names: Sequence[str]) -> dict[str, str]:
    """Map from the name of each part of the states to its column; {} if no column holds states.

    The part in the column `state` has the name "".
    """
    if "state" in names:
        return {"": "state"}
    ours = {name.removeprefix(PART): name for name in names if name.startswith(PART)}
    theirs = {
        name.removeprefix(FOREIGN_PART).replace(".", "/"): name for name in names if name.startswith(FOREIGN_PART)
    }
    return ours or theirs


def text_columns(schema: pa.Schema) -> list[str]:
    """The text columns to read as dictionaries. Arrow cannot read the fields of a struct as dictionaries."""
    wanted = {*part_columns(schema.names).values(), *TEXT_COLUMNS, *WORD_COLUMNS}
    counts = Counter(schema.names)
    return [field.name for field in schema if field.name in wanted and counts[field.name] == 1 and is_text(field.type)]


def fields_of(kind: pa.DataType) -> dict[str, pa.DataType]:
    """The types of a struct's fields by name; {} for any other type."""
    return {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}


def is_number(kind: pa.DataType) -> bool:
    """Whether a column holds integers or floating-point numbers."""
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
    """The layout of a part of the states in a column of this type. None if the type cannot hold states.

    A list of variable size has the shape (0,).
    """
    if is_text(kind):
        return PartLayout(name, "", ())
    values = value_type(kind)
    if not is_number(values) and not pa.types.is_boolean(values):
        return None
    shape = (getattr(kind, "list_size", 0),) if is_list(kind) else ()
    return PartLayout(name, dtype_of(values).str, shape)


TEXT = (is_text, "text")
NUMBER = (lambda kind: is_number(kind) or pa.types.is_null(kind), "a number")
FLAG = (lambda kind: pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind), "a bool")
COLUMNS: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "episode": (pa.types.is_integer, "an integer"),
    **dict.fromkeys(("height", "width"), (pa.types.is_integer, "an integer")),
    "action": (
        lambda kind: is_number(value_type(kind)) or pa.types.is_boolean(kind) or pa.types.is_null(kind),
        "a number or a list of numbers",
    ),
    **dict.fromkeys(("reward", "log_prob"), NUMBER),
    **dict.fromkeys(STATE_COLUMNS, FLAG),
    **dict.fromkeys(TEXT_COLUMNS, TEXT),
}
"""Map from each column to a function that checks the column's type, and to a description of the allowed types."""

WORDED_COLUMNS: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    **dict.fromkeys(WORD_COLUMNS, TEXT),
    SCREENSHOT: (_is_screenshot, f"a struct with {PICTURE!r} (binary) and 'path' (text)"),
}
"""Further entries of `COLUMNS`, for kinds of states that have screenshots and action texts (`StateKind.annotated`)."""


def first_line(error: Exception) -> str:
    """The first line of an error's message, without its full stop."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
