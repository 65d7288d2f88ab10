"""Shards of the data set AndroidControl. A shard is a TFRecord file, usually one GZIP stream.

Pictures are read on demand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import ClassVar

from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import Place, checked, identity
from grace_irl.demos.tfrecord import read_records, require_libraries
from grace_irl.demos.ui.record import EpisodeRecord
from grace_irl.errors import InputError

PARSED = 15
"""Maximum memory of a parsed record, in bytes per byte of the record. Records with many empty parts need the most."""

TREE_PARSED = 100
"""Maximum memory of a parsed accessibility tree, in bytes per byte of the tree."""


class Shard:
    """An open shard.

    Args:
        path: the file.
        memory: memory limit of the set; None for a new `Memory()`.

    Raises:
        InputError: the libraries for shards are not installed.
    """

    _walk: ClassVar[_Walk | None] = None
    """The sequential reader of the latest look-up in any shard. The next look-up reuses this reader if possible."""

    _lock: ClassVar[Lock] = Lock()

    def __init__(self, path: Path, memory: Memory | None = None) -> None:
        require_libraries(path, "android")
        self.path = path
        self._memory = Memory() if memory is None else memory
        self._current: tuple[int, EpisodeRecord] | None = None

    def records(self) -> Iterator[EpisodeRecord]:
        """Every record, in order. One record is in memory at a time.

        Raises:
            InputError: see `read_records` and `EpisodeRecord.parse`.
        """
        try:
            for number, data in enumerate(read_records(self.path)):
                record = self.parsed(data, number)
                del data
                self._current = number, record
                yield record
                self._current = None
                del record  # frees its memory before the next record is read
        finally:
            self._current = None

    def record(self, number: int) -> EpisodeRecord:
        """Look up one record.

        The current record of `records` and the last result of this method are in memory. For any other record, reading
        continues after the last result. Reading restarts at the beginning of the file if the record comes before the
        last result, if the file has changed, or if a record of another shard was looked up in between.

        Raises:
            InputError: the file is missing or damaged, or has no such record.
        """
        if self._current is not None and self._current[0] == number:
            return self._current[1]
        with Shard._lock:
            walk, Shard._walk = Shard._walk, None  # after an error, the next look-up starts anew
            if walk is None or walk.shard is not self or not (walk.number == number or walk.reaches(number)):
                walk = _Walk(self)
            record = walk.to(number)
            Shard._walk = walk
            return record

    def parsed(self, data: bytes, number: int) -> EpisodeRecord:
        """Parse the data of a record.

        Raises:
            InputError: the errors of `EpisodeRecord.parse`, or a record that needs more memory than the limit.
        """
        where = f"{self.path}: record {number}"
        self._memory.require(PARSED * len(data), where)
        record = EpisodeRecord.parse(data, where)
        self._memory.require(TREE_PARSED * max(map(len, record.trees)), f"{where}: a tree")
        return record


class _Walk:
    """A sequential reader of a shard that stops at requested records.

    Attributes:
        shard: the shard.
        number: index of the last record that was read; -1 before the first record.
    """

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self._found = identity(shard.path)
        self._records = enumerate(read_records(shard.path))
        self.number = -1
        self._record: EpisodeRecord | None = None

    def reaches(self, number: int) -> bool:
        """Whether this reader can still reach a record: the record lies ahead, and the file is unchanged."""
        return self.number < number and self._found == identity(self.shard.path)

    def to(self, number: int) -> EpisodeRecord:
        """Read up to a record and return it. The record must not come before the last record that was read.

        Raises:
            InputError: the file ends before the record.
        """
        if self._record is None or number != self.number:
            self._record = None  # frees its memory before the next record is read
            data = next((data for self.number, data in self._records if self.number == number), None)
            if data is None:
                found = f"{self.shard.path}: no record {number} any more"
                raise InputError(f"{found}; expected an unchanged file: load the demonstrations again")
            self._record = self.shard.parsed(data, number)
        return self._record


@dataclass(frozen=True)
class RecordScreenshot:
    """A picture in a record of a shard.

    Attributes:
        shard: shard with the record.
        number: index of the record.
        step: index of the state in the episode.
    """

    shard: Shard
    number: int
    step: int

    def read(self) -> bytes:
        """See `Screenshot.read`."""
        where = f"{self.shard.path}: record {self.number}, screenshot {self.step}"
        screenshots = self.shard.record(self.number).screenshots
        if self.step >= len(screenshots):
            raise InputError(f"{where}: not there any more; expected an unchanged file: load the demonstrations again")
        return checked(screenshots[self.step], where)

    def place(self) -> Place:
        """See `PlacedScreenshot.place`."""
        return Place(str(self.shard.path), record=self.number, step=self.step)
