"""Reads AndroidControl's shards: GZIP TFRecord files whose records are episodes of screens.

The states are the accessibility trees as uiautomator's XML (`forest.py`), the instruction is the goal. Actions are JSON
and no numbers: a trajectory has them as `AnnotatedTrajectory.action_texts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from grace_irl.demos import screens
from grace_irl.demos.header import Header
from grace_irl.demos.memory import Memory
from grace_irl.demos.source import Allocate, build, stated_role, total_bytes
from grace_irl.demos.trajectory import Demonstration, Role
from grace_irl.demos.ui import forest, markup, residue
from grace_irl.demos.ui.about import About
from grace_irl.demos.ui.annotated import AnnotatedTrajectory
from grace_irl.demos.ui.episode import MAX_BYTES
from grace_irl.demos.ui.record import Record
from grace_irl.demos.ui.shard import RecordScreenshot, Shard
from grace_irl.errors import InputError


class AndroidControlSource:
    """A shard, opened (see `Source`): its first record is read for the header.

    Args:
        path: of it.
        memory: of the set.

    Raises:
        InputError: what reads shards is not installed, no records, or a first record that cannot be used.
    """

    exact = False

    def __init__(self, path: Path, memory: Memory) -> None:
        self.path = path
        self._shard = Shard(path, memory)
        first = next(iter(self._shard.records()), None)
        if first is None:
            raise InputError(f"{path}: no episodes; expected at least one: copy or download the file again")
        about = About.from_json(first.about, self._where(first))
        self.header = Header(about.metadata, None if about.role is None else "mixed")

    @cached_property
    def capacity(self) -> int:
        """Bytes, an upper bound on what `demonstrations` allocates.

        The file is read for it once, without making the XML: a shard does not say how much lies in it.
        """
        count = total = 0
        for record in self.records():
            where = self._where(record)
            about = About.from_json(record.about, where)
            longest = max(forest.longest(forest.parse(tree, where), len(tree)) for tree in record.trees)
            longest += max((forest.BYTE_LENGTH * len(json.dumps(kept)) for kept in about.screens), default=0)
            total += len(record.trees) * min(longest, markup.MAX_BYTES)
            total += sum(array.nbytes for array in about.arrays.values())
            count += 1
        return total_bytes(2 * count, total)

    def records(self) -> Iterator[Record]:
        """Every episode as the shard has it, in order, one in memory at a time.

        Raises:
            InputError: for records that cannot be used.
        """
        return self._shard.records()

    def demonstrations(self, role: Role | None, allocate: Allocate) -> Iterator[Demonstration]:
        """See `Source.demonstrations`."""
        for number, record in enumerate(self.records()):
            demonstration = self._demonstration(record, number, role, allocate)
            del record  # before the next one is read
            yield demonstration

    def _demonstration(self, record: Record, number: int, role: Role | None, allocate: Allocate) -> Demonstration:
        where = self._where(record)
        about = About.from_json(record.about, where)
        texts = _texts(record, about, where)
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
            screens.pack(texts, allocate),
            where,
            extra_info=record.goal,
            terminated=about.terminated,
            truncated=about.truncated,
            screenshots=tuple(
                RecordScreenshot(self._shard, number, step) if picture else None
                for step, picture in enumerate(record.screenshots)
            ),
            **parts,
        )
        if record.actions or record.step_instructions:
            trajectory = AnnotatedTrajectory.of(trajectory, record.actions, record.step_instructions)
        return Demonstration(trajectory, role or stated_role(about.role, where), about.task, about.split, about.goals)

    def _where(self, record: Record) -> str:
        return f"{self.path}: episode {record.episode_id}"


def _texts(record: Record, about: About, where: str) -> list[str]:
    """The screens of a record, as canonical XML."""
    beside = about.screens or (None,) * len(record.trees)
    if len(beside) != len(record.trees):
        raise InputError(
            f"{where}: {len(beside)} screens kept beside {len(record.trees)} trees; expected one each: write it again"
        )
    texts = []
    for step, (tree, kept) in enumerate(zip(record.trees, beside, strict=True)):
        here = f"{where}, step {step}"
        root = forest.hierarchy(forest.parse(tree, here), here)
        text = markup.write(root if kept is None else residue.restore(root, kept, here))
        if len(text.encode()) > markup.MAX_BYTES:
            raise InputError(f"{here}: a screen of over {markup.MAX_BYTES:,} bytes of XML; expected less: drop it")
        texts.append(text)
    return texts
