"""Shared memory without a name: memfds that are sealed, or unlinked files if there is no memfd."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable

F_ADD_SEALS, F_GET_SEALS = 1033, 1034
SEAL_SEAL, SEAL_SHRINK, SEAL_GROW, SEAL_WRITE = 1, 2, 4, 8
"""linux/fcntl.h; Python 3.11's fcntl has them on some builds only."""

SIZE_SEALED = SEAL_SEAL | SEAL_SHRINK | SEAL_GROW
WRITE_SEALED = SIZE_SEALED | SEAL_WRITE


_SEALING_S, _SEALING_PAUSE_S = 20.0, 0.02


def create(size: int) -> int:
    """A file descriptor of `size` zero bytes that only this process knows."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("grace-irl", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # not at the top: in a zygote it would take a megabyte

        fd, name = tempfile.mkstemp(prefix="grace-irl-")
        os.unlink(name)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def seal(fd: int, seals: int) -> None:
    """Fix the size, or the size and the contents, for good and for every process.

    The kernel says EBUSY while something else holds a page of it for a moment, such as its own batches of pages on a
    machine that is short of memory or time: a second call succeeds.

    Raises:
        OSError: it does not agree within `_SEALING_S`.
    """
    if not hasattr(os, "memfd_create"):
        return
    import fcntl

    give_up = time.monotonic() + _SEALING_S
    while True:
        try:
            fcntl.fcntl(fd, F_ADD_SEALS, seals)
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > give_up:
                raise
        time.sleep(_SEALING_PAUSE_S)


def write(fd: int, parts: Iterable[bytes | bytearray | memoryview]) -> None:
    """Write parts one behind the other, from the beginning."""
    with open(fd, "wb", closefd=False) as file:
        file.writelines(parts)


def read_all(fd: int, size: int, offset: int) -> bytearray:
    """`pread` into a private copy; shorter than `size` if the file ends before."""
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        got = os.preadv(fd, [view[done:]], offset + done)
        if got == 0:
            break
        done += got
    return data[:done] if done < size else data


def close(*fds: int) -> None:
    """Close descriptors, those that are closed already too."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
