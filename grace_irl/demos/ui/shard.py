"""A shard of AndroidControl, opened: records one after the other, and pictures that are found again on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grace_irl.demos.screenshots import checked
from grace_irl.demos.ui.record import Record
from grace_irl.demos.ui.tfrecord import read_records
from grace_irl.errors import InputError


class Shard:
    """A file of records.

    Raises:
        InputError: what reads it is not installed.
    """

    def __init__(self, path: Path) -> None:
        require_extra(path)
        self.path = path
        self._recent: tuple[int, Record] | None = None

    def records(self) -> Iterator[Record]:
        """Every record, in order; one of them is in memory at a time.

        Raises:
            InputError: see `read_records` and `Record.parse`.
        """
        for number, data in enumerate(read_records(self.path)):
            record = Record.parse(data, f"{self.path}: record {number}")
            del data
            self._recent = number, record
            yield record
            self._recent = None
            del record

    def record(self, number: int) -> Record:
        """One record. It is kept until another one is asked for; those before it are read again to get there.

        Raises:
            InputError: the file is gone, or was changed.
        """
        if self._recent is None or self._recent[0] != number:
            for place, data in enumerate(read_records(self.path)):
                if place == number:
                    self._recent = number, Record.parse(data, f"{self.path}: record {number}")
                    break
            else:
                raise InputError(
                    f"{self.path}: no record {number} any more; expected the file as it was: read it again"
                )
        return self._recent[1]


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
