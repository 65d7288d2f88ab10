"""Memory for the states of a set: one region, in memory or in a temporary file."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.demos.memory import available_memory

ALIGNMENT = 64
"""Bytes. A cache line, and enough for every dtype."""

MEMORY_SHARE = 0.5
"""An arena larger than this share of the memory that is available now lies in a file instead."""


class Arena:
    """A region that arrays are cut from, one after the other.

    The region is memory, or an unlinked temporary file where it would take too large a share of the memory. Pages
    that no array touches take nothing, so `capacity` may be generous. A region lives as long as one of its arrays
    does.

    Args:
        capacity: bytes, an upper bound on all allocations, each rounded up to `ALIGNMENT`.
        in_file: put the region in a file on disk; None decides by `MEMORY_SHARE`.
    """

    def __init__(self, capacity: int, *, in_file: bool | None = None) -> None:
        self.capacity = max(int(capacity), mmap.PAGESIZE)
        self.in_file = self.capacity > MEMORY_SHARE * available_memory() if in_file is None else in_file
        self._map = _map_file(self.capacity) if self.in_file else _map_memory(self.capacity)
        self._used = 0
        self._sealed = False
        # Weak: an arena that held its arrays would keep the memory of those that nobody wants any more.
        self._roots: list[weakref.ref[NDArray[Any]]] = []

    def allocate(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """An uninitialised array (zeros) of this shape in the arena.

        Raises:
            MemoryError: the capacity is used up.
            ValueError: the arena is sealed.
        """
        if self._sealed:
            raise ValueError("the arena is sealed: allocate before seal()")
        kind = np.dtype(dtype)
        sides = tuple(int(side) for side in shape)
        size = math.prod(sides) * kind.itemsize
        if self._used + size > self.capacity:
            raise MemoryError(f"arena of {self.capacity} bytes is full: {self._used} used, {size} asked for")
        array: NDArray[Any] = np.ndarray(sides, kind, self._map, self._used if size else 0)
        self._used += padded(size)
        self._roots.append(weakref.ref(array))
        return array

    @property
    def nbytes(self) -> int:
        """Bytes in use, paddings included."""
        return min(self._used, self.capacity)

    def seal(self) -> None:
        """Ends writing: arrays become read-only. Slices taken before stay writable."""
        self._sealed = True
        for root in self._roots:
            if (array := root()) is not None:
                array.flags.writeable = False
        self._roots.clear()

    @property
    def sealed(self) -> bool:
        """Whether `seal` was called."""
        return self._sealed


def padded(size: int) -> int:
    """Bytes that an array of this size takes in an arena."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _map_memory(capacity: int) -> mmap.mmap:
    return mmap.mmap(-1, capacity, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _map_file(capacity: int) -> mmap.mmap:
    # /var/tmp lies on disk by convention; /tmp is often memory, which is what there is too little of.
    folder = "/var/tmp" if os.access("/var/tmp", os.W_OK) and "TMPDIR" not in os.environ else tempfile.gettempdir()
    with tempfile.TemporaryFile(prefix="grace-irl-states-", dir=folder) as file:
        os.ftruncate(file.fileno(), capacity)
        return mmap.mmap(file.fileno(), capacity, mmap.MAP_SHARED)
