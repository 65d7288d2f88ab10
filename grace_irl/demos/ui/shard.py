"""Shards of the data set AndroidControl: TFRecord files, usually one GZIP stream each. Pictures are read on demand.

A record consists of its length (uint64), the masked CRC-32C of the length (uint32), the data, and the masked CRC-32C
of the data (uint32). All numbers are little-endian (tensorflow/core/lib/io/record_writer.h).
"""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO, ClassVar

from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import Place, checked, identity
from grace_irl.demos.ui.record import EpisodeRecord
from grace_irl.errors import InputError

MAX_RECORD = 256 * 1024 * 1024
"""Maximum size of a record in bytes. An episode with screenshots has 5 to 50 MB."""

SUFFIX = ".tfrecord"

GZIP_MAGIC = b"\x1f\x8b"

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_CHUNK = 1024 * 1024
_NAME = re.compile(r"-\d{5}-of-\d{5}$|\.tfrecords?(\.gz)?$")
_FEATURES = b"\x0a"
"""First byte of a `tf.train.Example`: the protobuf tag of its only field, `features`."""


def is_name(path: str | Path) -> bool:
    """Whether a file is named like a shard: `…-00000-of-00020`, `….tfrecord`, `….tfrecord.gz`."""
    return bool(_NAME.search(Path(path).name))


def is_shard_of_folder(path: Path) -> bool:
    """Whether a path in a folder is a shard. The name decides, or the first bytes if the suffix is `.gz` or missing."""
    return path.is_file() and (is_name(path) or (path.suffix in ("", ".gz") and is_tfrecord(path)))


def is_tfrecord(path: Path) -> bool:
    """Whether a file is a TFRecord file, by its name or else by its first bytes.

    Checksums are not verified, so the function works without the library that computes them.
    """
    if not path.is_file():
        return False
    if is_name(path):
        return True
    try:
        with _opened(path) as stream:
            head = stream.read(_HEADER.size + 1)
    except (OSError, EOFError, zlib.error):
        return False
    if len(head) <= _HEADER.size:
        return False
    length, _ = _HEADER.unpack_from(head)
    return head[_HEADER.size :] == _FEATURES and 0 < length <= MAX_RECORD


def read_records(path: Path) -> Iterator[bytes]:
    """The data of every record in order, with verified checksums. One record is in memory at a time.

    Raises:
        InputError: a truncated or damaged file, or a record of more than `MAX_RECORD` bytes.
    """
    number = 0
    try:
        with _opened(path) as stream:
            while (data := _next(stream, f"{path}: record {number}")) is not None:
                yield data
                del data  # frees its memory before the next record is read
                number += 1
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
        raise InputError(f"{path}: record {number}: the GZIP data {reason}; {_AGAIN}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check the file") from None


def write_record(stream: BinaryIO, data: bytes) -> None:
    """Append one record to a stream."""
    length = struct.pack("<Q", len(data))
    stream.write(length + _CHECKSUM.pack(masked(checksum(length))))
    stream.write(data)
    stream.write(_CHECKSUM.pack(masked(checksum(data))))


def checksum(data: bytes, before: int = 0) -> int:
    """CRC-32C of the data. If other bytes precede them, `before` is the CRC of those bytes."""
    import google_crc32c

    return int(google_crc32c.extend(before, data))


