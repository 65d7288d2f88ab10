"""Records that are no episodes are refused in one line that says what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.demos import load
from grace_irl.demos.files import open_source
from grace_irl.demos.ui.record import EpisodeRecord
from grace_irl.errors import InputError
from tests.demos.ui.shards import SCREENS, episode, png, shard

pb2 = pytest.importorskip("grace_irl.demos.ui.androidcontrol_pb2")

GOOD = episode()


def changed(change: Callable[[Any], object]) -> bytes:
    """The data of a good record after a change to its features."""
    example = pb2.Example.FromString(GOOD.serialise())
    change(example.features.feature)
    return bytes(example.SerializeToString())


def integers(name: str, *values: int) -> Callable[[Any], object]:
    def change(feature: Any) -> None:
        feature[name].int64_list.value[:] = values

    return change


def texts(name: str, *values: bytes) -> Callable[[Any], object]:
    def change(feature: Any) -> None:
        feature[name].bytes_list.value[:] = values

    return change


FAULTS: dict[str, tuple[bytes, str]] = {
    "no example": (b"\xff\xff\xff", "not a tf.train.Example; expected the features of AndroidControl"),
    "nothing": (b"", "no feature 'episode_id'"),
    "another data set": (changed(lambda feature: feature.clear()), "no feature 'episode_id'"),
    "no goal": (changed(lambda feature: feature.pop("goal")), "no feature 'goal'"),
    "no trees": (changed(lambda feature: feature.pop("accessibility_trees")), "no accessibility trees"),
    "an id that is a text": (changed(texts("episode_id", b"7")), "'episode_id' is a bytes_list, not a int64_list"),
    "a goal that is a number": (changed(integers("goal", 7)), "'goal' is a int64_list, not a bytes_list"),
    "two ids": (changed(integers("episode_id", 7, 8)), "2 values in feature 'episode_id'"),
    "two goals": (changed(texts("goal", b"a", b"b")), "2 values in feature 'goal'"),
    "a goal that is no text": (changed(texts("goal", b"\xff\xfe")), "feature 'goal' is not UTF-8"),
    "an action too many": (changed(texts("actions", *[b"{}"] * 3)), "3 actions for 3 accessibility trees; expected 2"),
    "an action too few": (changed(texts("actions", b"{}")), "1 actions for 3 accessibility trees; expected 2"),
    "a tree too few": (
        changed(texts("accessibility_trees", b"")),
        "2 actions for 1 accessibility trees; expected 0",
    ),
    "instructions": (changed(texts("step_instructions", b"a")), "1 step_instructions for 3 accessibility trees"),
    "screenshots": (changed(texts("screenshots", b"a", b"b")), "2 screenshots for 3 accessibility trees; expected 3"),
    "sizes": (changed(integers("screenshot_widths", 1, 2)), "2 screenshot_widths and screenshot_heights for 3"),
    "an action that is no JSON": (changed(texts("actions", b"{}", b"click")), "step 1: an action that cannot be read"),
    "an action that is no object": (changed(texts("actions", b"[]", b"{}")), "step 0: an action that cannot be read"),
    "an action nested deep": (changed(texts("actions", b"[" * 10**6, b"{}")), "step 0: an action that cannot be read"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_refused(name: str, tmp_path: Path) -> None:
    data, words = FAULTS[name]
    with pytest.raises(InputError) as caught:
        EpisodeRecord.parse(data, "shard: record 4")
    message = str(caught.value)
    assert message.startswith("shard: record 4")
    assert words in message
    assert "\n" not in message
    with pytest.raises(InputError):
        load([shard(tmp_path / "expert.tfrecord", [data])])


def test_a_bad_record_behind_a_good_one(tmp_path: Path) -> None:
    path = shard(tmp_path / "expert.tfrecord", [GOOD, FAULTS["no goal"][0]])
    assert open_source(path).header.metadata.kind == "ui"
    with pytest.raises(InputError, match="record 1: no feature 'goal'"):
        load([path])


def test_a_tree_that_cannot_be_read(tmp_path: Path) -> None:
    broken = replace(GOOD, trees=(*GOOD.trees[:2], b"\xff"))
    with pytest.raises(InputError, match="episode 5, step 2: an accessibility tree that cannot be read"):
        load([shard(tmp_path / "expert.tfrecord", [broken])])


def test_shards_without_records(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no episodes; expected at least one"):
        open_source(shard(tmp_path / "a.tfrecord", []))
    (tmp_path / "b.tfrecord").write_bytes(b"")
    with pytest.raises(InputError, match="an empty file"):
        open_source(tmp_path / "b.tfrecord")


@pytest.mark.parametrize("name", ["actions", "step_instructions", "screenshots"])
def test_features_that_are_optional(name: str) -> None:
    def remove(feature: Any) -> None:
        del feature[name]

    found = EpisodeRecord.parse(changed(remove), "shard")
    assert getattr(found, name) == ()
    assert replace(found, **{name: getattr(GOOD, name)}) == GOOD


def test_round_trip() -> None:
    for record in (GOOD, replace(GOOD, actions=(), about='{"ä": [null, 1.5]}'), episode(-7, SCREENS[:1])):
        data = record.serialise()
        assert EpisodeRecord.parse(data, "shard") == record
        assert record.serialise() == data


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_mutated_records_are_read_or_refused(seed: int, count: int) -> None:
    """Bytes of a record changed, cut out and doubled: nothing but `InputError` comes of it."""
    rng = random.Random(seed)
    data = bytearray(replace(GOOD, screenshots=tuple(png(1, 1) for _ in SCREENS), about='{"a": 1}').serialise())
    for _ in range(count):
        place = rng.randrange(len(data))
        match rng.randrange(4):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                data[place] ^= 1 << rng.randrange(8)
            case 2:
                del data[place : place + rng.randrange(20)]
            case _:
                data[place:place] = data[place : place + rng.randrange(20)]
    try:
        record = EpisodeRecord.parse(bytes(data), "shard: record 0")
    except InputError:
        return
    assert len(record.actions) in (0, len(record.trees) - 1)
