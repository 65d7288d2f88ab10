"""The entries of a table's columns: numbers, lists of numbers, flags and texts."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.foreign.episode import rows_of
from grace_irl.demos.trajectory import Role
from grace_irl.errors import InputError

WITH_COMMAS = re.compile(r"[+-]?(\d{1,3}([,' ]\d{3})+(\.\d+)?|\d+,\d+)")
"""Pattern of a number with marks between thousands, or with a decimal comma."""

TRUE, FALSE = ("true", "1", "1.0", "yes", "t", "y"), ("false", "0", "0.0", "no", "f", "n", "", "nan", "none")
"""Texts of flags, in lower case."""

WORDS: dict[str, Role] = {
    **dict.fromkeys(("expert", "experts", "positive", "1", "1.0", "true"), "expert"),
    **dict.fromkeys(("negative", "negatives", "0", "0.0", "false"), "negative"),
}
"""Map from an entry of the role column, in lower case, to the role."""


def stacked(column: NDArray[Any], where: str, name: str) -> NDArray[Any]:
    """The entries of a column as one array with one row per entry."""
    if column.dtype.kind != "O":
        return column
    return rows_of(
        [each.tolist() if isinstance(each, np.ndarray) else each for each in column], f"{where}, column {name!r}"
    )


def numbers(column: NDArray[Any], where: str, name: str) -> NDArray[Any]:
    """The column itself.

    Raises:
        InputError: a column of other entries than numbers. `where` names the file, and `name` the column.
    """
    if column.dtype.kind not in "biuf":
        raise InputError(f"{where}: column {name!r} holds {str(column[0])[:40]!r}; expected numbers")
    return column


def holds_numbers(column: NDArray[Any]) -> bool:
    """Whether a column holds numbers, or lists of numbers."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "biuf"
    first: Any = next((each for each in column.tolist() if _length(each)), None)
    if not _length(first):
        return False
    while _length(first):
        first = first[0]
    return isinstance(first, int | float | np.number | np.bool_)


def _length(entry: Any) -> int:
    """The length of a list; 0 for anything else."""
    return len(entry) if isinstance(entry, list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim) else 0


def holds_xml(column: NDArray[Any]) -> bool:
    """Whether the first text of a column looks like XML."""
    first = next((each for each in column.tolist() if each), None)
    return isinstance(first, str) and first.lstrip().startswith("<")


def with_numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Convert a column that mixes numbers with numbers written as texts to an array of numbers.

    Any other column is returned unchanged.
    """
    if column.dtype.kind != "O":
        return column
    known = [each for each in column.tolist() if each is not None]
    numeric = [isinstance(each, int | float) and not isinstance(each, bool) for each in known]
    written = all(
        is_number or (isinstance(each, str) and _is_number(each))
        for each, is_number in zip(known, numeric, strict=True)
    )
    if not any(numeric) or not written:
        return column
    return np.array([np.nan if each is None else float(each) for each in column.tolist()])


def require_no_spoilt(column: NDArray[Any], where: str) -> None:
    """Check that a column does not mix numbers with a few other texts, such as "n/a".

    A column passes if all its entries are numbers that are written as texts. Such texts may be identifiers.

    Raises:
        InputError: of the distinct texts, at least two and at least half are plain numbers or match `WITH_COMMAS`, and
            at least one is not a plain number.
    """
    if column.dtype.kind not in "OUS":
        return
    texts: dict[str, int] = {}
    for row, each in enumerate(column.tolist()):
        texts.setdefault(each if isinstance(each, str) else "" if each is None else str(each), row)
    odd = [text for text in texts if not _is_number(text)]
    numbers = [text for text in texts if _is_number(text) or WITH_COMMAS.fullmatch(text.strip())]
    if odd and len(numbers) >= max(len(texts) / 2, 2):
        raise InputError(
            f"{where} holds numbers, and {odd[0][:40]!r} among them; expected a number in each row, without "
            f"marks between digits: correct row {texts[odd[0]]}, drop the episode, or choose other columns "
            "(--state-columns)"
        )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def is_flag(column: NDArray[Any]) -> bool:
    """Whether a column holds only booleans, or only the numbers 0 and 1. Rows may lack an entry."""
    if column.dtype.kind == "f":
        return bool(np.isin(column[~np.isnan(column)], (0, 1)).all())
    return column.dtype.kind == "b" or (column.dtype.kind in "iu" and bool(np.isin(column, (0, 1)).all()))


def flags(column: NDArray[Any], where: str) -> NDArray[np.bool_]:
    """The entries of a column as flags. `where` names the column in messages.

    Raises:
        InputError: a text that is no flag.
    """
    if column.dtype.kind in "biuf":
        return np.asarray(np.nan_to_num(column), np.bool_)
    texts = [str("" if each is None else each).strip().lower() for each in column.tolist()]
    for text in texts:
        if text not in TRUE and text not in FALSE:
            raise InputError(f"{where} holds {text[:40]!r}; expected true or false (or 1 or 0) in each row")
    return np.array([text in TRUE for text in texts])


def missing(column: NDArray[Any]) -> int:
    """The number of rows without an entry."""
    if column.dtype.kind in "OU":
        return sum(each is None or str(each).strip() in ("", "nan", "<NA>", "NaT") for each in column.tolist())
    return int(np.isnan(column).sum()) if column.dtype.kind == "f" else 0


def texts(column: NDArray[Any]) -> NDArray[np.object_]:
    """The entries of a column as texts; "" for rows without an entry."""
    return np.array(["" if each is None else str(each) for each in column.tolist()], object)
