"""Shared memory without a name, by which the host and the sandbox's processes exchange data.

On Linux, this memory is a memfd, a file in memory. A memfd can be sealed, which fixes its size, or its size and
contents, permanently. On other systems, the memory is a temporary file without a name. Such a file cannot be sealed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable

F_ADD_SEALS, F_GET_SEALS = 1033, 1034
SEAL_SEAL, SEAL_SHRINK, SEAL_GROW, SEAL_WRITE = 1, 2, 4, 8
"""Constants of linux/fcntl.h. Some builds of Python 3.11 lack them in `fcntl`."""

SIZE_SEALED = SEAL_SEAL | SEAL_SHRINK | SEAL_GROW
WRITE_SEALED = SIZE_SEALED | SEAL_WRITE


_SEALING_S, _SEALING_PAUSE_S = 20.0, 0.02  # time limit of `seal`, and pause between two attempts


def create(size: int) -> int:
    """Create a file without a name that holds `size` zero bytes, and return its file descriptor."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("grace-irl", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # not at the top, because the module would cost every zygote a megabyte

        fd, name = tempfile.mkstemp(prefix="grace-irl-")
        os.unlink(name)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def seal(fd: int, seals: int) -> None:
    """Seal a file permanently for all processes. On systems without memfds, do nothing.

    On a busy machine, the kernel may still be using a page of the file, and returns EBUSY. A later attempt succeeds, so
    this function tries again.

    Args:
        fd: file descriptor.
        seals: `SIZE_SEALED` to fix the size, or `WRITE_SEALED` to fix size and contents.

    Raises:
        OSError: the kernel refuses, or is still busy after `_SEALING_S` seconds.
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
    """Write parts one after the other, from the beginning of the file."""
    with open(fd, "wb", closefd=False) as file:
        file.writelines(parts)


def read_all(fd: int, size: int, offset: int) -> bytearray:
    """A copy of the `size` bytes of a file that start at `offset`; fewer if the file ends earlier."""
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        got = os.preadv(fd, [view[done:]], offset + done)
        if got == 0:
            break
        done += got
    return data[:done] if done < size else data


def close(*fds: int) -> None:
    """Close file descriptors, and ignore descriptors that are already closed."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
