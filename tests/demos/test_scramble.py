"""Scrambled copies: nothing means what it did, and everything that was equal still is."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grace_irl.cli import main
from grace_irl.demos import load, save
from grace_irl.demos.convert import Stated, convert, scramble
from grace_irl.demos.label_rule import choose_rule
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.grid import GridScrambler
from grace_irl.states.vector import VectorScrambler
from tests.demos.equality import assert_same
from tests.demos.test_label_rule import reaching, without_header


def undo(states: NDArray[np.uint8], table: ScrambleMap) -> NDArray[np.uint8]:
    """The original grid, from the map alone."""
    about = table.scrambler
    assert isinstance(about, GridScrambler)
    rows, columns = (slice(None, None, -1 if flip else 1) for flip in about.flip)
    states = states[:, rows, columns]
    if about.transpose:
        states = states.swapaxes(1, 2)
    back = [{new: old for old, new in table.items()} for table in about.codes]
    channels = [np.vectorize(back[c].__getitem__)(states[..., c]) for c in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


@settings(max_examples=30)
@given(st.integers(0, 2**31))
def test_grids_come_back_through_the_map(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    item = Demonstration(Trajectory(states, extra_info="Put it, then put it there"), "expert")
    table = ScrambleMap.draw(seed, item.trajectory)
    copy = table.apply(item)
    np.testing.assert_array_equal(undo(copy.trajectory.states, table), states)
    about = table.scrambler
    assert isinstance(about, GridScrambler)
    assert about.transpose or any(about.flip)
    for codes in about.codes:
        assert len(set(codes.values())) == len(codes)
    words = copy.trajectory.extra_info.replace(",", "").split()
    assert words[0] == words[3] != words[1] == words[4]
    assert not {*words} & {"put", "it", "then", "there"}


def test_vectors_come_back_through_the_map() -> None:
    states = np.random.default_rng(0).normal(size=(5, 4))
    table = ScrambleMap.draw(3, Trajectory(states))
    copy = table.apply(Demonstration(Trajectory(states), "expert")).trajectory.states
    about = table.scrambler
    assert isinstance(about, VectorScrambler)
    for new, old in enumerate(about.order):
        np.testing.assert_allclose(copy[:, new] / about.scale[new], states[:, old], rtol=1e-12)
        assert not np.allclose(copy[:, new], states[:, old], rtol=0.2)
    assert sorted(about.order) == [0, 1, 2, 3]


def test_one_map_for_a_folder(grids: Demonstrations, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    for role in ("expert", "negative"):
        save(grids.select(role=role), folder / f"{role}.parquet")
    copied, place = scramble([folder], tmp_path / "copy", seed=7)
    assert [Path(one.path).name for one in copied] == ["expert.parquet", "negative.parquet"]
    assert place == tmp_path / "copy" / "scramble.json"
    about = ScrambleMap.load(place)
    originals, copies = load([folder]), load([tmp_path / "copy"])
    assert (copies.metadata.environment, copies.metadata.view, copies.metadata.label) == (
        "",
        "scrambled",
        "last",
    )
    for one, other in zip(copies, originals, strict=True):
        np.testing.assert_array_equal(undo(one.trajectory.states, about), other.trajectory.states)
        assert (one.role, one.task, one.split) == (other.role, other.task, other.split)
        np.testing.assert_array_equal(one.trajectory.actions, other.trajectory.actions)
        said = " ".join(about.words[word] for word in other.trajectory.extra_info.split())
        assert one.trajectory.extra_info == said


def test_a_map_used_again_gives_the_same(grids: Demonstrations, tmp_path: Path) -> None:
    """Also for codes and words that were not there when it was made."""
    part, whole = tmp_path / "part.parquet", tmp_path / "whole.parquet"
    save(replace(grids, items=grids.items[:1]), part)
    save(grids, whole)
    _, place = scramble([part], tmp_path / "a.parquet", seed=1)
    assert place == tmp_path / "a.scramble.json"
    scramble([whole], tmp_path / "b.parquet", seed=99, map_path=place)
    scramble([whole], tmp_path / "c.parquet", seed=1)
    assert_same(load([tmp_path / "b.parquet"]), load([tmp_path / "c.parquet"]))
    assert_same(
        replace(load([tmp_path / "c.parquet"]), items=load([tmp_path / "c.parquet"]).items[:1]),
        load([tmp_path / "a.parquet"]),
    )


def spoken(demonstrations: Demonstrations, texts: list[str]) -> Demonstrations:
    """A set with other instructions."""
    pairs = zip(demonstrations.items, texts, strict=False)
    items = [replace(item, trajectory=replace(item.trajectory, extra_info=text)) for item, text in pairs]
    return replace(demonstrations, items=tuple(items))


@pytest.mark.parametrize("kind", ["grids", "screens"])
def test_no_two_words_become_one(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Of 4,000 words, some 29 pairs would, were each drawn by itself; also where a map goes on with new words."""
    words = ["".join(letters) for letters in itertools.product("abcdefghijklmnop", repeat=3)][:4_000]
    original = request.getfixturevalue(kind)
    early, late = tmp_path / "early.parquet", tmp_path / "late.parquet"
    save(spoken(original, [" ".join(words[:2_000])]), early)
    save(spoken(original, [" ".join(words[:100] + words[2_000:])]), late)
    assert main(["demos", "scramble", str(early), str(tmp_path / "a.parquet"), "--seed", "3"]) == 0
    place = tmp_path / "a.scramble.json"
    again = ["demos", "scramble", str(late), str(tmp_path / "b.parquet"), "--map", str(place)]
    assert main(again) == 0
    first, second = (load([tmp_path / f"{name}.parquet"]).items[0].trajectory.extra_info.split() for name in "ab")
    assert first[:100] == second[:100]
    invented = first + second[100:]
    assert len(set(invented)) == len(words)
    assert not set(invented) & set(words)


