"""A shard of AndroidControl, opened: records one after the other, and pictures that are found again on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import ClassVar

from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import Place, checked, identity
from grace_irl.demos.ui.record import EpisodeRecord
from grace_irl.demos.ui.tfrecord import read_records
from grace_irl.errors import InputError

PARSED = 15
"""Bytes that a byte of a record may become: of one that has nothing but empty parts."""

TREE_PARSED = 100
"""The same of an accessibility tree."""


class Shard:
    """A file of records.

    Args:
        path: of it.
        memory: of the set that its records are read for; None: of a set of its own.

    Raises:
        InputError: what reads it is not installed.
    """

    _looked_up: ClassVar[tuple[Shard, int, EpisodeRecord] | None] = None
    """What was looked up last, of all shards: pictures of one record are asked for one after the other."""

    _walk: ClassVar[tuple[Shard, _Walk] | None] = None
    """Where the last look-up ended: records are mostly asked for in their order."""

    _lock: ClassVar[Lock] = Lock()

    def __init__(self, path: Path, memory: Memory | None = None) -> None:
        require_extra(path)
        self.path = path
        self._memory = Memory() if memory is None else memory
        self._current: tuple[int, EpisodeRecord] | None = None

    def records(self) -> Iterator[EpisodeRecord]:
        """Every record, in order; one of them is in memory at a time.

        Raises:
            InputError: see `read_records` and `EpisodeRecord.parse`.
        """
        try:
            for number, data in enumerate(read_records(self.path)):
                record = self._parsed(data, number)
                del data
                self._current = number, record
                yield record
                self._current = None
                del record  # before the next one is read
        finally:
            self._current = None

    def record(self, number: int) -> EpisodeRecord:
        """One record: the one that `records` is at, the one looked up last, or what a walk through the file finds.

        The walk goes on where the last one ended, if that is before the record and the file is as it was.

        Raises:
            InputError: the file is gone, or was changed.
        """
        if self._current is not None and self._current[0] == number:
            return self._current[1]
        with Shard._lock:
            known = Shard._looked_up
            if known is not None and known[:2] == (self, number):
                return known[2]
            walk = Shard._walk[1] if Shard._walk is not None and Shard._walk[0] is self else None
            if walk is None or walk.at > number or not walk.holds():
                walk = _Walk(self.path)
            Shard._walk = None  # what ends with an error is not gone on with
            data = walk.to(number)
            if data is None:
                raise InputError(
                    f"{self.path}: no record {number} any more; expected the file as it was: read it again"
                )
            record = self._parsed(data, number)
            Shard._walk, Shard._looked_up = (self, walk), (self, number, record)
            return record

    def _parsed(self, data: bytes, number: int) -> EpisodeRecord:
        where = f"{self.path}: record {number}"
        self._memory.require(PARSED * len(data), where)
        record = EpisodeRecord.parse(data, where)
        self._memory.require(TREE_PARSED * max(map(len, record.trees)), f"{where}: a tree")
        return record


class _Walk:
    """A reading of a shard that stops at records somebody asks for.

    Attributes:
        at: number of the next record.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = identity(path)
        self._records = read_records(path)
        self.at = 0

    def holds(self) -> bool:
        """Whether the file is the one that is being read."""
        return self._found == identity(self._path)

    def to(self, number: int) -> bytes | None:
        """The data of this record, which must not be behind; None where the file ends before it."""
        for data in self._records:
            self.at += 1
            if self.at > number:
                return data
        return None


@dataclass(frozen=True)
class RecordScreenshot:
    """A picture in a record.

    Attributes:
        shard: where it lies.
        number: of the record.
        step: of the state.
    """

    shard: Shard
    number: int
    step: int

    def read(self) -> bytes:
        """See `Screenshot.read`."""
        where = f"{self.shard.path}: record {self.number}, screenshot {self.step}"
        screenshots = self.shard.record(self.number).screenshots
        if self.step >= len(screenshots):
            raise InputError(f"{where}: not there any more; expected the file as it was: read it again")
        return checked(screenshots[self.step], where)

    def place(self) -> Place:
        """See `PlacedScreenshot.place`."""
        return Place(str(self.shard.path), record=self.number, step=self.step)


def require_extra(path: Path) -> None:
    """Refuses to go on where the libraries that shards are read and written with are missing or too old.

    Raises:
        InputError: with what to install.
    """
    install = "install the extra, pip install 'grace-irl[android]'"
    try:
        import google_crc32c  # noqa: F401
        from google.protobuf.runtime_version import VersionError
    except ImportError as error:
        raise InputError(f"{path}: a shard of AndroidControl, and {error.name} is not installed; {install}") from None
    try:
        from grace_irl.demos.ui.protos import android_accessibility_forest_pb2, example_pb2  # noqa: F401
    except VersionError as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: a shard of AndroidControl, and protobuf does not fit ({reason}); {install}"
        ) from None
