"""TFRecord files of TensorFlow and its data sets. A file is a sequence of records, plain or in a GZIP stream.

A record consists of the length of its data (uint64), the masked CRC-32C of the length (uint32), the data, and the
masked CRC-32C of the data (uint32). All numbers are little-endian (tensorflow/core/lib/io/record_writer.h). The data
are a `tf.train.Example` with one episode.
"""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from grace_irl.errors import InputError

MAX_RECORD = 256 * 1024 * 1024
"""Maximum size of a record in bytes. An episode with screenshots has 5 to 50 MB."""

SUFFIX = ".tfrecord"

GZIP_MAGIC = b"\x1f\x8b"

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")
_CHUNK = 1024 * 1024
_NAME = re.compile(r"-\d{5}-of-\d{5}$|\.tfrecords?(\.gz)?$", re.IGNORECASE)
_FEATURES = b"\x0a"
"""First byte of a `tf.train.Example`: the protobuf tag of its only field, `features`."""


def is_name(path: str | Path) -> bool:
    """Whether a file is named like a TFRecord file: `…-00000-of-00020`, or `….tfrecord(s)` with or without `.gz`."""
    return bool(_NAME.search(Path(path).name))


def is_in_folder(path: Path) -> bool:
    """Whether a file is a TFRecord file, by its name, or by its first bytes if its suffix is `.gz` or missing."""
    return path.is_file() and (is_name(path) or (path.suffix.lower() in ("", ".gz") and is_tfrecord(path)))


def is_tfrecord(path: Path) -> bool:
    """Whether a file is a TFRecord file, by its name or else by its first bytes.

    Checksums are not verified, so the function works without the library for checksums.
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
    """CRC-32C of the data. If other bytes precede the data, `before` is the CRC of these bytes."""
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
    """The data of the next record; None at the end of the stream."""
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
    """Read `length` bytes, or fewer at the end of the stream. Return the bytes and their CRC-32C.

    Reading in chunks keeps the memory proportional to the bytes that exist, even if `length` is wrong.
    """
    parts: list[bytes] = []
    crc = 0
    while length > 0 and (part := stream.read(min(length, _CHUNK))):
        parts.append(part)
        crc = checksum(part, crc)
        length -= len(part)
    return b"".join(parts), crc


def require_libraries(path: Path, extra: str) -> None:
    """Check that the libraries for TFRecord files are installed and recent enough.

    Args:
        path: the file, for messages.
        extra: extra of this package that installs the libraries.

    Raises:
        InputError: a missing or old library. The message names the extra to install.
    """
    install = f"install the extra, pip install 'grace-irl[{extra}]'"
    try:
        import google_crc32c  # noqa: F401
        from google.protobuf.runtime_version import VersionError
    except ImportError as error:
        raise InputError(f"{path}: a TFRecord file, and {error.name} is not installed; {install}") from None
    try:
        from grace_irl.demos.ui import androidcontrol_pb2  # noqa: F401
    except VersionError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: a TFRecord file, and protobuf does not fit ({reason}); {install}") from None
