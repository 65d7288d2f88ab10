"""The memory that an array lies in."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

from numpy.typing import NDArray


def region_of(array: NDArray[Any]) -> mmap.mmap:
    """The region that the array was cut from."""
    base: Any = array
    while not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else base.base
    return base


def lies_in_file(array: NDArray[Any]) -> bool:
    """Whether the memory of an array is that of a file, as the kernel has it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(number, 16) for number in line.split()[0].split("-"))
        if begin <= array.ctypes.data < end:
            return "(deleted)" in line
    raise LookupError("no such memory")
