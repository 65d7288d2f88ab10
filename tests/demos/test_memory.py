"""The limit of memory that a set of demonstrations may take, and the region that its arrays are cut from."""

from __future__ import annotations

import gc
import mmap
import os
import resource
import shutil
import weakref
from pathlib import Path

import numpy as np
import pytest

from grace_irl import score
from grace_irl.demos import load, memory, save
from grace_irl.demos.memory import ALIGNMENT, Memory, Region, available_memory, limited, size_of
from grace_irl.errors import InputError
from tests.demos.regions import lies_in_file, region_of
from tests.fakes.data import vector_set
from tests.hostile_files.refusal import refused

MEGABYTE = 1 << 20


def test_the_limit_counts_in_python(tmp_path: Path) -> None:
    save(vector_set(), tmp_path / "expert.parquet")
    assert len(load([tmp_path / "expert.parquet"], max_memory="1M"))
    said = r"expert.parquet.* needs .* expected at most 1 KiB.* raise "
    with pytest.raises(InputError, match=f"{said}--max-memory"):
        load([tmp_path / "expert.parquet"], max_memory=1024)
    with pytest.raises(InputError, match=f"{said}max_memory="):
        score(tmp_path / "reward.py", [tmp_path / "expert.parquet"], max_memory="1K")


def test_the_variable_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(vector_set(), tmp_path / "expert.parquet")
    arguments = ["demos", "inspect", str(tmp_path / "expert.parquet")]
    monkeypatch.setenv("GRACE_IRL_MAX_MEMORY", "1K")
    refused(capsys, arguments, "needs", "at most 1 KiB", "--max-memory")
    refused(capsys, [*arguments, "--max-memory", "much"], "--max-memory 'much'", "such as 4G")
    with pytest.raises(InputError, match="at most 1 KiB"):
        load([tmp_path / "expert.parquet"])
    assert len(load([tmp_path / "expert.parquet"], max_memory="1G"))


def test_an_option_holds_for_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(vector_set(), tmp_path / "expert.parquet")
    refused(capsys, ["demos", "inspect", "--max-memory", "1K", str(tmp_path / "expert.parquet")], "at most 1 KiB")
    assert len(load([tmp_path / "expert.parquet"]))


@pytest.mark.parametrize(
    ("text", "size"),
    [("4G", 4 << 30), ("512M", 512 << 20), ("1.5 GiB", 3 << 29), ("2kb", 2048), (77, 77), ("1T", 1 << 40)],
)
def test_sizes(text: int | str, size: int) -> None:
    assert size_of(text, "--max-memory") == size


@pytest.mark.parametrize("text", ["", "G", "-1", "0", "4 apples", "1e9", "0x10", "nan", "9" * 99])
def test_no_sizes(text: str) -> None:
    with pytest.raises(InputError, match="expected a size such as 4G"):
        size_of(text, "--max-memory")


def test_the_default_is_what_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRACE_IRL_MAX_MEMORY", raising=False)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    assert Memory().limit == 800
    with limited("1M"):
        assert Memory().limit == MEGABYTE


@pytest.mark.parametrize("version", [1, 2])
def test_control_groups_count(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a group holds for those inside; files that are kept in memory can go."""
    root, line, names = tmp_path, "0::/a/b", ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        root, line = tmp_path / "memory", "4:cpu,memory:/a/b"
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / names[0]).write_text("100000\n")
    (root / "a" / names[1]).write_text("30000\n")
    (root / "a" / "memory.stat").write_text(f"anon 1\n{names[2]} 5000\n")
    (root / "a" / "b" / names[0]).write_text("max\n")
    lines = memory._lines
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "_lines", lambda file: [line] if file == Path("/proc/self/cgroup") else lines(file))
    assert available_memory() == 75_000


def test_a_limit_above_the_memory_uses_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever allows more than there is gets it: on disk, as before."""
    save(vector_set(), tmp_path / "expert.parquet")
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(InputError, match="at most 800 B"):
        load([tmp_path / "expert.parquet"])
    assert len(load([tmp_path / "expert.parquet"], max_memory="1G"))


def test_a_run_does_not_record_it(tmp_path: Path) -> None:
    from grace_irl import fit

    run_ = fit(vector_set(), out=tmp_path / "run", max_memory="1G", max_calls=5, max_seconds=60.0)
    assert "max_memory" not in (run_.folder / "config.toml").read_text()
    shutil.rmtree(run_.folder)


def test_hard_limits_are_not_touched() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with limited("1M"):
        assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.fixture(params=[False, True], ids=["memory", "file"])
def in_file(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Regions of this test lie in memory, or in a file."""
    monkeypatch.setattr(memory, "available_memory", lambda: 1000 if request.param else 1 << 40)
    return request.param


def test_arrays_follow_one_another(in_file: bool) -> None:
    region = Region()
    first = region.allocate((3, 5), np.float64)
    second = region.allocate((7,), np.uint8)
    first[...] = np.arange(15).reshape(3, 5)
    second[...] = 9
    assert region_of(first) is region_of(second)
    assert second.ctypes.data - first.ctypes.data == 2 * ALIGNMENT  # 15 doubles are 120 bytes
    np.testing.assert_array_equal(first.ravel(), np.arange(15.0))


def test_arrays_keep_their_region(in_file: bool) -> None:
    region = Region()
    view = region.allocate((10, 3), np.float64)[4:6]
    gone = weakref.ref(region_of(view))
    del region
    gc.collect()
    view[...] = 7.0
    assert view.sum() == 42
    del view
    gc.collect()
    assert gone() is None


def test_untouched_pages_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 40)
    before = resident()
    array = Region().allocate((1 << 32,), np.uint8)  # 4 GiB, more than a small machine has
    array[: 1 << 20] = 1
    assert resident() - before <= 64 << 20


def test_a_file_has_no_name(in_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    region = Region()
    assert lies_in_file(region.allocate((10,), np.uint8)) == in_file
    assert not os.listdir(tmp_path)


def test_beyond_a_share_of_the_memory_a_set_lies_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 1000 * MEGABYTE)
    region, found = Region(), []
    for size in (300, 60, 150, 10):
        found.append(lies_in_file(region.allocate((size * MEGABYTE,), np.uint8)))
    assert found == [False, False, True, True]
