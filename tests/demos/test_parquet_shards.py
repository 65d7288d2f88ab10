"""Episodes of AndroidControl in Parquet: real screens with pictures, actions and instructions, there and back."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from grace_irl.demos import iter_trajectories, load, save
from grace_irl.demos.convert import Stated, convert
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.select import Selection, Selector
from grace_irl.demos.ui import shard as module
from grace_irl.errors import InputError
from tests.demos.equality import assert_same, assert_same_demonstration
from tests.demos.pictured import Drawn, a_set, png, shots, words
from tests.demos.ui import shards as shards_of_others
from tests.demos.ui.data import ALARM, HISTORIES, needs_android
from tests.frame.tree import ROOT


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Real screens as AndroidControl writes them: a picture of each, actions and instructions."""
    pytest.importorskip("google.protobuf")
    items = []
    for number, item in enumerate(load([ALARM, *HISTORIES[:2]], role="expert")):
        steps = len(item.trajectory.states) - 1
        taken = tuple(Drawn(png(number * 100 + step, 40)) for step in range(steps + 1))
        actions = tuple(f'{{"action_type": "click", "x": {step}}}' for step in range(steps))
        instructions = tuple(f"Öffne {step} von {number} ⏰" for step in range(steps))
        named = replace(item.trajectory, screenshots=taken, source=f"x: episode {number + 40}")
        items.append(replace(item, trajectory=replace(named, action_texts=actions, step_instructions=instructions)))
    folder = tmp_path / "shards"
    for number, part in enumerate((items[:2], items[2:])):
        save(a_set(*part), folder / f"android_control-0000{number}-of-00002", "androidcontrol")
    return folder


@pytest.mark.slow
@needs_android
@pytest.mark.parametrize("keep", ["embed", "refer", "none"])
def test_real_screens_from_shards_by_select_and_back(keep: Keep, shards: Path, tmp_path: Path) -> None:
    """Equal node by node (states are the XML in its one spelling), byte by byte and word by word; then back again."""
    there = load([shards])
    path = tmp_path / "set" / "chosen.parquet"
    selector = Selector([shards], [Selection(str(path), role="expert")])
    selector.write(selector.choose(), screenshots=keep)
    found = load([path])
    assert_same(found, there)
    for item, other in zip(found, there, strict=True):
        assert item.trajectory.digest == other.trajectory.digest
        assert words(item) == words(other)
        assert words(item)[0]
        assert shots(item) == (shots(other) if keep != "none" else [])
    if keep == "refer":
        assert path.stat().st_size < 300_000
        cells = pq.read_table(path)["screenshot"].to_pylist()
        assert {cell["path"] for cell in cells} == {str(file) for file in shards.iterdir()}
    save(found, tmp_path / "back.tfrecord")
    for item, other in zip(load([tmp_path / "back.tfrecord"]), there, strict=True):
        assert_same_demonstration(item, other)
        assert words(item) == words(other)
        assert shots(item) == (shots(other) if keep != "none" else [])


@needs_android
def test_the_columns_are_plain_ones(shards: Path, tmp_path: Path) -> None:
    """Arrow alone, and so whatever reads Parquet, has the pictures and the words."""
    path = tmp_path / "set.parquet"
    selector = Selector([shards], [Selection(str(path), role="expert", task="alarm")])
    selector.write(selector.choose())
    found = pq.read_table(path, columns=["episode", "action_text", "step_instruction", "screenshot"]).to_pylist()
    first = [row for row in found if row["episode"] == 0]
    item = load([shards])[0]
    assert [row["action_text"] for row in first] == [*words(item)[0], None]
    assert [row["step_instruction"] for row in first] == [*words(item)[1], None]
    assert [row["screenshot"]["bytes"] for row in first] == shots(item)


@needs_android
def test_a_shard_cannot_refer(shards: Path, tmp_path: Path) -> None:
    source = next(shards.iterdir())
    with pytest.raises(InputError, match="AndroidControl holds screenshots and cannot refer to them"):
        convert(source, tmp_path / "x.tfrecord", screenshots="refer")
    convert(source, tmp_path / "x.tfrecord", screenshots="none")
    assert load([tmp_path / "x.tfrecord"])[0].trajectory.screenshots == ()


MEMORY = """
import resource, sys
from grace_irl.demos import iter_trajectories
from grace_irl.demos.parquet import writer
from grace_irl.demos.convert import Stated, convert

writer.GROUP_BYTES = 4 << 20
for _ in zip(range(2), iter_trajectories(sys.argv[1], role="expert")):
    pass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
convert(sys.argv[1], sys.argv[2], stated=Stated(role="expert"))
total = sum(len(shot.read()) for item in iter_trajectories(sys.argv[2]) for shot in item.trajectory.screenshots)
print(total, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_neither_set_has_to_fit_in_memory(tmp_path: Path) -> None:
    """126 MB of pictures, embedded and read again, take a few row groups of memory."""
    pytest.importorskip("google.protobuf")
    rng = np.random.default_rng(0)
    pictures = tuple(shards_of_others.png(1080, 2400, rng.bytes(700_000)) for _ in shards_of_others.SCREENS)
    records = [shards_of_others.episode(number, screenshots=pictures) for number in range(60)]
    path = shards_of_others.shard(tmp_path / "android_control-00000-of-00001", records, zipped=False)
    command = [sys.executable, "-c", MEMORY, path, tmp_path / "set.parquet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=True)
    total, grown = map(int, done.stdout.split())
    assert total == 60 * sum(map(len, pictures))
    assert grown < total / 2


def test_records_are_found_by_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that a set refers to, asked for in their order, take one walk through the shard."""
    pytest.importorskip("google.protobuf")
    records = [shards_of_others.episode(number) for number in range(20)]
    path = shards_of_others.shard(tmp_path / "android_control-00000-of-00001", records)
    convert(path, tmp_path / "set.parquet", stated=Stated(role="expert"), screenshots="refer")
    found = list(iter_trajectories(tmp_path / "set.parquet"))
    walks = []
    read = module.read_records
    monkeypatch.setattr(module, "read_records", lambda path: walks.append(path) or read(path))
    for item, record in zip(found, records, strict=True):
        assert shots(item) == list(record.screenshots)
    assert walks == [path]
    assert shots(found[3]) == list(records[3].screenshots)
    assert len(walks) == 2
