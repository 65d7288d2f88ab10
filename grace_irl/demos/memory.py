"""The memory limit for demonstrations, and the memory region that holds their arrays.

The readers of demonstration files check the limit before they allocate memory. The limit comes from the option
`--max-memory`, else from the environment variable GRACE_IRL_MAX_MEMORY, else from the available memory (`SHARE`). The
settings of a run do not contain the limit, because a good limit depends on the machine. One `Memory` object covers all
files of a set.
"""

from __future__ import annotations

import ctypes
import gc
import math
import mmap
import os
import re
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.errors import InputError

VARIABLE = "GRACE_IRL_MAX_MEMORY"
"""Name of the environment variable with the memory limit."""

SHARE = 0.8
"""Default memory limit of a set, as a share of the available memory. The rest is for training, reward programs and
other processes."""

EPISODE_BYTES = 1024
"""Size in bytes of the Python objects of one trajectory, without arrays and texts."""

SCREENSHOT_BYTES = 512
"""Size in bytes of the Python objects for one screenshot. The picture itself stays on disk."""

ALIGNMENT = 64
"""Alignment of the arrays in a `Region`, in bytes. It is the size of a cache line, and enough for every dtype."""

BLOCK = 64 << 20
"""Size in bytes of one block of a `Region`, unless an array needs more."""

FILE_SHARE = 0.5
"""Share of the available memory that the blocks of a `Region` may take. Blocks beyond this share are temporary
files."""

CGROUPS = Path("/sys/fs/cgroup")

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
_STATED: ContextVar[int | None] = ContextVar("max_memory", default=None)


class BeyondLimitError(InputError):
    """A set that needs more memory than its limit."""


