"""Samples of sets that are larger than memory, and the reading of such sets a trajectory at a time."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import load, save
from grace_irl.demos.files import open_set
from grace_irl.demos.foreign import streamed
from grace_irl.demos.foreign.columns import Columns
from grace_irl.demos.foreign.streamed import StreamedTable
from grace_irl.demos.foreign.tables import open_wide_parquet
from grace_irl.demos.memory import EPISODE_BYTES, BeyondLimitError, Memory
from grace_irl.demos.parquet.source import ParquetSource
from grace_irl.demos.sample import FEWEST, SHARE
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from tests.fakes.data import vector_set

LENGTH = 100
ONE = LENGTH * 3 * 8 + EPISODE_BYTES  # bytes of a trajectory, at least


def digests(demonstrations: Demonstrations) -> set[str]:
    return {item.trajectory.digest for item in demonstrations}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files of 60 trajectories each."""
    found = []
    for number in (1, 2):
        found.append(tmp_path / f"part{number}.parquet")
        save(vector_set(30, 30, LENGTH, seed=number), found[-1])
    return found


def test_a_sample_has_whole_trajectories_up_to_its_size(files: list[Path]) -> None:
    whole, sample = load(files), load(files, sample="60K")
    assert sample.sampled is not None
    assert len(sample) == sample.sampled.trajectories < 60 * 1024 / ONE
    assert len(sample) > 0.9 * 60 * 1024 / (ONE + 200)  # texts take a little
    assert digests(sample) < digests(whole)
    roles = Counter(item.role for item in sample)
    assert abs(roles["expert"] - roles["negative"]) <= 1
    found = sample.sampled
    assert (found.of_trajectories, found.of_states, found.states) == (120, 120 * LENGTH, len(sample) * LENGTH)
    assert sample.notes[-1] == found.line
    assert f"{len(sample)} of 120 trajectories" in found.line
    assert "60 KiB of" in found.line
    assert "--sample" in found.line


def test_a_sample_depends_on_content_and_not_on_the_order_of_files(files: list[Path]) -> None:
    assert digests(load(files, sample="60K")) == digests(load(files[::-1], sample="60K"))
    whole = load(files)
    sample = load(files, sample="60K")
    places = [place for place, item in enumerate(whole) if item.trajectory.digest in digests(sample)]
    assert [whole[place].trajectory.digest for place in places] == [each.trajectory.digest for each in sample]


def test_small_groups_come_before_large_ones(tmp_path: Path) -> None:
    large, small = vector_set(60, 60, LENGTH), vector_set(3, 3, LENGTH, seed=1, tasks=("rare",))
    save(replace(large, items=(*large, *small)), tmp_path / "both.parquet")
    sample = load([tmp_path / "both.parquet"], sample="60K")
    count = Counter((item.task, item.role) for item in sample)
    assert count["rare", "expert"] == count["rare", "negative"] == 3
    assert abs(count["default", "expert"] - count["default", "negative"]) <= 1 < count["default", "expert"]


def test_stated_splits_are_groups(tmp_path: Path) -> None:
    given = vector_set(40, 40, LENGTH)
    items = tuple(replace(item, split="held_out" if n % 10 == 0 else "train") for n, item in enumerate(given))
    save(replace(given, items=items), tmp_path / "split.parquet")
    sample = load([tmp_path / "split.parquet"], sample="60K")
    assert min(Counter((item.role, item.split) for item in sample).values()) >= 3


