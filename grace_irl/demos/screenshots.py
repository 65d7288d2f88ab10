"""Screenshots of states. The classes of this module store the place of a picture, and read the picture on demand."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from grace_irl.contents import require_inside
from grace_irl.errors import InputError

MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a picture in bytes. Real screenshots have 50 KB to 5 MB."""

SIGNATURES: dict[str, tuple[bytes, int]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n", 0),
    "image/jpeg": (b"\xff\xd8\xff", 0),
    "image/webp": (b"WEBP", 8),
}
"""Map from each picture format to its identifying bytes and their offset. Models and browsers accept these formats."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


Keep = Literal["embed", "refer", "none"]
"""Treatment of screenshots in written demonstrations: embed the pictures, refer to their places, or omit them."""


class Screenshot(Protocol):
    """A picture of one state. The picture is read from its file on demand."""

    def read(self) -> bytes:
        """The encoded picture: PNG, JPEG or WebP.

        Raises:
            InputError: the picture is missing, too large or not a picture.
        """
        ...


@dataclass(frozen=True)
class Place:
    """The place of a picture on disk: a picture file, or a part of a larger file.

    Attributes:
        path: path of a picture file, of an AndroidControl shard (a TFRecord file) or of a Parquet file.
        start: offset of the picture in the file, in bytes.
        length: size of the picture in bytes; None for the rest of the file.
        record: index of the record in the shard, or of the row in the Parquet file; None for a picture file.
        step: index of the picture in the shard's record; None for other files.
        sha256: SHA-256 of the picture in hexadecimal digits, or "" if not computed.
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
        """The place of the picture. The path is absolute or relative to the working directory.

        Raises:
            InputError: the place cannot be determined.
        """
        ...


@dataclass(frozen=True)
class FileScreenshot:
    """A picture that is a whole file, or a range of bytes in a file.

    Attributes:
        path: the file.
        start: offset of the picture in the file, in bytes.
        length: size of the picture in bytes; None for the rest of the file.
    """

    path: Path
    start: int = 0
    length: int | None = None

    def read(self) -> bytes:
        """See `Screenshot.read`."""
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):  # opening a pipe would block until something writes
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
    """Return the bytes of a picture unchanged, after a check of their size and first bytes.

    Raises:
        InputError: more than `MAX_BYTES`, or a format that is not in `SIGNATURES`.
    """
    if len(data) > MAX_BYTES:
        raise InputError(f"{where}: a screenshot above {MAX_BYTES:,} bytes; expected less: scale it down")
    media_type(data, where)
    return data


def media_type(data: bytes, where: str) -> str:
    """The media type of an encoded picture, such as `image/png`.

    Raises:
        InputError: a format that is not in `SIGNATURES`.
    """
    for name, (signature, start) in SIGNATURES.items():
        if data[start : start + len(signature)] == signature:
            return name
    raise InputError(f"{where}: begins with {data[:8].hex()}; expected a screenshot in PNG, JPEG or WebP")


def beside(file: Path) -> FileScreenshot | None:
    """The picture that belongs to a file with one state, or None if there is no picture.

    The picture has the same stem as the file. For `episode/hierarchy/step_1.xml`, the picture is the first of these
    files that exists:

    - `episode/hierarchy/step_1.png`;
    - `episode/hierarchy/screenshots/step_1.png`;
    - `episode/screenshots/step_1.png`.

    In each folder, the suffix may be any of `SUFFIXES`.

    Raises:
        InputError: the picture is a link that leads out of its allowed folder. The allowed folder is the folder of
            `file` for the first two paths, and the parent of the folder of `file` for the third path.
    """
    for root, folder in ((file.parent, "."), (file.parent, "screenshots"), (file.parent.parent, "screenshots")):
        for suffix in SUFFIXES:
            picture = root / folder / f"{file.stem}{suffix}"
            if picture.is_file():
                require_inside(picture, root)
                return FileScreenshot(picture)
    return None


def identity(path: Path) -> tuple[int, ...] | None:
    """A fingerprint of a file; None if there is no file. When a file is rewritten, its fingerprint changes.

    A reader compares fingerprints, to notice that its file was replaced.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
