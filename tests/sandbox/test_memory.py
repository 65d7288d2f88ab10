"""Shared memory that is sealed."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import threading
import time

import pytest

from grace_irl.sandbox import memory

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memfd")


def test_sealed_contents_stay() -> None:
    fd = memory.create(100)
    memory.write(fd, [b"sta", b"tes"])
    memory.seal(fd, memory.WRITE_SEALED)
    with pytest.raises(OSError, match="not permitted"):
        os.pwrite(fd, b"other", 0)
    assert bytes(memory.read_all(fd, 6, 0)) == b"states"
    memory.close(fd)


def test_sealing_waits_while_the_memory_is_held() -> None:
    """A writable mapping holds it, as the kernel's own batches do for a moment."""
    fd = memory.create(mmap.PAGESIZE)
    held = mmap.mmap(fd, mmap.PAGESIZE)
    with pytest.raises(OSError, match="busy") as caught:
        fcntl.fcntl(fd, memory.F_ADD_SEALS, memory.WRITE_SEALED)
    assert caught.value.errno == errno.EBUSY
    release = threading.Thread(target=lambda: (time.sleep(0.1), held.close()))
    release.start()
    memory.seal(fd, memory.WRITE_SEALED)
    release.join()
    assert fcntl.fcntl(fd, memory.F_GET_SEALS) == memory.WRITE_SEALED
    memory.close(fd)


def test_other_errors_are_not_waited_for() -> None:
    fd = memory.create(10)
    memory.seal(fd, memory.WRITE_SEALED)
    with pytest.raises(PermissionError):
        memory.seal(fd, memory.WRITE_SEALED)
    memory.close(fd)