def masked(crc: int) -> int:
    """The masked form of a CRC in TFRecord. The mask keeps the CRC reliable for data that contain CRCs themselves."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


_AGAIN = "expected whole records: copy or download the file again"


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]


def _next(stream: BinaryIO, where: str) -> bytes | None:
    """The data of the next record, or None at the end."""
    head = _read(stream, _HEADER.size)[0]
    if not head:
        return None
    if len(head) < _HEADER.size:
        raise InputError(f"{where}: {len(head)} bytes of a header of {_HEADER.size}; {_AGAIN}")
    length, stated = _HEADER.unpack(head)
    if masked(checksum(head[:8])) != stated:
        raise InputError(f"{where}: the checksum of its length is wrong: no TFRecord file, or a damaged one; {_AGAIN}")
    if length > MAX_RECORD:
        raise InputError(f"{where}: {length:,} bytes; expected at most {MAX_RECORD:,}: one episode in a record")
    data, crc = _read(stream, length)
    tail = _read(stream, _CHECKSUM.size)[0]
    if len(data) < length or len(tail) < _CHECKSUM.size:
        raise InputError(f"{where}: {len(data):,} of {length:,} bytes; {_AGAIN}")
    if masked(crc) != _CHECKSUM.unpack(tail)[0]:
        raise InputError(f"{where}: the checksum of its data is wrong; {_AGAIN}")
    return data


def _read(stream: BinaryIO, length: int) -> tuple[bytes, int]:
    """Read up to `length` bytes, fewer at the end of the stream. Return them with their CRC-32C.

    Reading in chunks keeps the memory proportional to the bytes that exist, even if `length` is wrong.
    """
    parts: list[bytes] = []
    crc = 0
    while length > 0 and (part := stream.read(min(length, _CHUNK))):
        parts.append(part)
        crc = checksum(part, crc)
        length -= len(part)
    return b"".join(parts), crc


PARSED = 15
"""Maximum memory of a parsed record, in bytes per byte of the record. Only a record with many empty parts needs so
much."""

TREE_PARSED = 100
"""Maximum memory of a parsed accessibility tree, in bytes per byte of the tree."""


class Shard:
    """An open shard.

    Args:
        path: the file.
        memory: memory limit of the set that its records belong to; None for a new `Memory()`.

    Raises:
        InputError: the libraries for shards are not installed.
    """

    _walk: ClassVar[_Walk | None] = None
    """The sequential reader of the latest look-up in any shard. It is kept, as pictures are usually read in order."""

    _lock: ClassVar[Lock] = Lock()

    def __init__(self, path: Path, memory: Memory | None = None) -> None:
        require_extra(path)
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

        The current record of `records` and the last result of `record` are in memory. For another record, reading
        continues after the last result. Reading restarts at the beginning of the file if the record lies before that
        result, if the file has changed, or if another shard was read in between.

        Raises:
            InputError: the file is missing, damaged, or has no such record any more.
        """
        if self._current is not None and self._current[0] == number:
            return self._current[1]
        with Shard._lock:
            walk, Shard._walk = Shard._walk, None  # after an error, the walk is not continued
            if walk is None or walk.shard is not self or not (walk.number == number or walk.reaches(number)):
                walk = _Walk(self)
            record = walk.to(number)
            Shard._walk = walk
            return record

    def parsed(self, data: bytes, number: int) -> EpisodeRecord:
        """Parse the data of a record.

        Raises:
            InputError: the errors of `EpisodeRecord.parse`, or a record larger than the memory.
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
        number: index of the last record that was read; -1 before the first.
    """

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self._found = identity(shard.path)
        self._records = enumerate(read_records(shard.path))
        self.number = -1
        self._record: EpisodeRecord | None = None

    def reaches(self, number: int) -> bool:
        """Whether the walk can still read this record: it lies ahead, and the file is unchanged."""
        return self.number < number and self._found == identity(self.shard.path)

    def to(self, number: int) -> EpisodeRecord:
        """Read up to this record and return it. The walk must not have passed it.

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


def require_extra(path: Path) -> None:
    """Check that the libraries for shards are installed and recent enough.

    Raises:
        InputError: a missing or old library; the message names the extra to install.
    """
    install = "install the extra, pip install 'grace-irl[android]'"
    try:
        import google_crc32c  # noqa: F401
        from google.protobuf.runtime_version import VersionError
    except ImportError as error:
        raise InputError(f"{path}: a shard of AndroidControl, and {error.name} is not installed; {install}") from None
    try:
        from grace_irl.demos.ui import androidcontrol_pb2  # noqa: F401
    except VersionError as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: a shard of AndroidControl, and protobuf does not fit ({reason}); {install}"
        ) from None
