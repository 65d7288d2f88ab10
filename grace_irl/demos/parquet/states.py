"""The states of one trajectory on their way out of a Parquet file: arrays of numbers, or screens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.rows import Rows
from grace_irl.demos.screens import pack
from grace_irl.demos.source import Allocate
from grace_irl.demos.ui import markup
from grace_irl.demos.ui.texts import PARSED
from grace_irl.errors import InputError


class States(Protocol):
    """Gathers the states of one trajectory from batches, in order."""

    def take(self, rows: Rows, start: int, stop: int) -> None:
        """The next states: some rows of a batch.

        Raises:
            InputError: they are none, or do not go with those before.
        """
        ...

    def array(self) -> NDArray[Any]:
        """All of them."""
        ...


class NumberStates:
    """`States` of a vector `(n,)` or a grid `(h, w, 3)`.

    Args:
        where: file and episode.
        rows, row: the first of the trajectory's rows: its size and, of a grid, its sides hold for all.
        length: how many states will come.
        grid: the rows have sides.
        allocate: where the array goes.

    Raises:
        InputError: a state that does not fill its grid.
    """

    def __init__(self, where: str, rows: Rows, row: int, length: int, *, grid: bool, allocate: Allocate) -> None:
        self._where = where
        self._size = rows.size(row)
        shape: tuple[int, ...] = (self._size,)
        if grid:
            sides = [rows.numbers(name, row, row + 1) for name in ("height", "width")]
            shape = (*(0 if side is None else int(side[0]) for side in sides), 3)
        if int(np.prod(shape)) != self._size:
            raise InputError(f"{where}: {self._size} numbers in a state of shape {shape}; expected height * width * 3")
        self._states = allocate((length, *shape), rows.values.dtype)
        self._flat = self._states.reshape(length, self._size)
        self._filled = 0

    def take(self, rows: Rows, start: int, stop: int) -> None:
        """See `States.take`."""
        values = rows.states(start, stop, self._size)
        if values is None:
            raise InputError(f"{self._where}: states of different sizes; expected one shape within a trajectory")
        self._flat[self._filled : self._filled + stop - start] = values
        self._filled += stop - start

    def array(self) -> NDArray[Any]:
        """See `States.array`."""
        return self._states


class ScreenTexts:
    """The screens of one file: each different text is parsed once, whatever the number of states that it is.

    Args:
        memory: of the set.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._canonical: set[bytes] = set()

    def checked(self, rows: Rows, start: int, stop: int, where: str, step: int) -> list[str]:
        """The screens of some rows in the spelling that states have.

        Args:
            where: file and episode.
            step: of the first row, for messages.

        Raises:
            InputError: a text that is not the XML of a screen.
        """
        return [
            rows.screen(row, partial(self._check, f"{where}, step {step + row - start}")) for row in range(start, stop)
        ]

    def widths(self, batches: Iterable[Rows], lengths: Sequence[int], where: str) -> list[int]:
        """Bytes of the longest screen of each episode.

        Args:
            batches: of the whole file.
            lengths: states of each episode.
            where: the file.

        Raises:
            InputError: see `checked`.
        """
        widths: list[int] = []
        left = 0
        for rows in batches:
            start = 0
            while start < len(rows):
                if not left:
                    if len(widths) == len(lengths):
                        raise InputError(
                            f"{where}: more states than episodes say; expected one row for each: write the file again"
                        )
                    left = lengths[len(widths)]
                    widths.append(0)
                episode = len(widths) - 1
                stop = min(start + left, len(rows))
                screens = self.checked(rows, start, stop, f"{where}: episode {episode}", lengths[episode] - left)
                widths[episode] = max(widths[episode], *(len(screen.encode()) for screen in screens))
                start, left = stop, left - (stop - start)
        return widths

    def _check(self, where: str, text: str) -> str:
        name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if name in self._canonical:
            return text
        self._memory.require(PARSED * len(text), f"{where}: a screen of {len(text):,} characters")
        canonical = markup.write(markup.parse(text, where))
        if canonical == text:
            self._canonical.add(name)
        return canonical


class ScreenStates:
    """`States` of screens.

    Args:
        where: file and episode.
        texts: of the file.
        allocate: where the array goes.
    """

    def __init__(self, where: str, texts: ScreenTexts, allocate: Allocate) -> None:
        self._where, self._texts, self._allocate = where, texts, allocate
        self._screens: list[str] = []

    def take(self, rows: Rows, start: int, stop: int) -> None:
        """See `States.take`."""
        self._screens += self._texts.checked(rows, start, stop, self._where, len(self._screens))

    def array(self) -> NDArray[Any]:
        """See `States.array`."""
        return pack(self._screens, self._allocate)
