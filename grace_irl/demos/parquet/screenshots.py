"""Screenshots in a Parquet set (one file of demonstrations). They are read on demand.

A row holds the picture itself, or the path of a file with the picture. The path is untrusted, because it comes from the
author of the set. So the path must be relative to the set's folder and must not leave that folder.

If a row also states the SHA-256 of the picture, the path may lead to any folder. Only a picture with that SHA-256 is
returned. Without this check, a hostile set could name a private file of the user. If the user copied the set, the copy
would contain that file. An author can state the SHA-256 only of a picture that they have already.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from grace_irl.demos.memory import Memory
from grace_irl.demos.parquet.pages import Pages
from grace_irl.demos.parquet.schema import PICTURE, PLACE_NUMBERS, PLACE_TEXTS, SCREENSHOT, fields_of
from grace_irl.demos.screenshots import FileScreenshot, Keep, Place, PlacedScreenshot, Screenshot, checked, identity
from grace_irl.demos.ui.shard import RecordScreenshot, Shard
from grace_irl.errors import InputError

BUFFER = 1 << 20
"""Size of one read from the file, in bytes. It is small, so that reading a picture does not load a whole row group."""

COPIES = 3
"""Number of copies of a page that are in memory at once: compressed, decompressed, and as the bytes of a picture."""

LONGEST_PATH = 4096

_EXPECTED = "expected the path of a picture in the set's folder, or its sha256 beside the path"


class SetPictures:
    """The screenshots of one Parquet set.

    Args:
        path: file of the set.
        schema: schema of the file.
    """

    _open: ClassVar[tuple[SetPictures, _Reading] | None] = None
    """The set from which `picture` read last, and the open file of this set; None after an error. The file stays open,
    because pictures are usually read in order."""

    _lock: ClassVar[Lock] = Lock()

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        fields = fields_of(schema.field(SCREENSHOT).type) if SCREENSHOT in schema.names else {}
        self.has_pictures = PICTURE in fields
        self.columns = tuple(f"{SCREENSHOT}.{name}" for name in (*PLACE_TEXTS, *PLACE_NUMBERS) if name in fields)
        self._identity = identity(path)
        self._shards: dict[Path, Shard] = {}
        self._sets: dict[Path, SetPictures] = {}

    def screenshots(self, places: pa.StructArray, row: int) -> list[SetScreenshot | None]:
        """The screenshots of consecutive rows; None for a row without a screenshot.

        Args:
            places: the screenshot column of these rows, without the pictures.
            row: index of the first of these rows in the set.
        """
        try:
            values = places.to_pylist()
        except UnicodeDecodeError:
            raise pa.ArrowInvalid(f"column {SCREENSHOT!r} holds text that is not UTF-8") from None
        return [
            None if value is None else SetScreenshot(self, row + number, _place(value))
            for number, value in enumerate(values)
        ]

    def picture(self, row: int) -> bytes | None:
        """The bytes of the picture in a row; None if the row does not hold the picture itself.

        Raises:
            InputError: the file is missing, damaged or has changed.
        """
        if not self.has_pictures:
            return None
        with SetPictures._lock:
            opened = SetPictures._open
            SetPictures._open = None  # after an error, the next call opens the file anew
            try:
                if self._identity is None or self._identity != identity(self.path):
                    raise InputError(
                        f"{self.path}: row {row}: no screenshot: the set was removed or written again since it was "
                        "opened; expected it unchanged: open it again"
                    )
                reading = opened[1] if opened is not None and opened[0] is self else _Reading(self.path)
                found = reading.picture(row)
            except (pa.ArrowException, OSError) as error:
                raise InputError(
                    f"{self.path}: row {row}: no screenshot ({' '.join(str(error).split())[:160]}); expected a whole "
                    "Parquet file: write or copy it again"
                ) from None
            SetPictures._open = self, reading
            return found

    def resolved(self, place: Place, where: str) -> PlacedScreenshot:
        """The screenshot that a row refers to, with an absolute path.

        Args:
            place: place of the picture, from the row.
            where: file and row, for messages.

        Raises:
            InputError: a path that a row may not refer to, a missing file, or invalid numbers in the place.
        """
        path = self.path_of(place, where)
        try:
            there = path.is_file()
        except OSError:  # an impossible file name, such as a name that is too long
            there = False
        if not there:
            raise InputError(f"{where}: no screenshot at {path}; expected the file there: was the set moved alone?")
        numbers = (place.start, place.length or 0, place.record or 0, place.step or 0)
        if any(not 0 <= number < 1 << 62 for number in numbers) or (place.step is not None and place.record is None):
            raise InputError(
                f"{where}: a screenshot at offset {numbers[0]}, length {numbers[1]}, record {numbers[2]}, step "
                f"{numbers[3]} of {path}; expected numbers of at least 0, and a step only with a record"
            )
        if place.record is None:
            return FileScreenshot(path, place.start, place.length)
        if place.step is not None:
            return RecordScreenshot(self._shards.setdefault(path, Shard(path)), place.record, place.step)
        if path not in self._sets:
            self._sets[path] = SetPictures(path, _schema(path, where))
        return SetScreenshot(self._sets[path], place.record)

    def path_of(self, place: Place, where: str) -> Path:
        """Check that a row may refer to a place, and return the absolute path of the place.

        Args:
            place: place of the picture, from the row.
            where: file and row, for messages.

        Raises:
            InputError: a path that a row may not refer to.
        """
        path = PurePosixPath(place.path)
        refused = ""
        if not place.path or len(place.path) > LONGEST_PATH or "\0" in place.path or "://" in place.path:
            refused = "no path of a file"
        elif ".." in path.parts:
            refused = "a path with '..'"
        elif path.is_absolute() and not place.sha256:
            refused = "an absolute path"
        folder = self.path.parent.resolve()
        found = folder / path
        if not refused and not place.sha256 and not Path(os.path.realpath(found)).is_relative_to(folder):
            refused = "a link out of the folder"
        if refused:
            raise InputError(f"{where}: {refused}, {place.path[:200]!r}; {_EXPECTED}")
        return found


@dataclass(frozen=True)
class SetScreenshot:
    """The screenshot of one row in a Parquet set.

    Attributes:
        pictures: screenshots of the set.
        row: index of the row in the set.
        reference: place of the picture, from the row, or None. It is used only if the row does not hold the picture
            itself.
    """

    pictures: SetPictures
    row: int
    reference: Place | None = None

    def read(self) -> bytes:
        """See `Screenshot.read`."""
        data = self.pictures.picture(self.row)
        if data is not None:
            return checked(data, self._where)
        if self.reference is None:
            raise InputError(f"{self._where}: no picture there; expected one, or the path of one")
        data = self.pictures.resolved(self.reference, self._where).read()
        wanted = self.reference.sha256
        if wanted and hashlib.sha256(data).hexdigest() != wanted:
            raise InputError(
                f"{self._where}: the picture at {self.reference.path} has changed since the set was written; "
                "expected the one whose SHA-256 the row states: put it back"
            )
        return data

    def place(self) -> Place:
        """See `PlacedScreenshot.place`."""
        if self.reference is None or self.pictures.picture(self.row) is not None:
            return Place(str(self.pictures.path), record=self.row)
        place, sha256 = self.reference, self.reference.sha256
        # The path may name a missing picture. The reference is kept, because the user may restore the file later.
        path = self.pictures.path_of(place, self._where)
        return Place(str(path), place.start, place.length, place.record, place.step, sha256)

    @property
    def _where(self) -> str:
        return f"{self.pictures.path}: row {self.row}"


class _Reading:
    """A reader that keeps a set open and reads its pictures in order."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True)
        self._where = str(path)
        self._memory = Memory()
        self._pages = Pages(path, self._file, self._memory)
        about = self._file.metadata
        groups = (about.row_group(number).num_rows for number in range(about.num_row_groups))
        self._ends = list(accumulate(groups))
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._next = self._stop = 0
        self._last: bytes | None = None

    def picture(self, row: int) -> bytes | None:
        """The bytes of the picture in a row.

        For a later row of the same row group, reading continues after the row that was read last.
        """
        if row == self._next - 1:
            return self._last
        if not self._ends or row >= self._ends[-1]:
            raise pa.ArrowInvalid(f"{self._ends[-1] if self._ends else 0} rows")
        if not self._next <= row < self._stop:
            group = bisect_right(self._ends, row)
            pages = self._pages.chunks([f"{SCREENSHOT}.{PICTURE}"], group)[group]
            largest = max((page.largest for page in pages), default=0)
            self._memory.require(COPIES * largest, f"{self._where}: a page of pictures")
            self._next, self._stop = self._ends[group - 1] if group else 0, self._ends[group]
            self._batches = self._file.iter_batches(
                1, row_groups=[group], columns=[f"{SCREENSHOT}.{PICTURE}"], use_threads=False
            )
        self._last = None
        for batch in self._batches:
            self._next += 1
            if self._next > row:
                value = batch.column(0)[0].as_py()
                self._last = None if value is None else value[PICTURE]
                return self._last
        raise pa.ArrowInvalid("fewer rows than the file says")


