"""Reads AndroidControl's shards: GZIP TFRecord files whose records are episodes of screens.

The states are the accessibility trees as uiautomator's XML (`forest.py`), the instruction is the goal. Actions are JSON
and no numbers, so trajectories have none; `AndroidControlSource.records` has them, with the instruction of each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos import screens
from grace_irl.demos.header import Header
from grace_irl.demos.source import Allocate, build, stated_role, stated_split, total_bytes
from grace_irl.demos.trajectory import Demonstration, LabelRule, Metadata, Role
from grace_irl.demos.ui import forest, markup, residue
from grace_irl.demos.ui.episode import MAX_BYTES, METADATA
from grace_irl.demos.ui.record import ABOUT, Record
from grace_irl.demos.ui.shard import RecordScreenshot, Shard
from grace_irl.errors import InputError

STEP_ARRAYS = ("actions", "rewards", "log_probs")
"""Numbers of a trajectory that the format has no place for."""


class AndroidControlSource:
    """A shard, opened (see `Source`): its first record is read for the header.

    Raises:
        InputError: what reads shards is not installed, no records, or a first record that cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shard = Shard(path)
        first = next(iter(self._shard.records()), None)
        if first is None:
            raise InputError(f"{path}: no episodes; expected at least one: copy or download the file again")
        self.header = Header(METADATA)
        if first.about is not None:
            self.header = Header(_metadata(first.about, str(path)), "mixed")

    @cached_property
    def capacity(self) -> int:
        """Bytes, an upper bound on what `demonstrations` allocates.

        The file is read for it once, without making the XML: a shard does not say how much lies in it.
        """
        count = total = 0
        for record in self.records():
            where = self._where(record)
            longest = 0
            for tree in record.trees:
                longest = max(longest, forest.longest(forest.parse(tree, where), len(tree)))
            beside = 0
            if record.about is not None:
                kept = record.about.get("screens") or ()
                longest += max((forest.BYTE_LENGTH * len(str(one)) for one in kept), default=0)
                beside = sum(_array(record.about, name, where).nbytes for name in STEP_ARRAYS if name in record.about)
            total += len(record.trees) * min(longest, markup.MAX_BYTES) + beside
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
            where = self._where(record)
            about = record.about or {}
            try:
                demonstration = self._demonstration(record, about, number, role, allocate)
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(
                    f"{where}: feature {ABOUT!r} cannot be used ({type(error).__name__}: {error}); expected what "
                    "grace-irl writes there: write the file again"
                ) from None
            del record, about
            yield demonstration

    def _demonstration(
        self, record: Record, about: Mapping[str, Any], number: int, role: Role | None, allocate: Allocate
    ) -> Demonstration:
        where = self._where(record)
        texts = list(_texts(record, where))
        width = max(len(text.encode()) for text in texts)
        if len(texts) * width > MAX_BYTES:
            raise InputError(
                f"{where}: {len(texts):,} screens of up to {width:,} bytes; expected at most {MAX_BYTES:,} bytes "
                "in an episode: drop it"
            )
        parts: dict[str, Any] = {name: _array(about, name, where) for name in STEP_ARRAYS if name in about}
        if "actions" in parts:
            stated = parts["actions"]
            parts["actions"] = allocate(stated.shape, stated.dtype)
            parts["actions"][...] = stated
        trajectory = build(
            screens.pack(texts, allocate),
            where,
            extra_info=record.goal,
            terminated=bool(about.get("terminated", False)),
            truncated=bool(about.get("truncated", False)),
            screenshots=tuple(
                RecordScreenshot(self._shard, number, step) if picture else None
                for step, picture in enumerate(record.screenshots)
            ),
            **parts,
        )
        goals = about.get("goals")
        return Demonstration(
            trajectory,
            role or stated_role(about.get("role"), where),
            str(about.get("task", "default")),
            stated_split(about.get("split"), where),
            None if goals is None else tuple(int(goal) for goal in goals),
        )

    def _where(self, record: Record) -> str:
        return f"{self.path}: episode {record.episode_id}"


def _texts(record: Record, where: str) -> Iterator[str]:
    """The screens of a record."""
    beside = list((record.about or {}).get("screens") or [None] * len(record.trees))
    if len(beside) != len(record.trees):
        raise InputError(
            f"{where}: {len(beside)} screens in {ABOUT!r} for {len(record.trees)} trees; expected one each"
        )
    for step, (tree, kept) in enumerate(zip(record.trees, beside, strict=True)):
        here = f"{where}, step {step}"
        root = forest.hierarchy(forest.parse(tree, here), here)
        text = markup.write(root if kept is None else residue.restore(root, kept, here))
        if len(text.encode()) > markup.MAX_BYTES:
            raise InputError(f"{here}: a screen of over {markup.MAX_BYTES:,} bytes of XML; expected less: drop it")
        yield text


def _metadata(about: Mapping[str, Any], where: str) -> Metadata:
    """The metadata of the set that a record was written in.

    Raises:
        InputError: not such metadata.
    """
    stated = about.get("metadata")
    if not isinstance(stated, Mapping) or stated.get("label", "") not in (*get_args(LabelRule), ""):
        raise InputError(
            f"{where}: metadata in feature {ABOUT!r} that cannot be used; expected what grace-irl writes there: "
            "write the file again"
        )
    return Metadata(
        "ui",
        environment=str(stated.get("environment", "")),
        view=str(stated.get("view", "")),
        label=stated.get("label", ""),
    )


def _array(about: Mapping[str, Any], name: str, where: str) -> NDArray[Any]:
    """Numbers that are kept beside, as `array_json` gives them.

    Raises:
        InputError: no numbers.
    """
    kept = about[name]
    try:
        array = np.array(kept["values"], np.dtype(str(kept["dtype"])))
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{array.dtype}")
        return array.reshape([int(side) for side in kept["shape"]])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{where}: {name} that cannot be used ({reason}); expected numbers of one shape") from None


def array_json(array: NDArray[Any]) -> dict[str, Any]:
    """Numbers as JSON that keeps their shape and dtype."""
    return {"dtype": array.dtype.str, "shape": list(array.shape), "values": array.tolist()}
