"""The rows of one trajectory in a Parquet file, as numpy arrays and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from grace_irl.demos.parquet.schema import dtype_of, is_list, numbers_of, value_type
from grace_irl.demos.source import one_text
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate

Columns = Mapping[str, pa.Array]
"""The columns of a batch by name. A batch consists of consecutive rows that Arrow decodes together."""


class EpisodeRows:
    """The rows of one trajectory, which may lie in several batches of the file.

    Args:
        where: file and episode, for messages.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._pieces: list[tuple[Columns, int, int]] = []

    def add(self, columns: Columns, start: int, stop: int) -> None:
        """Append the rows from `start` to `stop` of a batch."""
        self._pieces.append((columns, start, stop))

    def __len__(self) -> int:
        return sum(stop - start for _, start, stop in self._pieces)

    def column(self, name: str, rows: int) -> list[pa.Array]:
        """The first `rows` rows of a column, one array per batch; [] if there is no such column."""
        found: list[pa.Array] = []
        for columns, start, stop in self._pieces:
            if name in columns:
                found.append(columns[name].slice(start, min(stop - start, rows)))
                rows -= len(found[-1])
        return found

    def size(self, name: str, rows: int) -> tuple[int, ...]:
        """The shape of one row in a column: `(n,)` for lists of n numbers, () for single numbers.

        Args:
            name: name of the column.
            rows: number of rows, counted from the first row.

        Raises:
            InputError: lists of different sizes.
        """
        pieces = self.column(name, rows)
        kind = pieces[0].type
        if not is_list(kind) or pa.types.is_fixed_size_list(kind):
            return (int(kind.list_size),) if is_list(kind) else ()
        # `rows` is 0 for the actions of a trajectory with one state. The size then comes from the whole first batch.
        lists = pieces if rows else [self._pieces[0][0][name]]
        sizes = {size for each in lists for size in np.unique(np.diff(numbers_of(each.offsets))).tolist()}
        if len(sizes) > 1 and rows:
            raise InputError(
                f"{self.where}: column {name!r} holds lists of different sizes; expected one shape in a trajectory"
            )
        return (max(sizes, default=0),)

    def numbers(
        self,
        name: str,
        rows: int,
        allocate: Allocate = np.empty,
        shape: tuple[int, ...] | None = None,
        missing: float | None = None,
    ) -> NDArray[Any] | None:
        """The numbers in the first rows of a column, `(rows, …)`. None without such a column, or if all rows are null.

        Args:
            name: name of the column.
            rows: number of rows.
            allocate: function that returns the array.
            shape: shape of one row in the result; None for the stored shape.
            missing: number or flag in place of each null, for a column of single numbers. If there are nulls, the array
                gets the type of `missing`. None refuses nulls among numbers.

        Raises:
            InputError: a null among numbers, or the errors of `size`.
        """
        pieces = self.column(name, rows)
        nulls = sum(piece.null_count for piece in pieces)
        if not pieces or pa.types.is_null(pieces[0].type) or 0 < rows == nulls:
            return None
        if nulls and missing is None:
            raise InputError(
                f"{self.where}: column {name!r} is null in {nulls} of {rows} rows; expected a value in each, or in "
                "none: fill it in, or drop the column"
            )
        if nulls:
            pieces = [piece.cast(pa.scalar(missing).type, safe=False).fill_null(missing) for piece in pieces]
        size = self.size(name, rows)
        array = allocate((rows, *(size if shape is None else shape)), dtype_of(value_type(pieces[0].type)))
        flat, start = array.reshape(rows, *size), 0
        for piece in pieces:
            stop = start + len(piece)
            flat[start:stop] = numbers_of(piece.flatten() if size else piece).reshape(len(piece), *size)
            start = stop
        return array

    def texts(self, name: str, rows: int) -> list[str | None]:
        """The texts in the first rows of a column; [] if there is no such column."""
        return [text for piece in self.column(name, rows) for text in _texts(piece, name)]

    def text(self, name: str) -> str | None:
        """The text of a column that has the same text in every row; None if there is no text.

        Raises:
            InputError: different texts.
        """
        different = (text for piece in self.column(name, len(self)) for text in _texts(piece.unique(), name))
        return one_text(different, name, self.where)


def _texts(column: pa.Array, name: str) -> list[str | None]:
    """The texts of a column. In a dictionary column, rows with the same text share one Python string."""
    try:
        if not pa.types.is_dictionary(column.type):
            return cast("list[str | None]", column.to_pylist())
        codes = column.indices.to_pylist()
        made = {code: column.dictionary[code].as_py() for code in {*codes} - {None}}
        return [made.get(code) for code in codes]
    except UnicodeDecodeError:
        raise pa.ArrowInvalid(f"column {name!r} holds text that is not UTF-8") from None
