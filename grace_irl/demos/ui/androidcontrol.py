"""Reader and writer for shards of the data set AndroidControl: GZIP TFRecord files with one episode per record.

A state is a screen. The accessibility trees of a screen are converted to uiautomator's XML (`forest.py`). The goal of
an episode becomes the instruction. Actions are JSON texts instead of numbers, and become `Trajectory.action_texts`.
"""

from __future__ import annotations

import gzip
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from grace_irl.demos.header import Header
from grace_irl.demos.memory import Memory
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.source import SetWriter, build
from grace_irl.demos.tfrecord import MAX_RECORD, require_libraries, write_record
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, stated_role
from grace_irl.demos.ui import forest, residue
from grace_irl.demos.ui.episode import MAX_BYTES
from grace_irl.demos.ui.record import About, EpisodeRecord
from grace_irl.demos.ui.shard import RecordScreenshot, Shard
from grace_irl.errors import InputError
from grace_irl.states.kind import Allocate
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup


class AndroidControlSource:
    """An open shard (see `Source`). The header comes from the first record.

    Args:
        path: the file.
        memory: memory limit of the set.

    Raises:
        InputError: missing libraries for shards, a file without records, or a first record that cannot be used.
    """

    def __init__(self, path: Path, memory: Memory) -> None:
        self.path = path
        self._memory = memory
        self._shard = Shard(path, memory)
        first = next(iter(self._shard.records()), None)
        if first is None:
            raise InputError(f"{path}: no episodes; expected at least one: copy or download the file again")
        about = About.from_json(first.about, self._where(first))
        self.header = Header(about.metadata, None if about.role is None else "mixed")

    def records(self) -> Iterator[EpisodeRecord]:
        """Every episode as a record, in order. One record is in memory at a time.

        Raises:
            InputError: a record that cannot be used.
        """
        return self._shard.records()

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        for number, record in enumerate(self.records()):
            demonstration = self._demonstration(record, number, role, allocate)
            del record  # frees its memory before the next record is read
            yield demonstration

    def _demonstration(
        self, record: EpisodeRecord, number: int, role: Role | None, allocate: Allocate
    ) -> Demonstration:
        where = self._where(record)
        about = About.from_json(record.about, where)
        texts = _texts(record, about, where, self._memory)
        width = max(len(text.encode()) for text in texts)
        if len(texts) * width > MAX_BYTES:
            raise InputError(
                f"{where}: {len(texts):,} screens of up to {width:,} bytes; expected at most {MAX_BYTES:,} bytes "
                "in an episode: drop it"
            )
        parts: dict[str, Any] = dict(about.arrays)
        if "actions" in parts:
            parts["actions"] = allocate(about.arrays["actions"].shape, about.arrays["actions"].dtype)
            parts["actions"][...] = about.arrays["actions"]
        trajectory = build(
            pack(texts, allocate),
            where,
            extra_info=record.goal,
            terminated=about.terminated,
            truncated=about.truncated,
            screenshots=tuple(
                RecordScreenshot(self._shard, number, step) if picture else None
                for step, picture in enumerate(record.screenshots)
            ),
            action_texts=record.actions,
            step_instructions=record.step_instructions,
            **parts,
        )
        return Demonstration(trajectory, role or stated_role(about.role, where), about.task, about.split, about.goals)

    def _where(self, record: EpisodeRecord) -> str:
        return f"{self.path}: episode {record.episode_id}"


def _texts(record: EpisodeRecord, about: About, where: str, memory: Memory) -> list[str]:
    """The screens of a record as canonical XML.

    A tree cannot hold all of a screen's XML. If `about` holds the rest (the residue), this function adds the residue.
    """
    beside = about.screens or (None,) * len(record.trees)
    if len(beside) != len(record.trees):
        raise InputError(
            f"{where}: {len(beside)} residues for {len(record.trees)} trees; expected one each: write it again"
        )
    texts, nbytes = [], 0
    for step, (tree, kept) in enumerate(zip(record.trees, beside, strict=True)):
        here = f"{where}, step {step}"
        root = forest.hierarchy(forest.parse(tree, here), here)
        text = markup.write(root if kept is None else residue.restore(root, kept, here))
        if len(text.encode()) > markup.MAX_BYTES:
            raise InputError(f"{here}: a screen of over {markup.MAX_BYTES:,} bytes of XML; expected less: drop it")
        texts.append(text)
        nbytes += sys.getsizeof(text)
        memory.require(nbytes, f"{where}: its screens as XML")
    return texts


_EPISODE = re.compile(r": episode (\d{1,18})$")
_PNG = b"\x89PNG\r\n\x1a\n"


class AndroidControlWriter(SetWriter):
    """A writer of one shard, with one record per demonstration.

    An episode keeps the number in the name of its source (`…: episode 12`). Without such a number, or if an earlier
    episode has the same number, the episode gets the next free number. Each record has an additional feature,
    `record.ABOUT`, with facts that AndroidControl's format cannot hold. Screenshots must be PNG.

    Args:
        path: the file.
        metadata: metadata of the set.
        screenshots: "embed" to write screenshots, "none" to leave them out.

    Raises:
        InputError: missing libraries for shards, states that are not screens, or the value "refer" for `screenshots`.
    """

    def __init__(self, path: Path, metadata: Metadata, screenshots: Keep = "embed") -> None:
        require_libraries(path, "android")
        if screenshots == "refer":
            raise InputError(
                f"{path}: AndroidControl holds screenshots and cannot refer to them; expected --screenshots embed or "
                "none, or a .parquet file"
            )
        if not metadata.state_kind.annotated:
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
            root = markup.parse(state.decode(), here)
            tree = forest.forest_of(root).SerializeToString(deterministic=True)
            trees.append(tree)
            # Reading the tree back gives the residue, and refuses a tree that cannot be read.
            beside.append(residue.difference(root, forest.hierarchy(forest.parse(tree, here), here)))
        shown = trajectory.screenshots if self._screenshots == "embed" else ()
        pictures = [b"" if picture is None else picture.read() for picture in shown]
        record = EpisodeRecord(
            episode_id=self._episode_id(trajectory.source),
            goal=trajectory.extra_info,
            trees=tuple(trees),
            actions=trajectory.action_texts,
            step_instructions=trajectory.step_instructions,
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
            # The GZIP header has no name and no time, so equal sets give equal files.
            self._stream = cast(BinaryIO, gzip.GzipFile("", "wb", fileobj=self._file, mtime=0))
        write_record(self._stream, data)

    def _finish(self, header: str) -> None:
        del header  # each record holds the metadata, because the format has no place for a header
        self._close()

    def _discard(self) -> None:
        with suppress(OSError):
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
    """Width and height of a PNG in pixels; (0, 0) if there is no picture."""
    if not picture:
        return 0, 0
    if not picture.startswith(_PNG) or len(picture) < 24:
        raise InputError(f"{where}: a screenshot that is no PNG; AndroidControl holds PNG: convert it")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height
