"""The arena cuts arrays from one region, and nobody writes them once it is sealed."""

from __future__ import annotations

import gc
import mmap
import os
import weakref
from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos.arena import ALIGNMENT, Arena
from tests.demos.regions import region


@pytest.fixture(params=[False, True], ids=["memory", "file"])
def in_file(request: pytest.FixtureRequest) -> bool:
    return request.param


def test_arrays_follow_one_another(in_file: bool) -> None:
    arena = Arena(10_000, in_file=in_file)
    first = arena.allocate((3, 5), np.float64)
    second = arena.allocate((7,), np.uint8)
    first[...] = np.arange(15).reshape(3, 5)
    second[...] = 9
    assert region(first) is region(second)
    assert second.ctypes.data - first.ctypes.data == 2 * ALIGNMENT  # 15 doubles are 120 bytes
    assert arena.nbytes == 3 * ALIGNMENT
    np.testing.assert_array_equal(first.ravel(), np.arange(15.0))


def test_sealed_means_that_nobody_writes(in_file: bool) -> None:
    arena = Arena(10_000, in_file=in_file)
    array = arena.allocate((4,), np.int32)
    arena.seal()
    arena.seal()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="sealed"):
        arena.allocate((1,), np.int32)


def test_arrays_keep_their_region(in_file: bool) -> None:
    arena = Arena(10_000, in_file=in_file)
    view = arena.allocate((10, 3), np.float64)[4:6]
    gone = weakref.ref(region(view))
    del arena
    gc.collect()
    view[...] = 7.0
    assert view.sum() == 42
    del view
    gc.collect()
    assert gone() is None


def test_a_full_arena_says_so() -> None:
    arena = Arena(mmap.PAGESIZE)
    arena.allocate((mmap.PAGESIZE - 8,), np.uint8)
    with pytest.raises(MemoryError, match="is full"):
        arena.allocate((16,), np.uint8)


def test_untouched_pages_take_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    arena = Arena(1 << 32, in_file=False)  # 4 GiB, more than a small machine has
    arena.allocate((1 << 20,), np.uint8)[...] = 1
    assert resident() - before <= 64 << 20


def test_a_file_has_no_name(in_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    arena = Arena(10_000, in_file=in_file)
    assert arena.in_file == in_file
    assert not os.listdir(tmp_path)


def test_a_large_share_of_the_memory_lies_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grace_irl.demos.arena.available_memory", lambda: 100_000)
    assert [Arena(size).in_file for size in (40_000, 60_000)] == [False, True]
