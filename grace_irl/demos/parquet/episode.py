"""One trajectory on its way out of a Parquet file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.header import Header
from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.rows import (
    SCREENSHOT,
    STATE_COLUMNS,
    STEP_COLUMNS,
    TEXT_COLUMNS,
    WORD_COLUMNS,
    BatchRows,
    ParquetColumn,
    Words,
)
from grace_irl.demos.parquet.screenshots import SetPictures, SetScreenshot
from grace_irl.demos.source import build, stated_role, stated_split
from grace_irl.demos.trajectory import Demonstration, Role
from grace_irl.demos.ui.texts import PARSED
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate, StateKind
from grace_irl.states.texts import pack


class EpisodeFile(Protocol):
    """The file that an episode is read from."""

    path: Path
    header: Header
    pictures: SetPictures

    def require(self, nbytes: int, what: str) -> None:
        """Raises InputError unless this much memory is left."""
        ...

    def shared(self, text: str) -> str:
        """The same text, once in memory if it is often met."""
        ...

    def states(self, where: str, rows: BatchRows, row: int, length: int, allocate: Allocate) -> PartStates:
        """Room for the states of an episode."""
        ...


class ParquetEpisode:
    """A trajectory that is being filled from batches."""

    def __init__(
        self, source: EpisodeFile, rows: BatchRows, row: int, index: int, length: int, allocate: Allocate
    ) -> None:
        self._source = source
        self._where = f"{source.path}: episode {index}"
        self._length = length
        self._filled = 0
        source.require(length * (8 * len(STEP_COLUMNS) + len(STATE_COLUMNS)), self._where)
        self._text = {name: text and source.shared(text) for name in TEXT_COLUMNS for text in [rows.text(name, row)]}
        self._states = source.states(self._where, rows, row, length, allocate)
        self._columns = {name: ParquetColumn(length, np.empty) for name in STATE_COLUMNS}
        self._columns |= {name: ParquetColumn(length - 1, np.empty) for name in STEP_COLUMNS}
        self._columns["action"] = ParquetColumn(length - 1, allocate)
        self._words = [Words(name, length - 1) for name in WORD_COLUMNS]
        self._screenshots: list[SetScreenshot | None] = []

    @property
    def full(self) -> bool:
        return self._filled == self._length

    def fill(self, rows: BatchRows, start: int, before: int) -> int:
        """Takes this episode's rows from `start` on, `before` being those of the file that come before the batch.

        Returns:
            The row after them.
        """
        stop = min(len(rows), start + self._length - self._filled)
        self._states.take(rows, start, stop)
        for name, text in self._text.items():
            others = sorted(other for other in rows.texts(name, start, stop) if other not in (text, None))
            if others:
                found = f"{self._where}: {name} {repr(text)[:80]} and then {repr(others[0])[:80]}"
                raise InputError(
                    f"{found}; expected one through the episode: give each trajectory an episode of its own"
                )
        last_step = start + self._length - 1 - self._filled
        for name, column in self._columns.items():
            end = min(stop, last_step) if name in STEP_COLUMNS else stop
            column.fill(rows, name, start, end, self._filled)
        for words in self._words:
            words.fill(rows, start, min(stop, last_step))
        places = rows.column(SCREENSHOT, start, stop)
        if places is not None:
            self._screenshots += self._source.pictures.screenshots(places, before + start)
        self._filled += stop - start
        return stop

    def demonstration(self, role: Role | None) -> Demonstration:
        """The whole trajectory with what it stands for."""
        source, column = self._source, {name: column.array for name, column in self._columns.items()}
        actions, action_shape = column["action"], source.header.action_shape
        if actions is not None and action_shape is not None:
            if math.prod(action_shape) != math.prod(actions.shape[1:]):
                found = f"{self._where}: actions of shape {actions.shape[1:]}, and {action_shape} in the metadata"
                raise InputError(f"{found}; expected one shape: write the file again")
            actions = actions.reshape(len(actions), *action_shape)
        action_texts, step_instructions = (
            tuple(map(source.shared, column.texts(self._where))) for column in self._words
        )
        trajectory = build(
            self._states.whole(),
            self._where,
            source.header.metadata.fields,
            kind=source.header.metadata.kind,
            actions=actions,
            extra_info=self._text["instruction"] or "",
            rewards=_floats(column["reward"]),
            log_probs=_floats(column["log_prob"]),
            terminated=_any(column["terminated"]),
            truncated=_any(column["truncated"]),
            screenshots=tuple(self._screenshots) if any(self._screenshots) else (),
            action_texts=action_texts,
            step_instructions=step_instructions,
        )
        goal = column["goal"]
        return Demonstration(
            trajectory,
            stated_role(role or self._text["role"] or source.header.role, self._where),
            self._text["task"] or "default",
            stated_split(self._text["split"], self._where),
            None if goal is None else tuple(int(step) for step in np.flatnonzero(goal)),
        )


def _floats(array: NDArray[Any] | None) -> NDArray[np.float64] | None:
    return None if array is None else array.astype(np.float64, copy=False)


def _any(array: NDArray[Any] | None) -> bool:
    return array is not None and bool(array.any())


class States(Protocol):
    """Gathers one part of the states of one trajectory from batches, in order."""

    def take(self, rows: BatchRows, start: int, stop: int) -> None:
        """The next states: some rows of a batch.

        Raises:
            InputError: they are none, or do not go with those before.
        """
        ...

    def array(self) -> NDArray[Any]:
        """All of them."""
        ...


class NumberStates:
    """`States` of numbers in one shape.

    Args:
        where: file and episode.
        rows, row: the first of the trajectory's rows: its size and, of a grid, its sides hold for all.
        length: how many states will come.
        kind: of the states.
        column: of the file.
        shape: of one state; None if the kind tells it from the sides.
        allocate: gives the array.

    Raises:
        InputError: a state that does not fill its shape.
    """

    def __init__(
        self,
        where: str,
        rows: BatchRows,
        row: int,
        length: int,
        kind: StateKind,
        column: str,
        shape: tuple[int, ...] | None,
        allocate: Allocate,
    ) -> None:
        self._where, self._column = where, column
        part = rows.part(column)
        self._size = part.size(row)
        sides = [rows.numbers(name, row, row + 1) for name in kind.sides]
        if shape is None:
            shape = kind.stored_shape(self._size, [0 if side is None else int(side[0]) for side in sides])
        if math.prod(shape) != self._size:
            expected = " * ".join((*kind.sides, *map(str, shape[len(sides) :])))
            raise InputError(f"{where}: {self._size} numbers in a state of shape {shape}; expected {expected}")
        self._states = allocate((length, *shape), part.values.dtype)
        self._flat = self._states.reshape(length, self._size)
        self._filled = 0

    def take(self, rows: BatchRows, start: int, stop: int) -> None:
        """See `States.take`."""
        values = rows.part(self._column).states(start, stop, self._size)
        if values is None:
            raise InputError(f"{self._where}: states of different sizes; expected one shape within a trajectory")
        self._flat[self._filled : self._filled + stop - start] = values
        self._filled += stop - start

    def array(self) -> NDArray[Any]:
        """See `States.array`."""
        return self._states


class Texts:
    """The texts of one file: each different one is read once, whatever the number of states that it is in.

    Args:
        memory: of the set.
        kind: of the states.
    """

    def __init__(self, memory: Memory, kind: StateKind) -> None:
        self._memory, self._kind = memory, kind
        self._canonical: set[bytes] = set()

    def checked(self, rows: BatchRows, column: str, start: int, stop: int, where: str, step: int) -> list[str]:
        """The texts of some rows in the spelling that states have.

        Args:
            column: of the file.
            where: file and episode.
            step: of the first row, for messages.

        Raises:
            InputError: a text that is not the XML of a screen.
        """
        return [
            rows.checked(column, row, partial(self._check, f"{where}, step {step + row - start}"))
            for row in range(start, stop)
        ]

    def require(self, nbytes: int, where: str) -> None:
        """See `Memory.require`, of the texts of a trajectory."""
        self._memory.require(nbytes, f"{where}: its texts")

    def _check(self, where: str, text: str) -> str:
        name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if name in self._canonical:
            return text
        self._memory.require(PARSED * len(text), f"{where}: a screen of {len(text):,} characters")
        canonical = self._kind.canonical(text, where)
        if canonical == text:
            self._canonical.add(name)
        return canonical


class TextStates:
    """`States` of texts.

    Args:
        where: file and episode.
        texts: of the file.
        column: of the file.
        allocate: gives the array.
    """

    def __init__(self, where: str, texts: Texts, column: str, allocate: Allocate) -> None:
        self._where, self._texts, self._column, self._allocate = where, texts, column, allocate
        self._found: list[str] = []

    def take(self, rows: BatchRows, start: int, stop: int) -> None:
        """See `States.take`."""
        self._found += self._texts.checked(rows, self._column, start, stop, self._where, len(self._found))
        self._texts.require(sum(len(text) for text in {id(text): text for text in self._found}.values()), self._where)

    def array(self) -> NDArray[Any]:
        """See `States.array`."""
        return pack(self._found, self._allocate)


class PartStates:
    """The states of one trajectory, part by part.

    Args:
        kind: of the states.
        parts: gathers each part.
    """

    def __init__(self, kind: StateKind, parts: Mapping[str, States]) -> None:
        self._kind, self._parts = kind, parts

    def take(self, rows: BatchRows, start: int, stop: int) -> None:
        """See `States.take`."""
        for part in self._parts.values():
            part.take(rows, start, stop)

    def whole(self) -> Any:
        """All states, as their kind has them."""
        return self._kind.whole({name: part.array() for name, part in self._parts.items()})
