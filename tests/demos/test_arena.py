"""The arena hands out memory that another process maps, and that nobody writes once it is sealed."""

from __future__ import annotations

import gc
import mmap
import os

import numpy as np
import pytest

from grace_irl.demos.arena import ALIGNMENT, Arena


@pytest.fixture(params=[False, True], ids=["memory", "file"])
def in_file(request: pytest.FixtureRequest) -> bool:
    return request.param


def test_another_mapping_shows_the_same_numbers(in_file: bool) -> None:
    arena = Arena(10_000, in_file=in_file)
    first = arena.allocate((3, 5), np.float64)
    second = arena.allocate((7,), np.uint8)
    first[...] = np.arange(15).reshape(3, 5)
    second[...] = 9
    arena.seal()
    place = Arena.of(second)
    assert place == (arena, 2 * ALIGNMENT)  # 15 doubles are 120 bytes
    with mmap.mmap(arena.fileno(), arena.nbytes, mmap.MAP_SHARED, mmap.PROT_READ) as other:
        assert other[place[1] : place[1] + 7] == b"\x09" * 7
        np.testing.assert_array_equal(np.frombuffer(other[:120]).reshape(3, 5), first)
        assert len(other) == arena.nbytes == 3 * ALIGNMENT


def test_sealed_means_that_nobody_writes(in_file: bool) -> None:
    arena = Arena(10_000, in_file=in_file)
    array = arena.allocate((4,), np.int32)
    arena.seal()
    arena.seal()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(PermissionError):
        mmap.mmap(arena.fileno(), arena.nbytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(arena.fileno(), b"x")
    with pytest.raises(ValueError, match="sealed"):
        arena.allocate((1,), np.int32)


def test_a_sealed_memory_cannot_be_opened_for_writing_again() -> None:
    arena = Arena(10_000, in_file=False)
    arena.allocate((4,), np.int32)
    arena.seal()
    again = os.open(f"/proc/self/fd/{arena.fileno()}", os.O_RDWR)
    try:
        for attempt in (lambda: os.pwrite(again, b"x", 0), lambda: os.ftruncate(again, 1)):
            with pytest.raises(PermissionError):
                attempt()
    finally:
        os.close(again)


def test_arrays_keep_their_arena(in_file: bool) -> None:
    arena = Arena(10_000, in_file=in_file)
    fd = arena.fileno()
    view = arena.allocate((10, 3), np.float64)[4:6]
    del arena
    gc.collect()
    view[...] = 2.0
    assert view.sum() == 12.0
    os.fstat(fd)
    del view
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_of_knows_views_and_strangers() -> None:
    arena = Arena(10_000)
    array = arena.allocate((10, 3), np.float64)
    assert Arena.of(array) == (arena, 0)
    assert Arena.of(array[2:5]) == (arena, 2 * 3 * 8)
    assert Arena.of(array.reshape(5, 6)[1:]) == (arena, 6 * 8)
    assert Arena.of(array[:, 1]) is None
    assert Arena.of(array.copy()) is None
    assert Arena.of(np.zeros(3)) is None


def test_a_full_arena_says_so() -> None:
    arena = Arena(mmap.PAGESIZE)
    arena.allocate((mmap.PAGESIZE - 8,), np.uint8)
    with pytest.raises(MemoryError, match="full"):
        arena.allocate((16,), np.uint8)


def test_untouched_capacity_takes_no_memory() -> None:
    arena = Arena(1 << 33, in_file=False)  # 8 GiB, more than a small machine has
    arena.allocate((1 << 20,), np.uint8)[...] = 1
    assert os.fstat(arena.fileno()).st_blocks * 512 <= 2 << 20
