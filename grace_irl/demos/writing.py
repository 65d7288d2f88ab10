"""A base for the writers of all formats: a set that appears whole or not at all, with its metadata."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from grace_irl.atomic import part_of
from grace_irl.demos.header import HeaderBuilder
from grace_irl.demos.trajectory import Demonstration, Metadata
from grace_irl.errors import InputError


class SetWriter(ABC):
    """A `Writer` that makes the set beside its place and moves it there when the `with` block ends well.

    A format says how demonstrations are gathered (`_append`) and how the whole is made of them (`_finish`). What
    it leaves in `self._part` is moved to the place; a format that makes more than one file has its own `_publish`
    and `_discard`.

    Args:
        place: where the set goes; its folder is made if need be, and not before something is written.
        metadata: of the set.
    """

    def __init__(self, place: Path, metadata: Metadata) -> None:
        self._place = place
        self._part = part_of(place)
        self._metadata = metadata
        self._header = HeaderBuilder(metadata)
        self._count = 0

    def add(self, demonstration: Demonstration) -> None:
        """See `Writer.add`."""
        where = demonstration.trajectory.source or f"episode {self._count}"
        for name, text in (("instruction", demonstration.trajectory.extra_info), ("task", demonstration.task)):
            if not text.isascii() and not _is_unicode(text):
                raise InputError(f"{where}: {name} {text!a} is not Unicode text; expected letters: correct it")
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


def _is_unicode(text: str) -> bool:
    """Whether it can be encoded: Python's texts may hold halves of characters, from names that were not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
