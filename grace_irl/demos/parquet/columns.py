"""The columns of a Parquet file of demonstrations: their names and which types they may have."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from grace_irl.demos.parquet.rows import is_list, value_type
from grace_irl.demos.trajectory import StateKind

TEXT_COLUMNS = ("role", "task", "split", "instruction")
"""One value through an episode."""

STEP_COLUMNS = ("action", "reward", "log_prob")
"""Null in the last row of an episode."""

STATE_COLUMNS = ("goal", "terminated", "truncated")

WORD_COLUMNS = ("action_text", "step_instruction")
"""What was done in words, and what for; null in the last row of an episode."""

SCREENSHOT = "screenshot"
"""A struct, of which a picture itself is the field `PICTURE` and the others say where one lies."""

PICTURE = "bytes"
PLACE_TEXTS = ("path", "sha256")
PLACE_NUMBERS = ("start", "length", "record", "step")


def is_text(kind: pa.DataType) -> bool:
    """Whether it is text, of any layout; a column of nulls may be one."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    views = (pa.types.is_string(kind), pa.types.is_large_string(kind), pa.types.is_string_view(kind))
    return any(views) or bool(pa.types.is_null(kind))


def text_columns(schema: pa.Schema) -> list[str]:
    """The columns that are texts and are read as a dictionary; in a struct, Arrow cannot read one."""
    names = [name for name in ("state", *TEXT_COLUMNS, *WORD_COLUMNS) if schema.names.count(name) == 1]
    return [name for name in names if is_text(schema.field(name).type)]


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


STATE: dict[StateKind, tuple[Callable[[pa.DataType], bool], str]] = {
    "vector": (lambda kind: is_list(kind) and _is_number(kind.value_type), "a list of numbers"),
    "grid": (lambda kind: is_list(kind) and pa.types.is_integer(kind.value_type), "a list of integers"),
    "ui": (is_text, "text: the XML of a screen"),
}
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
"""Which types a column may have, and what they are called."""

UI_COLUMNS: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    **dict.fromkeys(WORD_COLUMNS, TEXT),
    SCREENSHOT: (_is_screenshot, f"a struct with {PICTURE!r} (binary) and 'path' (text)"),
}
"""The same of those that only screens have."""