class Memory:
    """The memory limit of one set of demonstrations, and the number of bytes reserved so far.

    Args:
        limit: limit in bytes. None uses `stated_limit()`, or else the share `SHARE` of the available memory.

    Raises:
        InputError: the environment variable holds no valid size.
    """

    def __init__(self, limit: int | None = None) -> None:
        stated = stated_limit() if limit is None else limit
        self.limit = int(SHARE * available_memory()) if stated is None else stated
        self.taken = 0

    @property
    def left(self) -> int:
        """Number of bytes that can still be reserved."""
        return max(self.limit - self.taken, 0)

    def require(self, nbytes: int, what: str) -> None:
        """Check that `nbytes` more bytes are within the limit, without reserving them.

        Args:
            nbytes: number of bytes that are needed at the same time.
            what: file and part that need the bytes, for messages.

        Raises:
            BeyondLimitError: the bytes do not fit.
        """
        if self.taken + nbytes > self.limit:
            beside = f" beside the {spelled(self.taken)} that the set takes already" if self.taken else ""
            raise BeyondLimitError(
                f"{what} needs {spelled(nbytes)} of memory{beside}; expected at most {spelled(self.limit)} in all: "
                f"choose fewer or smaller files, or raise --max-memory ({VARIABLE})"
            )

    def take(self, nbytes: int, what: str) -> None:
        """Reserve bytes for as long as the set exists.

        Args:
            nbytes: number of bytes to reserve.
            what: file and part that need the bytes, for messages.

        Raises:
            BeyondLimitError: the bytes do not fit.
        """
        self.require(nbytes, what)
        self.taken += nbytes

    def empty(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """A new array, for callers that keep one trajectory at a time. The size is checked, but not reserved.

        Raises:
            BeyondLimitError: the array does not fit.
        """
        self.require(math.prod(map(int, shape)) * np.dtype(dtype).itemsize, "an array of one trajectory")
        return np.empty(shape, dtype)


@contextmanager
def enough_memory(path: object) -> Iterator[None]:
    """Turn a library's `MemoryError` into an `InputError` that names the file.

    Raises:
        InputError: there is not enough memory to read the file.
    """
    try:
        yield
    except MemoryError:
        raise InputError(
            f"{path}: needs more memory than this process gets; expected a smaller file: choose fewer trajectories "
            "(grace-irl demos select)"
        ) from None


@contextmanager
def limited(max_memory: int | str | None) -> Iterator[None]:
    """Set the memory limit for all demonstrations that are read in the `with` block. None keeps the current limit.

    Raises:
        InputError: `max_memory` is not a valid size.
    """
    if max_memory is None:
        yield
        return
    token = _STATED.set(size_of(max_memory, "max_memory"))
    try:
        yield
    finally:
        _STATED.reset(token)


class Region:
    """A memory region for the arrays of a set. It consists of blocks that are filled in order.

    A block is freed when its last array is freed. The first blocks are anonymous memory. Blocks beyond `FILE_SHARE` of
    the available memory are temporary files without a name. A page of a block uses memory only after the first write to
    the page.
    """

    def __init__(self) -> None:
        self._room = int(FILE_SHARE * available_memory())
        self._block: mmap.mmap | None = None
        self._free = 0

    def allocate(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """An array of zeros in the region.

        Raises:
            MemoryError: the system has no more memory or disk space.
        """
        sides, kind = tuple(int(side) for side in shape), np.dtype(dtype)
        size = padded(math.prod(sides) * kind.itemsize)
        if not size:
            return np.zeros(sides, kind)
        if self._block is None or size > self._free:
            self._free = max(size, BLOCK)
            self._room -= self._free
            try:
                self._block = mmap.mmap(-1, self._free, mmap.MAP_PRIVATE) if self._room >= 0 else _map_file(self._free)
            except OSError as error:
                raise MemoryError(str(error)) from None
        start = len(self._block) - self._free
        self._free -= size
        return np.ndarray(sides, kind, self._block, start)


def give_back() -> None:
    """Return to the system the freed memory that the C library and pyarrow keep for later use."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(AttributeError):  # only glibc has this function
        ctypes.CDLL(None).malloc_trim(0)


def padded(size: int) -> int:
    """A size in bytes, rounded up to a multiple of `ALIGNMENT`: the space that an array takes in a region."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _map_file(size: int) -> mmap.mmap:
    # /var/tmp lies on disk by convention. /tmp is often in memory, which is scarce at this point.
    folder = "/var/tmp" if os.access("/var/tmp", os.W_OK) and "TMPDIR" not in os.environ else tempfile.gettempdir()
    with tempfile.TemporaryFile(prefix="grace-irl-states-", dir=folder) as file:
        os.ftruncate(file.fileno(), size)
        return mmap.mmap(file.fileno(), size, mmap.MAP_SHARED)


def state_limit(max_memory: int | str, name: str) -> None:
    """Set the memory limit until the end of the current context (`contextvars`), for example for one command.

    Args:
        max_memory: size in the notation of `size_of`.
        name: name of the option, for messages.

    Raises:
        InputError: no valid size.
    """
    _STATED.set(size_of(max_memory, name))


def stated_limit() -> int | None:
    """The limit in bytes from `limited`, `state_limit` or the environment variable; None if no limit was set.

    Raises:
        InputError: the environment variable holds no valid size.
    """
    stated = _STATED.get()
    if stated is None and os.environ.get(VARIABLE):
        return size_of(os.environ[VARIABLE], VARIABLE)
    return stated


def environment() -> dict[str, str]:
    """Environment variables that pass the user's memory limit to a child process; {} if the user has set no limit."""
    stated = stated_limit()
    return {} if stated is None else {VARIABLE: str(stated)}


def size_of(text: int | str, name: str) -> int:
    """Number of bytes in a size such as `4G`, `512M` or `1000000`. Units are powers of 1024.

    Args:
        text: the size.
        name: name of the option or variable, for messages.

    Raises:
        InputError: no valid size.
    """
    found = _SIZE.fullmatch(str(text))
    size = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if size <= 0:
        raise InputError(f"{name} {str(text)[:40]!r}; expected a size such as 4G, 512M, or a number of bytes")
    return size


def spelled(nbytes: int) -> str:
    """A number of bytes as readable text, such as `1.5 GiB`."""
    size, units = float(nbytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.4g} {units[0]}" if size < 1e6 else f"{size:.3g} {units[0]}"


def available_memory() -> int:
    """Number of bytes that this process can allocate without swapping, failing or being killed.

    The result is the smallest of these numbers:

    - the available memory of the machine;
    - the memory that each control group of the process still allows;
    - the memory that the address-space limit of the process still allows.

    If the kernel reports none of them, the result is half of the physical memory.
    """
    found = [*_of_machine(), *_of_cgroups(), *_of_address_space()]
    return max(min(found), 0) if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _of_machine() -> Iterator[int]:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024


def _of_cgroups() -> Iterator[int]:
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = (CGROUPS, ("memory.max", "memory.current", "inactive_file"))
        if controllers:  # version 1
            root, names = (
                CGROUPS / "memory",
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            )
        # A group's limit also holds for the groups inside it, so the limits of all parents are checked. In a container,
        # the kernel may state a path on the host. No folder of this path exists in the container, but `root` does.
        inner = Path(path.strip("/"))
        for group in (inner, *inner.parents):
            limit, used = (_number(root / group / name) for name in names[:2])
            if limit is not None and used is not None:
                stated = (line.split() for line in _lines(root / group / "memory.stat"))
                files = sum(int(words[1]) for words in stated if words[0] == names[2])
                yield limit - used + files


def _of_address_space() -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _lines(Path("/proc/self/statm"))
    if limit != resource.RLIM_INFINITY and pages:
        yield limit - int(pages[0].split()[0]) * resource.getpagesize()


def _number(file: Path) -> int | None:
    lines = _lines(file)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
