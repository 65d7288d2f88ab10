"""The memory that an array lies in."""

from __future__ import annotations

import mmap
from typing import Any

from numpy.typing import NDArray


def region_of(array: NDArray[Any]) -> mmap.mmap:
    """The region that the array was cut from."""
    base: Any = array
    while not isinstance(base, mmap.mmap):
        base = base.obj if isinstance(base, memoryview) else base.base
    return base
