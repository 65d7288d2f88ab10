"""Memory for states that another process can map without a copy."""

from __future__ import annotations

import ctypes
import fcntl
import math
import mmap
import os
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64
"""Bytes. A cache line, and enough for every dtype."""

MEMORY_SHARE = 0.5
"""An arena larger than this share of the memory that is free now lies in a file instead."""

# linux/fcntl.h; Python 3.11's fcntl lacks F_SEAL_FUTURE_WRITE.
_F_ADD_SEALS = 1033
_F_SEAL_SEAL, _F_SEAL_SHRINK, _F_SEAL_GROW, _F_SEAL_FUTURE_WRITE = 0x1, 0x2, 0x4, 0x10


def available_memory() -> int:
    """Bytes that can be used without swapping; half of the physical memory where the kernel does not say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


class Arena:
    """A region of shared memory that arrays are cut from, one after the other.

    The region is a memfd (Linux), an unlinked temporary file where it would take too large a share of the
    memory, or an unlinked temporary file where memfd is missing. Pages that no array touches take no memory,
    so `capacity` may be generous. An arena lives as long as one of its arrays does.

    Args:
        capacity: bytes, an upper bound on all allocations, each rounded up to `ALIGNMENT`.
        in_file: put the region in a file on disk; None decides by `MEMORY_SHARE`.
    """

    def __init__(self, capacity: int, *, in_file: bool | None = None) -> None:
        self.capacity = max(int(capacity), mmap.PAGESIZE)
        if in_file is None:
            in_file = self.capacity > MEMORY_SHARE * available_memory()
        self.in_file = in_file or not hasattr(os, "memfd_create")
        self._fd = _open_file() if self.in_file else _open_memory()
        self._used = 0
        self._sealed = False
        # Weak: an array holds its arena, and an arena that held its arrays would never be freed.
        self._roots: list[weakref.ref[NDArray[Any]]] = []
        try:
            os.ftruncate(self._fd, self.capacity)
            self._map = mmap.mmap(self._fd, self.capacity, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        except BaseException:
            os.close(self._fd)
            raise
        # The exported buffer is released at once; the mapping stays, because nothing but `__del__` unmaps it.
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))

    def allocate(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """An uninitialised array (zeros) of this shape in the arena.

        Raises:
            MemoryError: the capacity is used up.
            ValueError: the arena is sealed.
        """
        if self._sealed:
            raise ValueError("the arena is sealed: allocate before seal()")
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if self._used + size > self.capacity:
            raise MemoryError(f"arena of {self.capacity} bytes is full: {self._used} used, {size} asked for")
        block = _Block(self, self._address + self._used, tuple(int(n) for n in shape), kind)
        self._used += -(-size // ALIGNMENT) * ALIGNMENT
        array = np.asarray(block)
        self._roots.append(weakref.ref(array))
        return array

    @property
    def nbytes(self) -> int:
        """Bytes in use, paddings included: the size of the region once it is sealed."""
        return min(self._used, self.capacity)

    def seal(self) -> None:
        """Ends writing: arrays become read-only, the descriptor too, and the size is cut to what is used.

        A memfd gets F_SEAL_FUTURE_WRITE rather than F_SEAL_WRITE: this process keeps its own mapping, which
        the arrays stand on, and nobody can make another writable one. Slices taken before sealing stay
        writable here.
        """
        if self._sealed:
            return
        self._sealed = True
        for root in self._roots:
            if (array := root()) is not None:
                array.flags.writeable = False
        self._roots.clear()
        os.ftruncate(self._fd, max(self.nbytes, 1))
        if not self.in_file:
            seals = _F_SEAL_FUTURE_WRITE | _F_SEAL_SHRINK | _F_SEAL_GROW | _F_SEAL_SEAL
            try:
                fcntl.fcntl(self._fd, _F_ADD_SEALS, seals)
            except OSError:  # before Linux 5.1: the read-only descriptor below is what is left
                fcntl.fcntl(self._fd, _F_ADD_SEALS, _F_SEAL_SHRINK | _F_SEAL_GROW)
        try:
            read_only = os.open(f"/proc/self/fd/{self._fd}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # no procfs; the seals hold anyway
            return
        os.close(self._fd)
        self._fd = read_only

    @property
    def sealed(self) -> bool:
        """Whether `seal` was called."""
        return self._sealed

    def fileno(self) -> int:
        """The descriptor to hand to another process; map it `nbytes` long, read-only, after `seal`."""
        return self._fd

    @staticmethod
    def of(array: NDArray[Any]) -> tuple[Arena, int] | None:
        """The arena that a C-contiguous array lies in, and its byte offset; None if it lies elsewhere."""
        if not array.flags.c_contiguous:
            return None
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if not isinstance(base, _Block):
            return None
        return base.arena, array.ctypes.data - base.arena._address

    def __del__(self) -> None:
        if hasattr(self, "_map"):
            self._map.close()
        if hasattr(self, "_fd"):
            os.close(self._fd)


class _Block:
    """What an arena's array stands on: numpy keeps it as the array's base, and it keeps the arena."""

    __slots__ = ("__array_interface__", "arena")

    def __init__(self, arena: Arena, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.arena = arena
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": shape,
            "typestr": dtype.str,
        }


def _open_memory() -> int:
    return os.memfd_create("grace-irl-states", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def _open_file() -> int:
    # /var/tmp lies on disk by convention; /tmp is often memory, which is what there is too little of.
    folder = "/var/tmp" if os.access("/var/tmp", os.W_OK) and "TMPDIR" not in os.environ else tempfile.gettempdir()
    fd, name = tempfile.mkstemp(prefix="grace-irl-states-", dir=folder)
    os.unlink(name)
    return fd
