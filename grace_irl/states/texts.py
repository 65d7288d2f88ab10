"""Texts as parts of states: UTF-8 arrays, and tables that store each different text once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate


def pack(texts: Sequence[str], allocate: Allocate = np.empty) -> NDArray[np.bytes_]:
    """Texts of a trajectory's states as one array `(T+1,)` of dtype `S`, as wide as the longest text.

    Args:
        texts: one text per state, without null characters, because the array is padded with null characters.
        allocate: function that returns an uninitialised array of a shape and dtype.
    """
    width = max((len(each.encode()) for each in {id(each): each for each in texts}.values()), default=1)
    array = allocate((len(texts),), f"S{max(1, width)}")
    last, encoded = "", b""
    for step, each in enumerate(texts):  # one encoded text at a time, because screens are large
        if each is not last:
            last, encoded = each, each.encode()
        array[step] = encoded
    return array


def text(value: bytes) -> str:
    """One entry of an array from `pack`, as the text that programs receive."""
    return value.decode()


class TextTable:
    """The different texts of a set, each stored once and found by its index.

    Attributes:
        texts: UTF-8 texts without padding. Each text is a view of an array given to `codes`.
    """

    def __init__(self) -> None:
        self.texts: list[memoryview] = []
        self._known: dict[bytes, int] = {}

    def codes(self, array: NDArray[Any], where: str) -> NDArray[np.int32]:
        """Add the n texts of an array to the table. Return the index in `texts` of each of them, `(n,)`.

        Raises:
            InputError: a text that is not UTF-8.
        """
        width = array.dtype.itemsize
        rows = np.ascontiguousarray(array).view(np.uint8).data
        codes = np.empty(len(array), np.int32)
        for step, value in enumerate(array.tolist()):
            name = hashlib.blake2b(value, digest_size=16).digest()
            if name not in self._known:
                require_utf8(value, where)
                self._known[name] = len(self.texts)
                self.texts.append(rows[step * width : step * width + len(value)])
            codes[step] = self._known[name]
        return codes


def require_utf8(value: bytes, where: str) -> None:
    """Refuse a text that is not UTF-8.

    Raises:
        InputError: the text is not UTF-8.
    """
    try:
        value.decode()
    except UnicodeDecodeError as error:
        found = f"{where or 'trajectory'}: a text that is not UTF-8 ({error.reason})"
        raise InputError(f"{found}; expected UTF-8: encode it again") from None
