"""Files of demonstrations: the protocol of readers, the base class of writers, and the checks for all formats."""

from __future__ import annotations

import errno
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from grace_irl.atomic import part_of
from grace_irl.demos.header import Header, HeaderBuilder
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Trajectory
from grace_irl.errors import InputError
from grace_irl.states import kind_named, kind_of
from grace_irl.states.kind import Allocate, States

LONGEST_TEXT = 1 << 20
"""Maximum length of an action text or step instruction in characters. Usual texts have 20 to 300."""


class Source(Protocol):
    """An open set of demonstrations, usually a file. The header is read when the set is opened, trajectories on demand.

    A source may have an attribute `nbytes`: the total size of its arrays in bytes, if this size is known in advance.
    """

    path: Path
    header: Header

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """Yield every demonstration in order, with its states and actions in arrays from `allocate`.

        Apart from these arrays, memory holds only the current trajectory and one batch of the file's rows.

        Args:
            role: role of every episode, "expert" or "negative"; None uses the roles in the file.
            allocate: function that returns an array for states or actions. It raises `InputError` if the array exceeds
                the memory limit.

        Raises:
            InputError: data that cannot be used.
        """
        ...


def build(states: States, where: str, fields: Sequence[str] = (), *, kind: str = "", **parts: Any) -> Trajectory:
    """Create a `Trajectory` from data of a file. Error messages name the faulty component (field) of a state.

    Args:
        states: states in the array layout of their kind.
        where: file and episode, for messages.
        fields: names of the components of a state; () if they are unknown.
        kind: name of the states' kind, such as "vector". "" selects the kind that recognises the states.
        parts: other attributes of `Trajectory`, such as `actions`.

    Raises:
        InputError: states, field names or actions that cannot be used.
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


def ended(flags: NDArray[Any], name: str, where: str) -> bool:
    """Whether any of an episode's flags, one for each state, marks the end of the episode.

    The flag of the last state may be off, because a writer may mark the end beside the last action.

    Args:
        flags: the flags.
        name: name of their column.
        where: file and episode, for messages.

    Raises:
        InputError: a flag is on, and a later flag other than the last is off. Perhaps two episodes share a number.
    """
    on = np.flatnonzero(flags)
    if len(on) and not flags[on[0] : -1].all():
        raise InputError(
            f"{where}: column {name!r} says in row {on[0]} of {len(flags)} that the episode ends, and it goes on; "
            "expected this at the end: number the episodes apart, or rename the column if it says something else"
        )
    return bool(len(on))


def unicode_text(text: str, where: str) -> str:
    """Return the text unchanged if it is valid Unicode.

    A lone surrogate (half of a character) cannot be written to a database or a report.

    Raises:
        InputError: a text with a lone surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: {text[:80]!a} is not Unicode; expected text: write it again") from None
    return text


def stated_words(texts: Sequence[str | None], name: str, where: str) -> tuple[str, ...]:
    """Check and return the texts that a file gives to the steps of an episode, such as action texts; () without any.

    Args:
        texts: one text per step, None for a step without a text.
        name: name of the column.
        where: file and episode, for messages.

    Raises:
        InputError: a text that is missing in only some steps, or a text that is too long.
    """
    found = tuple(text for text in texts if text is not None)
    if found and len(found) < len(texts):
        raise InputError(
            f"{where}, step {texts.index(None)}: no {name}, though other steps have one; expected one for each step, "
            "or none: fill it in"
        )
    longest = max(map(len, found), default=0)
    if longest > LONGEST_TEXT:
        raise InputError(f"{where}: {name} of {longest:,} characters; expected at most {LONGEST_TEXT:,}: cut it")
    return found


def one_text(texts: Iterable[str | None], name: str, where: str) -> str | None:
    """The text that all rows of an episode share; None if no row has a text.

    Args:
        texts: texts of the rows. None is a row without a text, which does not count.
        name: name of the column.
        where: file and episode, for messages.

    Raises:
        InputError: different texts.
    """
    different = [*dict.fromkeys(text for text in texts if text is not None)]
    if len(different) > 1:
        raise InputError(
            f"{where}: {name} {repr(different[0])[:80]} and then {repr(different[1])[:80]}; expected one through the "
            "episode: give each trajectory an episode of its own"
        )
    return different[0] if different else None


class SetWriter(ABC):
    """A context manager that writes a set of demonstrations, one demonstration at a time.

    The complete set appears at `place` when the `with` block ends without an error.

    A subclass implements `_append` (collect a demonstration) and `_finish` (write the set to the temporary path
    `self._part`). `_publish` then moves the set to `place`. A format with several files overrides `_publish` and
    `_discard`.

    Args:
        place: file or folder of the set. A missing parent folder is created at the first write.
        metadata: metadata of the set.
    """

    def __init__(self, place: Path, metadata: Metadata) -> None:
        self._place = place
        self._part = part_of(place)
        self._metadata = metadata
        self._header = HeaderBuilder(metadata)
        self._count = 0

    def require_writable(self) -> None:
        """Check that the set can be written at its place, before the work to make the set.

        Raises:
            InputError: no file can be written there.
        """
        try:
            if self._place.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            folder = next(parent for parent in self._place.absolute().parents if parent.exists())
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"\0")  # a full disk still takes an empty file
        except OSError as error:
            raise self._unwritable(error) from None

    def add(self, demonstration: Demonstration) -> None:
        """Append one demonstration.

        Raises:
            InputError: the demonstration does not match earlier demonstrations, or the format cannot hold it.
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
        finally:  # failures here only leave a temporary file, and must not hide the error above
            with suppress(OSError):
                self._discard()

    @abstractmethod
    def _append(self, demonstration: Demonstration, where: str) -> None:
        """Collect one demonstration. `where` names the demonstration in messages.

        Raises:
            InputError: the demonstration does not match earlier demonstrations, or the format cannot hold it.
        """

    @abstractmethod
    def _finish(self, header: str) -> None:
        """Write the complete set to `self._part`, with `header` (see `Header.to_json`) as its metadata."""

    def _publish(self) -> None:
        """Move the complete set from the temporary path to its place."""
        os.replace(self._part, self._place)

    def _discard(self) -> None:
        """Close open files and remove temporary files, after success and after failure."""
        self._part.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> InputError:
        said = error.strerror or (str(error).splitlines() or [type(error).__name__])[0]
        return InputError(f"{self._place}: cannot be written ({said}); free some space or choose another place")
