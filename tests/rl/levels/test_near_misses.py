"""Near misses of our own levels: what they do, and how a reward is judged on them (`benchmarks/babyai`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("minigrid")

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


def test_one_ball_has_changed_rooms_at_the_end() -> None:
    ends = {rooms(trajectory)[-1] for trajectory in episodes("SortColors", "one ball")}
    assert ends == {(True, True), (False, False)}


def test_balls_that_are_moved_about_stay_in_their_rooms() -> None:
    for trajectory in episodes("SortColors", "same rooms"):
        assert set(rooms(trajectory)) == {(False, True), (None, True), (False, None)}
        *_, before, last = trajectory.states
        assert where(before, BALL, COLORS.index("blue")) is None
        assert where(last, BALL, COLORS.index("blue")) is not None


def test_the_same_seed_gives_the_same_near_misses() -> None:
    one, two = (collect("BabyAI-PlaceBetween-v0", "bot", 3, "negative", 9, near_miss="beside") for _ in range(2))
    assert_same(one, two)


def test_a_reward_is_judged_by_episode() -> None:
    from babyai import by_episode

    experts = [np.array(values) for values in ([0.0, 1.0], [0.8, 0.2, 0.9], [0.0, 0.3])]
    negatives = {"near": [np.array([0.0, 0.7]), np.array([0.1])], "random": [np.array([0.5, 0.6, 0.2])] * 2}
    found = by_episode.verdict(experts, negatives, 0.5)
    assert (found.hit, found.early) == (2 / 3, 1 / 3)
    assert found.false == {"near": 0.5, "random": 1.0}
    # Of the 13 other states 4 are paid: one of an expert, one of a near miss, two of random episodes.
    assert found.accuracy == pytest.approx((2 / 3 + 9 / 13) / 2)


@pytest.mark.slow
def test_the_benchmark_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import new_levels_recovery

    monkeypatch.setattr(new_levels_recovery, "TRAIN", 2)
    monkeypatch.setattr(new_levels_recovery, "HELD_OUT", 4)
    monkeypatch.setattr(new_levels_recovery, "SEEN", {"shown": True})
    options = ("--levels", "OpenMatchingDoor", "--draws", "1", "--max-calls", "1", "--out", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["new_levels_recovery.py", *options])
    new_levels_recovery.main()
    first = capsys.readouterr().out
    assert first.count("OpenMatchingDoor shown") == first.count("wrong door") == 4  # two copies, and the mean of each

    def no_fit(*_: Any, **__: Any) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr("grace_irl.fit", no_fit)
    new_levels_recovery.main()
    assert capsys.readouterr().out == first
