"""The screenshots of a Parquet set that is written: the pictures themselves, or their places."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from grace_irl.demos.parquet.rows import PICTURE
from grace_irl.demos.screenshots import Keep, PlacedScreenshot, Screenshot
from grace_irl.errors import InputError

Cell = dict[str, Any] | None
"""Fields of a row's screenshot: those of the struct."""

# As the Image of Hugging Face's datasets, which reads both.
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
    """Makes the cells of one set.

    Args:
        keep: what the set has of screenshots.
        place: of the set: what lies in its folder, or below it, is referred to from there.
    """

    def __init__(self, keep: Keep, place: Path) -> None:
        self._keep = keep
        self._folder = Path(os.path.realpath(place.parent))

    @property
    def type(self) -> pa.DataType | None:
        """Of the column; None if there is none."""
        return {"embed": EMBEDDED, "refer": REFERRED, "none": None}[self._keep]

    @property
    def embeds(self) -> bool:
        """Whether the pictures themselves are written."""
        return self._keep == "embed"

    def cell(self, screenshot: Screenshot | None, where: str) -> tuple[Cell, int]:
        """A row's screenshot, and its bytes.

        Args:
            where: file, episode and step.

        Raises:
            InputError: a picture that cannot be read, or that lies nowhere.
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
        """Cells as rows of the column."""
        kind = self.type
        assert kind is not None
        fields = [pa.array([cell and cell.get(field.name) for cell in cells], field.type) for field in kind]
        missing = pa.array([cell is None for cell in cells])
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=missing)

    def _reference(self, screenshot: Screenshot) -> Cell:
        if not isinstance(screenshot, PlacedScreenshot):
            raise InputError("a screenshot that lies in no file; expected one that does: embed it")
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
