"""Texts as parts of states: arrays of UTF-8, and tables that hold each different text once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate


def pack(texts: Sequence[str], allocate: Allocate = np.empty) -> NDArray[np.bytes_]:
    """Texts as one part of the states of a trajectory: `(T+1,)` of dtype `S`, as wide as the longest.

    Args:
        texts: one per state. None may hold a null character, with which the array fills up: XML cannot.
        allocate: gives the array.
    """
    width = max((len(each.encode()) for each in {id(each): each for each in texts}.values()), default=1)
    array = allocate((len(texts),), f"S{max(1, width)}")
    last, encoded = "", b""
    for step, each in enumerate(texts):  # one copy at a time: screens are large
        if each is not last:
            last, encoded = each, each.encode()
        array[step] = encoded
    return array


def text(value: bytes) -> str:
    """One entry of such an array as the text that a program is handed."""
    return value.decode()


class TextTable:
    """The different texts of a set, each once, by number.

    Attributes:
        texts: UTF-8, without padding; views of the arrays that they were found in.
    """

    def __init__(self) -> None:
        self.texts: list[memoryview] = []
        self._known: dict[bytes, int] = {}

    def codes(self, array: NDArray[Any], where: str) -> NDArray[np.int32]:
        """The numbers `(n,)` of an array's texts, which join the table.

        Raises:
            InputError: one that is not UTF-8.
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
    """Refuses a text that is not UTF-8.

    Raises:
        InputError: such a text.
    """
    try:
        value.decode()
    except UnicodeDecodeError as error:
        found = f"{where or 'trajectory'}: a text that is not UTF-8 ({error.reason})"
        raise InputError(f"{found}; expected UTF-8: read it anew") from None
