"""Writes AndroidControl's shards, which `androidcontrol.py` and every other reader of the format reads."""

from __future__ import annotations

import gzip
import re
import struct
from pathlib import Path
from typing import BinaryIO, cast

from grace_irl.demos import screens
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.trajectory import Demonstration, Metadata
from grace_irl.demos.ui import forest, markup, residue
from grace_irl.demos.ui.about import About
from grace_irl.demos.ui.annotated import AnnotatedTrajectory
from grace_irl.demos.ui.record import Record
from grace_irl.demos.ui.shard import require_extra
from grace_irl.demos.ui.tfrecord import MAX_RECORD, write_record
from grace_irl.demos.writing import SetWriter
from grace_irl.errors import InputError

_EPISODE = re.compile(r": episode (\d{1,18})$")
_PNG = b"\x89PNG\r\n\x1a\n"


class AndroidControlWriter(SetWriter):
    """A `Writer` of one shard, a record for each demonstration.

    Episodes keep the number that their source names, or get the next that is free. Actions and instructions of steps
    are those of an `AnnotatedTrajectory`. What the format has no place for is kept in a feature of our own
    (`record.ABOUT`). Screenshots must be PNG.

    Args:
        screenshots: whether they are written; a shard cannot refer to them.

    Raises:
        InputError: what writes shards is not installed, or the states are no screens.
    """

    def __init__(self, path: Path, metadata: Metadata, screenshots: Keep = "embed") -> None:
        require_extra(path)
        if screenshots == "refer":
            raise InputError(
                f"{path}: AndroidControl holds screenshots and cannot refer to them; expected --screenshots embed or "
                "none, or a .parquet file"
            )
        if metadata.kind != "ui":
            raise InputError(
                f"{path}: {metadata.kind} states, and AndroidControl holds screens; expected .parquet or .npz"
            )
        super().__init__(path, metadata)
        self._screenshots = screenshots
        self._ids: set[int] = set()
        self._free = 0
        self._file: BinaryIO | None = None
        self._stream: BinaryIO | None = None

    def _append(self, demonstration: Demonstration, where: str) -> None:
        trajectory = demonstration.trajectory
        trees, beside = [], []
        for step, state in enumerate(trajectory.states):
            here = f"{where}, step {step}"
            root = markup.parse(screens.text(state), here)
            tree = forest.forest_of(root).SerializeToString(deterministic=True)
            trees.append(tree)
            # As it will be read, so that what could not be read is not written.
            beside.append(residue.difference(root, forest.hierarchy(forest.parse(tree, here), here)))
        shown = trajectory.screenshots if self._screenshots == "embed" else ()
        pictures = [b"" if picture is None else picture.read() for picture in shown]
        annotated = trajectory if isinstance(trajectory, AnnotatedTrajectory) else None
        record = Record(
            episode_id=self._episode_id(trajectory.source),
            goal=trajectory.extra_info,
            trees=tuple(trees),
            actions=annotated.action_texts if annotated else (),
            step_instructions=annotated.step_instructions if annotated else (),
            screenshots=tuple(pictures),
            sizes=tuple(_size(picture, f"{where}, step {step}") for step, picture in enumerate(pictures)),
            about=About.of(demonstration, self._metadata, tuple(beside)).to_json(),
        )
        record.check(where)
        self._write(record.serialise(), where)

    def _write(self, data: bytes, where: str) -> None:
        if len(data) > MAX_RECORD:
            raise InputError(f"{where}: an episode of {len(data):,} bytes; expected at most {MAX_RECORD:,}: split it")
        if self._stream is None:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._part.open("wb")
            # No name and no time in it: equal sets are equal files.
            self._stream = cast(BinaryIO, gzip.GzipFile("", "wb", fileobj=self._file, mtime=0))
        write_record(self._stream, data)

    def _finish(self, header: str) -> None:
        del header  # every record has its own, because the format has no other place
        self._close()

    def _discard(self) -> None:
        self._close()
        super()._discard()

    def _close(self) -> None:
        stream, file = self._stream, self._file
        self._stream = self._file = None
        if stream is not None and file is not None:
            try:
                stream.close()
            finally:
                file.close()

    def _episode_id(self, source: str) -> int:
        named = _EPISODE.search(source)
        number = int(named[1]) if named else self._free
        if number in self._ids:
            number = self._free
        self._ids.add(number)
        while self._free in self._ids:
            self._free += 1
        return number


def _size(picture: bytes, where: str) -> tuple[int, int]:
    """Width and height of a PNG, in pixels; zeros where there is none."""
    if not picture:
        return 0, 0
    if not picture.startswith(_PNG) or len(picture) < 24:
        raise InputError(f"{where}: a screenshot that is no PNG; AndroidControl holds PNG: convert it")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height
