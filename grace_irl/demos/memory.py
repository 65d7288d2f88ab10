"""The memory that demonstrations may take, and the region that holds their arrays: every reader asks first.

The limit is of the machine, not of a run: the option `--max-memory`, the variable GRACE_IRL_MAX_MEMORY, or a share of
what is available now. One `Memory` counts a whole set, whatever the number of its files.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import resource
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grace_irl.errors import InputError

VARIABLE = "GRACE_IRL_MAX_MEMORY"

SHARE = 0.8
"""Of the memory that is available, if nobody states a limit: the rest is for learning, the sandbox and others."""

EPISODE_BYTES = 1024
"""Of the objects that one trajectory is, besides its arrays and texts."""

SCREENSHOT_BYTES = 512
"""Bytes of the objects that hold a picture's place."""

ALIGNMENT = 64
"""Bytes. A cache line, and enough for every dtype."""

BLOCK = 64 << 20
"""Bytes of a block of a region, unless an array needs more."""

FILE_SHARE = 0.5
"""Share of the memory that was available which a set takes before it lies in files."""

CGROUPS = Path("/sys/fs/cgroup")

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*(\d{1,15}(?:\.\d{1,3})?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
_STATED: ContextVar[int | None] = ContextVar("max_memory", default=None)


class Memory:
    """Memory that one set of demonstrations may take, and has taken so far.

    Args:
        limit: bytes; None: what `limited` or the variable states, else a share of what is available.

    Raises:
        InputError: the variable states no size.
    """

    def __init__(self, limit: int | None = None) -> None:
        stated = stated_limit() if limit is None else limit
        self.limit = int(SHARE * available_memory()) if stated is None else stated
        self.taken = 0

    @property
    def left(self) -> int:
        """Bytes that are not taken."""
        return max(self.limit - self.taken, 0)

    def require(self, nbytes: int, what: str) -> None:
        """Refuses what does not fit beside what is taken.

        Args:
            nbytes: that will be needed at once.
            what: needs them: a file, and a part of it.

        Raises:
            InputError: it does not fit.
        """
        if self.taken + nbytes > self.limit:
            beside = f" beside the {spelled(self.taken)} that the set takes already" if self.taken else ""
            raise InputError(
                f"{what} needs {spelled(nbytes)} of memory{beside}; expected at most {spelled(self.limit)} in all: "
                f"choose fewer or smaller files, or raise --max-memory ({VARIABLE})"
            )

    def take(self, nbytes: int, what: str) -> None:
        """The same of what is kept as long as the set is.

        Raises:
            InputError: it does not fit.
        """
        self.require(nbytes, what)
        self.taken += nbytes

    def empty(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """An array of its own, for who keeps one trajectory at a time.

        Raises:
            InputError: it does not fit.
        """
        self.require(math.prod(map(int, shape)) * np.dtype(dtype).itemsize, "an array of one trajectory")
        return np.empty(shape, dtype)


@contextmanager
def enough_memory(path: object) -> Iterator[None]:
    """Turns what a library could not allocate into a refusal of the file that is read inside.

    Raises:
        InputError: there is not enough memory.
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
    """States the limit of every set that is read inside; None leaves it as it is.

    Raises:
        InputError: no size.
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
    """A region that the arrays of a set are cut from, one after the other, in blocks.

    A block lives as long as one of its arrays does. It is memory or, once the set has more than `FILE_SHARE`, an
    unlinked temporary file. Pages that no array touches take nothing.
    """

    def __init__(self) -> None:
        self._room = int(FILE_SHARE * available_memory())
        self._block: mmap.mmap | None = None
        self._free = 0

    def allocate(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """An array of zeros.

        Raises:
            MemoryError: the system gives no more.
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


def padded(size: int) -> int:
    """Bytes that an array of this size takes in a region."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _map_file(size: int) -> mmap.mmap:
    # /var/tmp lies on disk by convention; /tmp is often memory, which is what there is too little of.
    folder = "/var/tmp" if os.access("/var/tmp", os.W_OK) and "TMPDIR" not in os.environ else tempfile.gettempdir()
    with tempfile.TemporaryFile(prefix="grace-irl-states-", dir=folder) as file:
        os.ftruncate(file.fileno(), size)
        return mmap.mmap(file.fileno(), size, mmap.MAP_SHARED)


def state_limit(max_memory: int | str, name: str) -> None:
    """States the limit for the rest of this context (a command of the command line).

    Args:
        max_memory: a size.
        name: of the option, for messages.

    Raises:
        InputError: no size.
    """
    _STATED.set(size_of(max_memory, name))


def stated_limit() -> int | None:
    """The limit that somebody stated, in bytes; None if nobody did.

    Raises:
        InputError: the variable states no size.
    """
    stated = _STATED.get()
    if stated is None and os.environ.get(VARIABLE):
        return size_of(os.environ[VARIABLE], VARIABLE)
    return stated


def environment() -> dict[str, str]:
    """The variables that state the limit to a process which this one starts."""
    stated = stated_limit()
    return {} if stated is None else {VARIABLE: str(stated)}


def size_of(text: int | str, name: str) -> int:
    """Bytes of a size such as `4G`, `512M` or `1000000`; units are powers of 1024.

    Raises:
        InputError: no size.
    """
    found = _SIZE.fullmatch(str(text))
    size = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if size <= 0:
        raise InputError(f"{name} {str(text)[:40]!r}; expected a size such as 4G, 512M, or a number of bytes")
    return size


def spelled(nbytes: int) -> str:
    """A number of bytes for a person."""
    size, units = float(nbytes), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.4g} {units[0]}" if size < 1e6 else f"{size:.3g} {units[0]}"


def available_memory() -> int:
    """Bytes that this process can take without swapping, and without being killed or refused them.

    The least of what the machine has available, what the control groups of this process leave it, and what its own
    limit of address space leaves it; half of the physical memory if the kernel does not say.
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
        # A limit holds for all groups below; in a container, the path may be that of the machine outside.
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
