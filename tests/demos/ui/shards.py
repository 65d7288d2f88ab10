"""Shards as others write them: the features of AndroidControl and nothing of ours."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grace_irl.demos.tfrecord import write_record
from grace_irl.demos.ui import forest
from grace_irl.demos.ui.record import EpisodeRecord
from grace_irl.states.ui import markup

SCREENS = (
    '<hierarchy rotation="0"><node text="Alarm" class="android.widget.TextView" bounds="[0,0][9,9]"/></hierarchy>',
    '<hierarchy rotation="0"><node class="a"><node text="8:25" clickable="true"/></node><node class="b"/></hierarchy>',
    '<hierarchy rotation="0"/>',
)


def png(width: int, height: int, content: bytes = b"") -> bytes:
    """What begins as a picture of this size."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + content


def episode(number: int = 5, screens: Sequence[str] = SCREENS, **parts: Any) -> EpisodeRecord:
    """An episode with everything that AndroidControl has."""
    trees = [forest.forest_of(markup.parse(screen)).SerializeToString() for screen in screens]
    steps = range(len(screens) - 1)
    record = EpisodeRecord(
        number,
        f"set alarm {number}",
        tuple(trees),
        tuple(json.dumps({"action_type": "click", "x": step, "y": 7}) for step in steps),
        tuple(f"click {step}" for step in steps),
        tuple(png(1080, 2400 + step, bytes([step])) for step in range(len(screens))),
        tuple((1080, 2400 + step) for step in range(len(screens))),
    )
    return replace(record, **parts)


def shard(path: Path, records: Sequence[EpisodeRecord | bytes], zipped: bool = True) -> Path:
    """A file of records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wb") if zipped else path.open("wb") as stream:
        for record in records:
            data = record if isinstance(record, bytes) else record.serialise()
            write_record(stream, data)  # type: ignore[arg-type]
    return path
