"""The protocol of every format's reader and writer, and the checks that they share."""

from __future__ import annotations

import os
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, cast, get_args

import numpy as np

from grace_irl.atomic import part_of
from grace_irl.demos.header import Header, HeaderBuilder
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Split, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import kind_named, kind_of
from grace_irl.states.kind import Allocate, States


class Source(Protocol):
    """One set of demonstrations on disk, opened: metadata at once, trajectories on demand."""

    path: Path
    header: Header

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """Every demonstration, in order; states and actions lie in arrays that `allocate` gave.

        Holds one trajectory and one batch of the file in memory, besides what `allocate` gives.

        Args:
            role: the role of every episode, or None for what the source says.
            allocate: gives the places of states and actions; refuses what does not fit the memory.

        Raises:
            InputError: for data that cannot be used.
        """
        ...


def build(states: States, where: str, fields: Sequence[str] = (), *, kind: str = "", **parts: Any) -> Trajectory:
    """A `Trajectory` whose complaints about its states name the field; `parts` are its other attributes.

    Args:
        states: as their kind has them.
        where: file and episode.
        fields: names of a state's numbers, if known.
        kind: name of the states' kind; "" stands for the kind that recognises them.

    Raises:
        InputError: states, names of fields or actions that cannot be used.
    """
    found = kind_named(kind) if kind else kind_of(states, where)
    found.check_fields(states, fields, where)
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
    return Trajectory(states, source=where, kind=found.name, **parts)


def unicode_text(text: str, where: str) -> str:
    """The text, unless it has half of a character, which can be written neither to a database nor to a report.

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


class SetWriter(ABC):
    """Writes demonstrations one after the other; the set appears, whole, when the `with` block ends well.

    A format says how demonstrations are gathered (`_append`) and how the whole is made of them (`_finish`). What
    it leaves in `self._part` is moved to the place; a format that makes more than one file has its own `_publish`
    and `_discard`.

    Args:
        place: the file or folder of the set; its folder is made if need be, and not before something is written.
        metadata: of the set.
    """

    def __init__(self, place: Path, metadata: Metadata) -> None:
        self._place = place
        self._part = part_of(place)
        self._metadata = metadata
        self._header = HeaderBuilder(metadata)
        self._count = 0

    def add(self, demonstration: Demonstration) -> None:
        """Appends one demonstration.

        Raises:
            InputError: it does not fit what was added before, or the format cannot hold it.
        """
        where = demonstration.trajectory.source or f"episode {self._count}"
        unicode_text(demonstration.trajectory.extra_info, f"{where}: instruction")
        unicode_text(demonstration.task, f"{where}: task")
        self._header.add(demonstration)
        try:
            self._append(demonstration, where)
        except OSError as error:
            raise self._unwritable(error) from None
        self._count += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                if not self._count:
                    raise InputError(f"{self._place}: nothing to write; expected at least one trajectory")
                self._finish(self._header.header().to_json())
                self._publish()
        except OSError as failure:
            raise self._unwritable(failure) from None
        finally:
            self._discard()

    @abstractmethod
    def _append(self, demonstration: Demonstration, where: str) -> None:
        """Takes one demonstration, which is named `where` in messages.

        Raises:
            InputError: it does not fit what came before, or the format cannot hold it.
        """

    @abstractmethod
    def _finish(self, header: str) -> None:
        """Makes the whole set, with the metadata `header` (see `Header.to_json`), at `self._part`."""

    def _publish(self) -> None:
        """Moves the set to its place."""
        os.replace(self._part, self._place)

    def _discard(self) -> None:
        """Closes what is open and removes what is left beside the place, whether the set was published or not."""
        with suppress(NotADirectoryError):  # the place lies below a file: nothing was made, and that is reported
            self._part.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> InputError:
        said = error.strerror or (str(error).splitlines() or [type(error).__name__])[0]
        return InputError(f"{self._place}: cannot be written ({said}); free some space or choose another place")