def test_a_set_beyond_the_limit_becomes_a_sample_only_where_asked(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.parquet" for number in range(20)]  # 2.8 MiB
    for number, file in enumerate(files):
        save(vector_set(10, 10, 300, seed=number), file)
    with pytest.raises(BeyondLimitError, match="needs"):
        load(files, max_memory="2M")
    sample = load(files, max_memory="2M", sample="")
    assert sample.sampled is not None
    assert sample.sampled.size == (2 << 20) // SHARE
    whole = load(files, max_memory="8M", sample="")
    assert whole.sampled is None
    assert len(whole) == 400
    assert not any("sample" in note for note in whole.notes)
    assert load(files, sample="8M").sampled is None  # the set is smaller than the sample may be


def test_a_sample_that_cannot_hold_the_groups_is_refused_in_one_line(files: list[Path]) -> None:
    with pytest.raises(InputError, match=f"{FEWEST} trajectories of each task, role and split .* at most 8 KiB.*--sa"):
        load(files, sample="8K")
    with pytest.raises(InputError, match="--sample 'lots'; expected a size such as 4G"):
        load(files, sample="lots")
    with pytest.raises(BeyondLimitError, match=r"a sample of 2 MiB needs 2 MiB of memory; expected at most 1 MiB"):
        load(files, sample="2M", max_memory="1M")


def test_a_sample_takes_the_memory_of_its_size(tmp_path: Path) -> None:
    save(vector_set(200, 200, 1000), tmp_path / "large.parquet")  # 9.6 MB
    load([tmp_path / "large.parquet"], sample="1M")  # imports
    tracemalloc.start()
    load([tmp_path / "large.parquet"], sample="1M")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 << 20


def test_a_parquet_file_says_its_size_before_it_is_read(files: list[Path]) -> None:
    assert ParquetSource(files[0], Memory()).nbytes == 60 * LENGTH * 3 * 8


def test_only_the_named_trajectories_are_kept(files: list[Path]) -> None:
    wanted = digests(load(files, sample="60K"))
    found = open_set(files).only(wanted)
    assert digests(found) == wanted
    assert found.metadata.label == "all"


# Wide tables


def wide(path: Path, episodes: int = 40, *, order: tuple[str, ...] = ("a", "b"), seed: int = 0) -> Path:
    """A table with episodes of different lengths."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(episodes):
        length = 5 + number % 7
        values = {name: rng.normal(size=length) for name in ("a", "b")}
        about = {"episode": np.full(length, number), "label": np.full(length, number % 2)}
        parts.append(pa.table(about | {name: values[name] for name in order}))
    pq.write_table(pa.concat_tables(parts), path, row_group_size=64)
    return path


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "BATCH_BYTES", 20 * 8 * 4)  # 20 rows


@pytest.mark.usefixtures("small_batches")
def test_a_streamed_table_reads_what_the_whole_table_reads(tmp_path: Path) -> None:
    path = wide(tmp_path / "wide.parquet")
    whole, parts = load([path]), StreamedTable(path, Memory(), Columns())
    found = list(parts.demonstrations(None, np.empty))
    assert [(i.trajectory.digest, i.role, i.trajectory.source) for i in found] == [
        (i.trajectory.digest, i.role, i.trajectory.source) for i in whole
    ]
    assert parts.header.metadata == whole.metadata
    assert parts.header.notes[0] == whole.notes[0]
    assert parts.nbytes == pq.read_metadata(path).num_rows * 4 * 8


@pytest.mark.usefixtures("small_batches")
def test_a_table_is_streamed_if_it_is_beyond_the_limit(tmp_path: Path) -> None:
    path = wide(tmp_path / "wide.parquet", 400)
    assert not isinstance(open_wide_parquet(path, Memory(1 << 20)), StreamedTable)
    assert isinstance(open_wide_parquet(path, Memory(300 << 10)), StreamedTable)
    with pytest.raises(BeyondLimitError, match=r"wide.parquet.*expected at most 300 KiB"):
        load([path], max_memory="300K")
    sample = load([path], max_memory="300K", sample="")
    assert sample.sampled is not None
    assert digests(sample) < digests(load([path]))


@pytest.mark.usefixtures("small_batches")
def test_streamed_tables_of_one_set_share_the_order_of_their_columns(tmp_path: Path) -> None:
    first, second = wide(tmp_path / "1.parquet", 400), wide(tmp_path / "2.parquet", 400, order=("b", "a"), seed=1)
    streaming = load([first, second], max_memory="300K", sample="40K")
    assert streaming.metadata.fields == ("a", "b")
    assert digests(streaming) < digests(load([first, second]))


@pytest.mark.usefixtures("small_batches")
def test_an_episode_that_comes_back_in_a_later_part_is_refused(tmp_path: Path) -> None:
    table = pq.read_table(wide(tmp_path / "wide.parquet"))
    pq.write_table(pa.concat_tables([table, table.slice(0, 5)]), tmp_path / "again.parquet")
    source = StreamedTable(tmp_path / "again.parquet", Memory(), Columns())
    with pytest.raises(InputError, match="episode 0 comes back after another one; expected the rows of an episode tog"):
        list(source.demonstrations(None, np.empty))


@pytest.mark.usefixtures("small_batches")
def test_an_episode_larger_than_memory_is_refused(tmp_path: Path) -> None:
    table = pa.table({"episode": np.zeros(4000, int), "label": np.ones(4000, int), "a": np.zeros(4000)})
    pq.write_table(table, tmp_path / "long.parquet")
    with pytest.raises(BeyondLimitError, match=r"an episode needs"):
        StreamedTable(tmp_path / "long.parquet", Memory(64 << 10), Columns())


@pytest.mark.parametrize("notes", [{}, {"note": [f"{row:06}" * 9 for row in range(4000)]}], ids=["numbers", "texts"])
def test_a_large_table_without_numbers_of_episodes_is_refused(notes: dict[str, list[str]], tmp_path: Path) -> None:
    rows = 4000
    table = pa.table({"done": np.arange(rows) % 10 == 9, "label": np.ones(rows, int), "a": np.zeros(rows), **notes})
    pq.write_table(table, tmp_path / "flags.parquet", row_group_size=400, use_dictionary=False)
    with pytest.raises(BeyondLimitError, match=r"flags\.parquet, whose episodes have no numbers, needs"):
        open_wide_parquet(tmp_path / "flags.parquet", Memory(600 << 10 if notes else 100 << 10))


def test_a_large_table_of_text_is_told_about_parquet(tmp_path: Path) -> None:
    rows = "".join(f"{row // 10},{row % 2},{row}\n" for row in range(4000))
    (tmp_path / "large.csv").write_text(f"episode,label,a\n{rows}")
    with pytest.raises(BeyondLimitError, match=r"large\.csv needs .*; as Parquet, a table of any s"):
        load([tmp_path / "large.csv"], max_memory="100K", sample="")


@pytest.mark.usefixtures("small_batches")
def test_a_streamed_table_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = wide(tmp_path / "wide.parquet", 400)
    source = StreamedTable(path, Memory(), Columns())
    data = bytearray(path.read_bytes())
    data[200 : len(data) // 2] = bytes(len(data) // 2 - 200)
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"wide\.parquet"):
        list(source.demonstrations(None, np.empty))
