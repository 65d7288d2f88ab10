"""The protocol of every format's reader and writer, and the checks that they share."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, cast, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.demos.arena import ALIGNMENT
from grace_irl.demos.header import Header
from grace_irl.demos.trajectory import Demonstration, Role, Split, Trajectory
from grace_irl.errors import InputError

Allocate = Callable[[Sequence[int], DTypeLike], NDArray[Any]]
"""Gives an uninitialised array of a shape and dtype: `numpy.empty`, or an arena's `allocate`."""


class Source(Protocol):
    """One set of demonstrations on disk, opened: metadata at once, trajectories on demand."""

    path: Path
    header: Header

    @property
    def capacity(self) -> int:
        """Bytes, an upper bound on what `demonstrations` allocates; a format that does not say it is read once."""
        ...

    @property
    def exact(self) -> bool:
        """Whether `demonstrations` allocates as much as `capacity` says, or perhaps much less."""
        ...

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """Every demonstration, in order; states and actions lie in arrays that `allocate` gave.

        Holds one trajectory and one batch of the file in memory, besides what `allocate` gives.

        Args:
            role: the role of every episode, or None for what the source says.
            allocate: where states and actions go.

        Raises:
            InputError: for data that cannot be used.
        """
        ...


class Writer(Protocol):
    """Writes demonstrations one after the other; the file appears, whole, when the `with` block ends well."""

    def add(self, demonstration: Demonstration) -> None:
        """Appends one demonstration.

        Raises:
            InputError: it does not fit what was added before, or the format cannot hold it.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def check_finite(states: NDArray[Any], where: str, fields: Sequence[str] = ()) -> None:
    """Refuses NaN and infinity, naming the step and the field.

    Args:
        states: `(T+1, n)` of a vector, or a grid, which cannot hold either.
        where: file and episode.
        fields: names of the n components, where known.

    Raises:
        InputError: a state is not finite.
    """
    if states.dtype.kind != "f" or np.isfinite(states).all():
        return
    step, column = (int(i) for i in np.argwhere(~np.isfinite(states))[0])
    name = f"{fields[column]!r} (number {column})" if column < len(fields) else f"number {column}"
    raise InputError(
        f"{where}, step {step}, field {name}: found {states[step, column]}; "
        "expected finite numbers: drop the episode or clean the data"
    )


def build(states: NDArray[Any], where: str, fields: Sequence[str] = (), **parts: Any) -> Trajectory:
    """A `Trajectory` whose complaints about NaN name the field; `parts` are its other attributes.

    Raises:
        InputError: states, names of fields or actions that cannot be used.
    """
    if states.ndim == 2:
        if fields and len(fields) != states.shape[1]:
            raise InputError(
                f"{where}: {len(fields)} names of fields for states of {states.shape[1]} numbers; expected one each"
            )
        check_finite(states, where, fields)
    actions = parts.get("actions")
    if actions is not None and (actions.dtype.kind not in "biuf" or actions.dtype.itemsize > 8):
        raise InputError(f"{where}: actions are {actions.dtype}; expected numbers: write them as numbers, or none")
    if actions is not None and actions.dtype.kind == "f" and not np.isfinite(actions).all():
        step = int(np.argwhere(~np.isfinite(actions))[0][0])
        raise InputError(
            f"{where}, step {step}: found action {actions[step].tolist()}; expected finite numbers: "
            "clean the data, or leave the actions out"
        )
    unicode_text(parts.get("extra_info", ""), where)
    return Trajectory(states, source=where, **parts)


def unicode_text(text: str, where: str) -> str:
    """The text, unless it is half of a character, which can be written neither to a database nor to a report.

    Raises:
        InputError: such a text.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: {text[:80]!a} is not Unicode; expected text: write it again") from None
    return text


def stated_role(value: object, where: str) -> Role:
    """The role that a source states.

    Raises:
        InputError: none, or another word.
    """
    if value not in get_args(Role):
        raise InputError(f"{where}: role {reprlib.repr(value)}; expected 'expert' or 'negative'")
    return cast(Role, value)


def stated_split(value: object, where: str) -> Split | None:
    """The split that a source states; None and the empty text state none.

    Raises:
        InputError: another word.
    """
    if value is None or value == "":
        return None
    if value not in get_args(Split):
        raise InputError(f"{where}: split {reprlib.repr(value)}; expected 'train' or 'held_out', or none")
    return cast(Split, value)


def total_bytes(arrays: int, nbytes: int) -> int:
    """Upper bound on what an arena needs for so many arrays of `nbytes` bytes in all, with their paddings."""
    return nbytes + arrays * ALIGNMENT