def _place(value: dict[str, Any]) -> Place | None:
    """The place of a row's picture; None if the row has no path."""
    if value["path"] is None:
        return None
    return Place(
        value["path"],
        value.get("start") or 0,
        value.get("length"),
        value.get("record"),
        value.get("step"),
        value.get("sha256") or "",
    )


def _schema(path: Path, where: str) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"{where}: {path} is not readable as Parquet ({reason}); expected a set there") from None


Cell = dict[str, Any] | None
"""The screenshot struct of one row, by field name; None without a screenshot."""

# EMBEDDED has the layout of the type Image in Hugging Face's library `datasets`. Image can also read REFERRED.
EMBEDDED = pa.struct([(PICTURE, pa.binary()), ("path", pa.string())])
REFERRED = pa.struct(
    [
        ("path", pa.string()),
        ("start", pa.int64()),
        ("length", pa.int64()),
        ("record", pa.int64()),
        ("step", pa.int32()),
        ("sha256", pa.string()),
    ]
)

_HINT = "or leave screenshots out (--screenshots none)"


class ScreenshotColumn:
    """The screenshot column of a set that is being written.

    Args:
        keep: whether the set embeds screenshots, refers to them or leaves them out.
        place: file of the set. Paths of pictures in or below its folder are written relative to that folder.
    """

    def __init__(self, keep: Keep, place: Path) -> None:
        self._keep = keep
        self._folder = Path(os.path.realpath(place.parent))

    @property
    def type(self) -> pa.DataType | None:
        """The type of the column; None if screenshots are left out."""
        return {"embed": EMBEDDED, "refer": REFERRED, "none": None}[self._keep]

    @property
    def embeds(self) -> bool:
        """Whether the pictures are embedded in the set."""
        return self._keep == "embed"

    def cell(self, screenshot: Screenshot | None, where: str) -> tuple[Cell, int]:
        """The cell of a row, and the size of the embedded picture in bytes; 0 without an embedded picture.

        Args:
            screenshot: screenshot of the row, or None.
            where: file, episode and step, for messages.

        Raises:
            InputError: a picture that cannot be read, or a picture without a file to refer to.
        """
        if screenshot is None or self._keep == "none":
            return None, 0
        try:
            if self._keep == "refer":
                return self._reference(screenshot), 0
            picture = screenshot.read()
        except InputError as error:
            raise InputError(f"{where}: {error}, {_HINT}") from None
        return {PICTURE: picture}, len(picture)

    def array(self, cells: Sequence[Cell]) -> pa.StructArray:
        """The cells as an array of the column's type."""
        kind = self.type
        assert kind is not None
        fields = [pa.array([cell and cell.get(field.name) for cell in cells], field.type) for field in kind]
        missing = pa.array([cell is None for cell in cells])
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=missing)

    def _reference(self, screenshot: Screenshot) -> Cell:
        if not isinstance(screenshot, PlacedScreenshot):
            raise InputError("a screenshot that is in no file; expected a file to refer to: embed the screenshot")
        place = screenshot.place()
        sha256 = place.sha256 or hashlib.sha256(screenshot.read()).hexdigest()
        folder, name = os.path.split(os.path.abspath(place.path))
        path = Path(os.path.realpath(folder), name)
        if path.is_relative_to(self._folder):
            path = path.relative_to(self._folder)
        return {
            "path": path.as_posix(),
            "start": place.start or None,
            "length": place.length,
            "record": place.record,
            "step": place.step,
            "sha256": sha256,
        }
