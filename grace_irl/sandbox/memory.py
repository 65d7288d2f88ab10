"""Shared memory without a name: sealed memfds, or unlinked files on systems without memfds."""

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


_SEALING_S, _SEALING_PAUSE_S = 20.0, 0.02


def create(size: int) -> int:
    """The descriptor of a new file without a name, with `size` zero bytes."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("grace-irl", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # not at the top, because it would take a megabyte in a zygote

        fd, name = tempfile.mkstemp(prefix="grace-irl-")
        os.unlink(name)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def seal(fd: int, seals: int) -> None:
    """Fix the size, or the size and the contents, permanently for all processes.

    The kernel returns EBUSY while a page of the file is in use elsewhere. On a busy machine, one of the kernel's own
    batches of pages may hold it for a while. A later attempt succeeds, so this function tries again.

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
    """A private copy of `size` bytes of a file; fewer if the file ends earlier."""
    data = bytearray(size)
    view, done = memoryview(data), 0
    while done < size:
        got = os.preadv(fd, [view[done:]], offset + done)
        if got == 0:
            break
        done += got
    return data[:done] if done < size else data


def close(*fds: int) -> None:
    """Close descriptors, and ignore those that are already closed."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
