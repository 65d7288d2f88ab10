"""Columns of Arrow tables as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grace_irl.errors import InputError


def columns_of(table: pa.Table, where: str) -> dict[str, NDArray[Any]]:
    """The columns of a table as arrays, by name.

    A column of numbers or booleans becomes a numeric array, with NaN for nulls. Any other column becomes an array of
    Python objects, such as texts or lists.

    Args:
        table: the table.
        where: file or argument, for messages.

    Raises:
        InputError: two columns with the same name, or names that are not UTF-8.
    """
    try:
        names = table.column_names
    except UnicodeDecodeError:
        raise InputError(f"{where}: names of columns that are not UTF-8; expected UTF-8: write it again") from None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{where}: two columns {twice!r}; expected one of each name: rename one")
    return {name: _column(table.column(place)) for place, name in enumerate(names)}


def _column(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if not column.null_count:
            return np.concatenate(
                [
                    np.asarray(chunk.to_pylist() if chunk.type.bit_width < 8 else np.from_dlpack(chunk))
                    for chunk in column.chunks
                ]
                or [np.empty(0)]
            )
        return np.array([np.nan if each is None else each for each in column.to_pylist()], np.float64)
    found = np.empty(len(column), object)
    for place, each in enumerate(column.to_pylist()):
        found[place] = each
    return found
