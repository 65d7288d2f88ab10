"""Pictures of states: their places, and the pictures themselves when somebody reads them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from grace_irl.contents import require_inside
from grace_irl.errors import InputError

MAX_BYTES = 64 * 1024 * 1024
"""Largest picture that is read. Real ones have 50 KB to 5 MB."""

SIGNATURES: dict[str, tuple[bytes, int]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n", 0),
    "image/jpeg": (b"\xff\xd8\xff", 0),
    "image/webp": (b"WEBP", 8),
}
"""First bytes of the formats that models and browsers take, with their offset."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


Keep = Literal["embed", "refer", "none"]
"""Screenshots of a written set: the pictures themselves, their places, or none."""


class Screenshot(Protocol):
    """A picture of one state, which stays in its source."""

    def read(self) -> bytes:
        """The encoded picture: PNG, JPEG or WebP.

        Raises:
            InputError: it is gone, too large, or something else.
        """
        ...


@dataclass(frozen=True)
class Place:
    """Place of a picture.

    Attributes:
        path: of a picture file, of a shard of AndroidControl, or of a Parquet set.
        start, length: the bytes of the file that are the picture; a length of None takes the rest.
        record: number of the record of a shard, or of the row of a set; None if the file is the picture.
        step: number of the picture in the record; None if there is no record.
        sha256: of the picture, in hexadecimal digits; or "" if nobody has reckoned it.
    """

    path: str
    start: int = 0
    length: int | None = None
    record: int | None = None
    step: int | None = None
    sha256: str = ""


@runtime_checkable
class PlacedScreenshot(Screenshot, Protocol):
    """A screenshot that another file can refer to."""

    def place(self) -> Place:
        """Its place; the path is that of the source, relative to the working directory or absolute.

        Raises:
            InputError: its source cannot say.
        """
        ...


@dataclass(frozen=True)
class FileScreenshot:
    """A picture in a file, or in some bytes of one.

    Attributes:
        path: the file.
        start: offset of its first byte.
        length: bytes; None takes the rest of the file.
    """

    path: Path
    start: int = 0
    length: int | None = None

    def read(self) -> bytes:
        """See `Screenshot.read`."""
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):  # to open a pipe would wait for who writes to it
                raise InputError(f"{self.path}: no screenshot (not a file); expected a picture there")
            with self.path.open("rb") as file:
                file.seek(self.start)
                data = file.read(MAX_BYTES + 1 if self.length is None else min(self.length, MAX_BYTES + 1))
        except OSError as error:
            raise InputError(f"{self.path}: no screenshot ({error.strerror}); expected a picture there") from None
        return checked(data, str(self.path))

    def place(self) -> Place:
        """See `PlacedScreenshot.place`."""
        return Place(str(self.path), self.start, self.length)


def checked(data: bytes, where: str) -> bytes:
    """The same bytes, if they may be a picture.

    Raises:
        InputError: too many, or of no format of `SIGNATURES`.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{where}: a screenshot above {MAX_BYTES:,} bytes; expected less: scale it down")
    media_type(data, where)
    return data


def media_type(data: bytes, where: str) -> str:
    """The media type of an encoded picture.

    Raises:
        InputError: of no format of `SIGNATURES`.
    """
    for name, (signature, start) in SIGNATURES.items():
        if data[start : start + len(signature)] == signature:
            return name
    raise InputError(f"{where}: begins with {data[:8].hex()}; expected a screenshot in PNG, JPEG or WebP")


def beside(file: Path) -> FileScreenshot | None:
    """The picture that belongs to a file of one state: of the same stem, beside it or in a folder `screenshots`
    beside it or beside its folder.

    Raises:
        InputError: it is a link to elsewhere.
    """
    for root, folder in ((file.parent, "."), (file.parent, "screenshots"), (file.parent.parent, "screenshots")):
        for suffix in SUFFIXES:
            picture = root / folder / f"{file.stem}{suffix}"
            if picture.is_file():
                require_inside(picture, root)
                return FileScreenshot(picture)
    return None


def identity(path: Path) -> tuple[int, ...] | None:
    """A mark that changes when a file is written again, so that no picture is read from another; None of no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
