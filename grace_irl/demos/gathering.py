"""A set while it is read from its files: one region for all states and actions, one count of all memory."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.demos.memory import EPISODE_BYTES, SCREENSHOT_BYTES, Memory, Region, enough_memory, padded
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstration, Role
from grace_irl.demos.ui.episode import AnnotatedTrajectory


class Gathering:
    """Takes sources one after the other, once it is known what all of them need.

    Args:
        memory: of the set.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._capacity = self._exact = 0
        self._region: Region | None = None
        self._items: list[Demonstration] = []
        self._texts: set[int] = set()

    def expect(self, source: Source, path: str | Path) -> None:
        """Counts what a source will need.

        Raises:
            InputError: it does not fit the memory beside those before it.
        """
        before = self._capacity
        with enough_memory(path):
            self._capacity += source.capacity
        self._exact += source.capacity if source.exact else 0
        self._memory.require(self._exact, f"{path}, with the files before it," if before else str(path))

    def take(self, source: Source, path: str | Path, role: Role | None) -> None:
        """Reads a source.

        Raises:
            InputError: for data that cannot be used or do not fit the memory.
        """
        if self._region is None:  # more than the limit is never given
            self._region = Region(min(self._capacity, self._memory.limit))
        region = self._region

        def allocate(shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
            self._memory.take(padded(math.prod(map(int, shape)) * np.dtype(dtype).itemsize), str(path))
            return region.allocate(shape, dtype)

        with enough_memory(path):
            for item in source.demonstrations(role, allocate):
                self._items.append(item)
                self._memory.take(self._beside(item), str(path))

    def items(self) -> tuple[Demonstration, ...]:
        """All that was read; nobody writes to it any more."""
        release_buffers()
        for item in self._items:
            parts = item.trajectory.state_kind.parts(item.trajectory.states).values()
            for array in (*parts, item.trajectory.actions):
                if array is not None:
                    array.flags.writeable = False
        return tuple(self._items)

    def _beside(self, item: Demonstration) -> int:
        """Bytes of a demonstration besides its states and actions; of a text that several of them share, once."""
        trajectory = item.trajectory
        nbytes = EPISODE_BYTES + sum(a.nbytes for a in (trajectory.rewards, trajectory.log_probs) if a is not None)
        nbytes += SCREENSHOT_BYTES * len(trajectory.screenshots)
        words: tuple[str, ...] = ()
        if isinstance(trajectory, AnnotatedTrajectory):
            words = (*trajectory.action_texts, *trajectory.step_instructions)
        for text in (trajectory.extra_info, item.task, *words):
            if id(text) not in self._texts:
                self._texts.add(id(text))
                nbytes += sys.getsizeof(text)
        return nbytes


def release_buffers() -> None:
    """Gives the memory back that Arrow keeps for its next batch, if Arrow was used."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
