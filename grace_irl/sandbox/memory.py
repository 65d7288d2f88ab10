"""Shared memory without a name: memfds that are sealed, or unlinked files where there is no memfd."""

from __future__ import annotations

import contextlib
import os

F_ADD_SEALS, F_GET_SEALS = 1033, 1034
SEAL_SEAL, SEAL_SHRINK, SEAL_GROW, SEAL_WRITE = 1, 2, 4, 8
"""linux/fcntl.h; Python 3.11's fcntl has them on some builds only."""

SIZE_SEALED = SEAL_SEAL | SEAL_SHRINK | SEAL_GROW
WRITE_SEALED = SIZE_SEALED | SEAL_WRITE


def create(size: int) -> int:
    """A file descriptor of `size` zero bytes that only this process knows."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("grace-irl", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        import tempfile  # not in a zygote, where it would take a megabyte

        fd, name = tempfile.mkstemp(prefix="grace-irl-")
        os.unlink(name)
    try:
        os.ftruncate(fd, size)
    except BaseException:
        os.close(fd)
        raise
    return fd


def seal(fd: int, seals: int) -> None:
    """Fix the size, or the size and the contents, for good and for every process."""
    if hasattr(os, "memfd_create"):
        import fcntl

        fcntl.fcntl(fd, F_ADD_SEALS, seals)


def write_all(fd: int, data: bytes | memoryview, offset: int) -> None:
    """`pwrite` that goes on until everything is written."""
    view = memoryview(data).cast("B")
    while len(view):
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written


def read_all(fd: int, size: int, offset: int) -> bytearray:
    """`pread` into a private copy; shorter than `size` where the file ends before."""
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
