"""Near misses of our own levels: what they do, and the rewards that tell them from goals."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("minigrid")

import grace_irl
from grace_irl.rl.collect import collect
from grace_irl.rl.levels import Cell, between, cell_of
from tests.demos.equality import assert_same

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")
KINDS = {"key": 5, "ball": 6, "box": 7}
COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
DOOR, KEY, BALL = 4, 5, 6
EPISODES = 20


@pytest.fixture(scope="module", autouse=True)
def benchmarks() -> Iterator[None]:
    sys.path.insert(0, BENCHMARKS)
    yield
    sys.path.remove(BENCHMARKS)


def things(trajectory: Any) -> list[tuple[Cell | None, ...]]:
    """Where the object and the two others are, in each state: None where an object is carried."""
    moved, _, ends = trajectory.extra_info.removeprefix("put ").partition(" between ")
    codes = []
    for what in (moved, *ends.split(" and ")):
        color, kind = what.removeprefix("the ").split()
        codes.append((KINDS[kind], COLORS.index(color)))
    return [tuple(where(state, *code) for code in codes) for state in trajectory.states]


def where(state: Any, kind: int, color: int) -> Cell | None:
    cells = np.argwhere((state[..., 0] == kind) & (state[..., 1] == color))
    return cell_of(cells[0]) if len(cells) else None


def episodes(level: str, kind: str) -> list[Any]:
    found = collect(f"BabyAI-{level}-v0", "bot", EPISODES, "negative", 3, near_miss=kind)
    assert len(found) == EPISODES
    assert all(item.role == "negative" and not item.trajectory.rewards.any() for item in found)
    assert len({item.trajectory.digest for item in found}) > EPISODES / 2
    return [item.trajectory for item in found]


def test_an_object_dropped_beside_lies_next_to_an_end_and_not_between() -> None:
    for trajectory in episodes("PlaceBetween", "beside"):
        *_, before, (there, one, other) = things(trajectory)
        assert before[0] is None
        assert 1 in {abs(there[0] - x) + abs(there[1] - y) for x, y in (one, other)}
        assert there not in between(one, other)


def test_a_moved_anchor_has_the_object_between() -> None:
    for trajectory in episodes("PlaceBetween", "anchor"):
        first, *_, before, (there, one, other) = things(trajectory)
        assert None in before[1:]
        assert there == first[0]
        assert there in between(one, other)


def test_a_wrong_door_is_of_another_colour_than_the_key() -> None:
    for trajectory in episodes("OpenMatchingDoor", "wrong door"):
        last = trajectory.states[-1]
        ((color,),) = last[(last[..., 0] == DOOR) & (last[..., 2] == 0)][:, 1:2]
        assert where(last, KEY, color) is None
        assert trajectory.terminated


def rooms(trajectory: Any) -> list[tuple[bool | None, bool | None]]:
    """Whether the red and the blue ball lie in the right room, in each state: None while carried."""
    middle = int(np.argwhere(trajectory.states[0][..., 0] == DOOR)[0][0])
    cells = [[where(state, BALL, COLORS.index(color)) for color in ("red", "blue")] for state in trajectory.states]
    found = [[cell and cell[0] > middle for cell in pair] for pair in cells]
    return [(red, blue) for red, blue in found]


@pytest.mark.parametrize(("deviation", "end"), [("red ball", (True, True)), ("blue ball", (False, False))])
def test_one_ball_has_changed_rooms_at_the_end(deviation: str, end: tuple[bool, bool]) -> None:
    assert {rooms(trajectory)[-1] for trajectory in episodes("SortColors", deviation)} == {end}


def test_balls_that_are_moved_about_stay_in_their_rooms() -> None:
    for trajectory in episodes("SortColors", "same rooms"):
        assert set(rooms(trajectory)) == {(False, True), (None, True), (False, None)}
        *_, before, last = trajectory.states
        assert where(before, BALL, COLORS.index("blue")) is None
        assert where(last, BALL, COLORS.index("blue")) is not None


def test_the_same_seed_gives_the_same_near_misses() -> None:
    one, two = (collect("BabyAI-PlaceBetween-v0", "bot", 3, "negative", 9, near_miss="beside") for _ in range(2))
    assert_same(one, two)


@pytest.mark.slow
def test_the_benchmark_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import near_misses

    monkeypatch.setattr(near_misses, "TRAIN", 4)
    monkeypatch.setattr(near_misses, "FRESH", 4)
    options = ("--levels", "OpenMatchingDoor", "--draws", "1", "--renamings", "2", "--max-calls", "1")
    folders = ("--data", str(tmp_path / "data"), "--out", str(tmp_path / "runs"))
    monkeypatch.setattr(sys, "argv", ["near_misses.py", *options, *folders])
    near_misses.main()
    first = capsys.readouterr().out
    assert first.count("OpenMatchingDoor") == 3  # a line for each sort of negatives

    def no_fit(*_: Any, **__: Any) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr("grace_irl.fit", no_fit)
    near_misses.main()
    assert capsys.readouterr().out == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "seed"), [("PlaceBetween", 300_000), ("OpenMatchingDoor", 300_000), ("SortColors", 300_000)]
)
def test_the_synthesiser_tells_near_misses_from_goals(level: str, seed: int, tmp_path: Path) -> None:
    """8 experts, 4 random episodes and 4 near misses; then 20 fresh experts and near misses."""
    train, fresh = (
        {
            "expert": collect(name := f"BabyAI-{level}-v0", "bot", count, "expert", at),
            "near": collect(name, "bot", count // 2, "negative", at + 1, near_miss=True),
            "random": collect(name, "random", 4, "negative", at + 2),
        }
        for count, at in ((8, seed), (40, seed + 10))
    )
    data = replace(train["expert"], items=(*train["expert"], *train["near"], *train["random"]))
    run = grace_irl.fit(data, out=tmp_path, held_out=0.0, max_calls=10)
    reward = grace_irl.load_reward(run.reward_path)
    paid = {
        kind: [values > run.best.separation.threshold for values in reward.rewards([one.trajectory for one in some])]
        for kind, some in fresh.items()
    }
    assert all(one[-1] and not one[:-1].any() for one in paid["expert"])
    assert not any(one.any() for kind in ("near", "random") for one in paid[kind])
