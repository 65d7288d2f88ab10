"""Hands trajectories over: one write-sealed memory for a whole set, and arenas as they are."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.arena import Arena
from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.sandbox import memory
from grace_irl.sandbox.wire import MAX_FDS, TRAJECTORY

_ALIGNMENT = 64


@dataclass(frozen=True)
class Package:
    """What one `put` became.

    Attributes:
        fds: segments; the first is this package's own, the others belong to arenas.
        description: what a zygote keeps beside them (`Shelf`).
        rows: where each trajectory stands in the table, `(n,)`: a secret of the host, so that an index says nothing
            about a trajectory (sets come with the experts first).
        lengths: states of each trajectory, `(n,)`.
        arenas: held, so that their descriptors stay open.
    """

    fds: tuple[int, ...]
    description: dict[str, Any]
    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    arenas: tuple[Arena, ...]

    def close(self) -> None:
        """Give this process's own descriptor back; zygotes keep theirs until they are told to drop it."""
        memory.close(self.fds[0])


def pack(trajectories: Sequence[Trajectory]) -> Package:
    """Lay trajectories out in sealed memory. States that lie in a sealed arena are not copied.

    Raises:
        InputError: actions that are not numbers.
    """
    plan = _Plan()
    table = np.zeros(len(trajectories), TRAJECTORY)
    rows = np.random.default_rng().permutation(len(trajectories))
    for at in np.argsort(rows):
        row, trajectory = table[rows[at]], trajectories[at]
        row["length"] = len(trajectory.states)
        row["layout"] = plan.layout(trajectory.states)
        row["segment"], row["offset"] = plan.states(trajectory.states)
        row["action_layout"] = -1
        if trajectory.actions is not None:
            actions = np.asarray(trajectory.actions)
            if actions.dtype.kind not in "fiub":
                found = f"{trajectory.source or 'trajectory'}: actions are {actions.dtype}"
                raise InputError(f"{found}; expected numbers: convert them, or leave the actions out")
            row["action_layout"], row["action_offset"] = plan.layout(actions), plan.array(actions)
        row["text_offset"], row["text_length"] = plan.text(trajectory.extra_info)
    table_at = plan.array(table)
    fd = memory.create(max(plan.size, 1))
    try:
        for offset, data in plan.pieces:
            memory.write_all(fd, data, offset)
        memory.seal(fd, memory.WRITE_SEALED)
    except BaseException:
        memory.close(fd)
        raise
    description = {"table": table_at, "layouts": plan.layouts}
    fds = (fd, *(arena.fileno() for arena in plan.arenas))
    lengths = table["length"][rows].astype(np.int64)
    return Package(fds, description, rows, lengths, tuple(plan.arenas))


class _Plan:
    """Where things will lie.

    Attributes:
        layouts: `[dtype, shape]` of one state or action, by index.
        arenas: segments 1, 2, ….
        pieces: offset and bytes of what is copied into segment 0.
        size: bytes of segment 0.
    """

    def __init__(self) -> None:
        self.layouts: list[list[Any]] = []
        self.arenas: list[Arena] = []
        self.pieces: list[tuple[int, bytes | memoryview]] = []
        self.size = 0
        self._indices: dict[tuple[str, tuple[int, ...]], int] = {}
        self._copied: dict[int, int] = {}
        self._texts: dict[str, tuple[int, int]] = {}

    def layout(self, array: NDArray[Any]) -> int:
        """The index of an array's type and of the shape of one of its rows."""
        key = (array.dtype.str, array.shape[1:])
        if key not in self._indices:
            self._indices[key] = len(self.layouts)
            self.layouts.append([key[0], list(key[1])])
        return self._indices[key]

    def states(self, array: NDArray[Any]) -> tuple[int, int]:
        """Segment and offset of states: in their arena, or copied."""
        found = Arena.of(array)
        if found is not None and _is_read_only(found[0]):
            arena, offset = found
            if arena not in self.arenas and len(self.arenas) < MAX_FDS - 1:
                self.arenas.append(arena)
            if arena in self.arenas:
                return 1 + self.arenas.index(arena), offset
        if id(array) not in self._copied:  # the same states under two trajectories lie there once
            self._copied[id(array)] = self.array(array)
        return 0, self._copied[id(array)]

    def array(self, array: NDArray[Any]) -> int:
        """The offset of an array's copy."""
        return self._add(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def text(self, text: str) -> tuple[int, int]:
        """Offset and length of a text's UTF-8."""
        if text not in self._texts:
            data = text.encode("utf-8", "surrogatepass")
            self._texts[text] = (self._add(data), len(data))
        return self._texts[text]

    def _add(self, data: bytes | memoryview) -> int:
        offset = -(-self.size // _ALIGNMENT) * _ALIGNMENT
        self.pieces.append((offset, data))
        self.size = offset + len(data)
        return offset


def _is_read_only(arena: Arena) -> bool:
    """Whether whoever gets the arena's descriptor can only read: nobody writes to what a program reads."""
    if not arena.sealed:
        return False
    return fcntl.fcntl(arena.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