@pytest.mark.parametrize("name", ["expert.parquet", "expert.npz"])
def test_records_keep_the_rule_of_their_goal_and_no_name(name: str, tmp_path: Path) -> None:
    save(reaching(), tmp_path / name)
    _, place = scramble([without_header(tmp_path / name)], tmp_path / "copy.parquet", seed=0)
    scramble([tmp_path / name], tmp_path / "again.parquet", 0, place)
    for copy in (tmp_path / "copy.parquet", tmp_path / "again.parquet"):
        assert choose_rule(load([copy])).reason == f"{copy.name} states it"
        assert load([copy]).metadata.label == "last"
        assert b"desired" not in copy.read_bytes()


def test_words_grow_longer_where_all_short_ones_are_taken(
    grids: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grace_irl.demos.scramble.VOWELS", "a")
    monkeypatch.setattr("grace_irl.demos.scramble.CONSONANTS", "b")
    save(spoken(grids, ["go to it"]), tmp_path / "set.parquet")
    scramble([tmp_path / "set.parquet"], tmp_path / "copy.parquet", seed=0)
    assert load([tmp_path / "copy.parquet"]).items[0].trajectory.extra_info == "bababa babababa bababababa"


def test_folders_keep_their_names(vectors: Demonstrations, tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(vectors, tmp_path / name / "expert.parquet")
    copied, _ = scramble([tmp_path / "one", tmp_path / "two"], tmp_path / "copies", seed=0)
    assert [Path(one.path).relative_to(tmp_path / "copies").as_posix() for one in copied] == [
        "one/expert.parquet",
        "two/expert.parquet",
    ]
    fields = load([tmp_path / "copies" / "one"]).metadata.fields
    assert fields == ("x0", "x1", "x2")


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"seed": 1, "kind": "sound"}', '{"seed": 1, "kind": "ui"}'])
def test_no_map(content: str, vectors: Demonstrations, tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(content)
    save(vectors, tmp_path / "set.parquet")
    with pytest.raises(InputError, match=r"map\.json: not a scramble map"):
        scramble([tmp_path / "set.parquet"], tmp_path / "copy.parquet", 0, tmp_path / "map.json")


@pytest.mark.parametrize("codes", [{"300": 1}, {"-1": 1}, {"0": 256}, {"0": 7, "1": 7}])
def test_no_map_of_codes(codes: dict[str, int], grids: Demonstrations, tmp_path: Path) -> None:
    save(grids, tmp_path / "set.parquet")
    _, place = scramble([tmp_path / "set.parquet"], tmp_path / "copy.parquet", 0)
    about = json.loads(place.read_text())
    place.write_text(json.dumps(about | {"codes": [codes, *about["codes"][1:]]}))
    with pytest.raises(InputError, match="not a scramble map"):
        scramble([tmp_path / "set.parquet"], tmp_path / "again.parquet", 0, place)


def test_a_map_of_other_states(vectors: Demonstrations, grids: Demonstrations, tmp_path: Path) -> None:
    save(vectors, tmp_path / "v.parquet")
    save(grids, tmp_path / "g.parquet")
    _, place = scramble([tmp_path / "v.parquet"], tmp_path / "copy.parquet", 0)
    with pytest.raises(InputError, match=r"g\.parquet: episode 0: grids; expected vectors"):
        scramble([tmp_path / "g.parquet"], tmp_path / "other.parquet", 0, place)
    assert not (tmp_path / "other.parquet").exists()


def test_a_map_used_again_follows_the_names_of_components(vectors: Demonstrations, tmp_path: Path) -> None:
    states = [item.trajectory.states for item in vectors]
    for name, order in (("one", [0, 1, 2]), ("two", [2, 0, 1])):
        items = tuple(
            replace(item, trajectory=replace(item.trajectory, states=rows[:, order]))
            for item, rows in zip(vectors, states, strict=True)
        )
        fields = tuple("abc"[place] for place in order)
        save(replace(vectors, items=items, metadata=replace(vectors.metadata, fields=fields)), tmp_path / f"{name}.npz")
    _, place = scramble([tmp_path / "one.npz"], tmp_path / "one.parquet", seed=1)
    scramble([tmp_path / "two.npz"], tmp_path / "two.parquet", 0, place)
    assert_same(load([tmp_path / "one.parquet"]), load([tmp_path / "two.parquet"]))
    other = replace(vectors, metadata=replace(vectors.metadata, fields=("a", "b", "d")))
    save(other, tmp_path / "other.npz")
    with pytest.raises(
        InputError, match=r"other\.npz: components a, b, d; expected a, b, c, for which the map was made"
    ):
        scramble([tmp_path / "other.npz"], tmp_path / "other.parquet", 0, place)
    assert not (tmp_path / "other.parquet").exists()


def test_the_map_is_readable(grids: Demonstrations, tmp_path: Path) -> None:
    save(grids, tmp_path / "g.parquet")
    _, place = scramble([tmp_path / "g.parquet"], tmp_path / "copy.parquet", 5)
    about = json.loads(place.read_text())
    assert about["seed"] == 5
    assert {"go", "to", "the", "red", "grüne", "blue", "ball"} == set(about["words"])


def test_convert_states_what_the_source_does_not_say(tmp_path: Path) -> None:
    np.savez(tmp_path / "rollouts.npz", observations=np.zeros((4, 2)), actions=np.zeros(4), episode_lengths=[2, 2])
    stated = Stated("negative", "walk", "Walker-v1", "all", ("height", "speed"))
    convert(tmp_path / "rollouts.npz", tmp_path / "rollouts.parquet", None, stated)
    found = load([tmp_path / "rollouts.parquet"])
    assert (found.metadata.environment, found.metadata.label, found.metadata.fields) == (
        "Walker-v1",
        "all",
        ("height", "speed"),
    )
    assert {(d.role, d.task) for d in found} == {("negative", "walk")}


def test_convert_a_folder(grids: Demonstrations, tmp_path: Path) -> None:
    for role in ("expert", "negative"):
        save(grids.select(role=role), tmp_path / "set" / f"{role}.parquet")
    convert(tmp_path / "set", tmp_path / "copy", "npz")
    assert sorted(file.name for file in (tmp_path / "copy").iterdir()) == ["expert.npz", "negative.npz"]
    assert_same(load([tmp_path / "copy"]), load([tmp_path / "set"]))


def test_convert_onto_itself(vectors: Demonstrations, tmp_path: Path) -> None:
    save(vectors, tmp_path / "set.parquet")
    before = (tmp_path / "set.parquet").read_bytes()
    with pytest.raises(InputError, match="the same"):
        convert(tmp_path / "set.parquet", tmp_path / "set.parquet")
    assert (tmp_path / "set.parquet").read_bytes() == before
