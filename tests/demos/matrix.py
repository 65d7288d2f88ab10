"""Formats that are written: a new one gets the tests of readers and of writers by one entry here."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from grace_irl.demos.files import Format
from grace_irl.demos.trajectory import Demonstrations


@dataclass(frozen=True)
class FormatCase:
    """A format, with what it cannot hold.

    Attributes:
        name: as `save` takes it.
        file: name of a set in this format.
        empty: leaves a set on disk without a trajectory, as another tool might write it.
        actions_needed: trajectories without actions are refused.
        steps_needed: trajectories of one state are refused.
        screens: states of kind ui are held.
        arrays: states of the other kinds are held.
        longest_instruction: characters; None: any.
    """

    name: Format
    file: str
    empty: Callable[[Path], None]
    actions_needed: bool = False
    steps_needed: bool = False
    screens: bool = False
    arrays: bool = True
    longest_instruction: int | None = None

    def held(self, demonstrations: Demonstrations) -> Demonstrations:
        """What the format can hold of a set; nothing where it cannot hold the set."""
        is_held = self.screens if demonstrations.metadata.kind == "ui" else self.arrays
        items = demonstrations.items if is_held else ()
        if self.actions_needed:
            items = tuple(d for d in items if d.trajectory.actions is not None)
        if self.steps_needed:
            items = tuple(d for d in items if d.trajectory.num_steps)
        return replace(demonstrations, items=items)


def _no_rows(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 0), path)


def _no_episodes(path: Path) -> None:
    arrays = dict(np.load(path))
    lengths = {name: values[:0] for name, values in arrays.items() if values.ndim}
    np.savez(path, **{**arrays, **lengths})


def _no_minari_episodes(path: Path) -> None:
    about = path / "data" / "metadata.json"
    content = json.loads(about.read_text())
    about.write_text(json.dumps({**content, "total_episodes": 0, "total_steps": 0}))


def _no_records(path: Path) -> None:
    path.write_bytes(gzip.compress(b""))


FORMATS = (
    FormatCase("parquet", "set.parquet", _no_rows, screens=True),
    FormatCase("npz", "set.npz", _no_episodes),
    FormatCase("imitation", "set.npz", _no_episodes, actions_needed=True),
    FormatCase("minari", "set-v0", _no_minari_episodes, steps_needed=True, longest_instruction=4096),
    FormatCase("minari-arrow", "set-v0", _no_minari_episodes, steps_needed=True, longest_instruction=4096),
    FormatCase("androidcontrol", "set.tfrecord", _no_records, screens=True, arrays=False),
)

HOLD_ARRAYS = tuple(case for case in FORMATS if case.arrays)
