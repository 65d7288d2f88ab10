"""Grids in prompts say everything: what is written is read back cell by cell."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Metadata, Trajectory
from grace_irl.propose.views import view_of
from grace_irl.propose.views.grid import GridView, backdrop, codes_in, commonest, runs
from tests.propose.asked import FLOOR, WALL, room

CODE, CELL = r"\((\d+),(\d+),(\d+)\)", r"\[(\d+),(\d+)\]"
SPAN = re.compile(r"\[(\d+)(?:\.\.(\d+))?,(\d+)(?:\.\.(\d+))?\]")

stacks = arrays(np.uint8, (5, 3, 4, 3), elements=st.sampled_from([0, 1, 2])) | arrays(
    np.uint8, (4, 3, 4, 1), elements=st.sampled_from([0, 0, 0, 7, 8])
).map(lambda codes: np.repeat(codes, 3, axis=3))


def view(*stack: NDArray[np.uint8]) -> GridView:
    items = [Trajectory(each) for each in stack]
    labelled = [Labelled(Demonstration(item, "expert"), np.zeros(len(item.states), dtype=np.bool_)) for item in items]
    return GridView(labelled, Metadata("grid"))


def integers(found: re.Match[str], first: int, last: int) -> tuple[int, ...]:
    return tuple(int(found[n]) for n in range(first, last + 1))


def read_backdrop(legend: str, size: tuple[int, int]) -> NDArray[np.int64]:
    """The background of a size, from the legend alone."""
    line = next(line for line in legend.splitlines() if line.startswith(f"- {size[0]} x {size[1]}:"))
    parts = line.partition(": ")[2].split("; ")
    grid = np.empty((*size, 3), dtype=np.int64)
    for part in reversed(parts):
        code = re.match(CODE, part)
        assert code is not None
        if part.endswith(("elsewhere", "everywhere")):
            grid[:] = integers(code, 1, 3)
            continue
        for top, bottom, left, right in SPAN.findall(part):
            grid[int(top) : int(bottom or top) + 1, int(left) : int(right or left) + 1] = integers(code, 1, 3)
    return grid


def read_state(text: str, base: NDArray[np.int64]) -> NDArray[np.int64]:
    """A state in full, from its text."""
    grid = base.copy()
    for part in text.split("; ") if text != "background only" else []:
        code = re.match(CODE + " at ", part)
        assert code is not None
        for row, column in re.findall(CELL, part):
            grid[int(row), int(column)] = integers(code, 1, 3)
    return grid


def read_change(text: str, before: NDArray[np.int64], base: NDArray[np.int64]) -> NDArray[np.int64]:
    """The next state, from what changed."""
    if text.startswith("in full: "):
        return read_state(text.removeprefix("in full: "), base)
    grid = before.copy()
    for part in text.split("; ") if text != "no change" else []:
        if moved := re.fullmatch(f"{CODE}: {CELL} => {CELL}", part):
            one, two = integers(moved, 4, 5), integers(moved, 6, 7)
            assert tuple(before[one]) == integers(moved, 1, 3)
            grid[two], grid[one] = before[one], before[two]
        else:
            changed = re.fullmatch(f"{CELL} {CODE} -> {CODE}", part)
            assert changed is not None, part
            assert tuple(before[integers(changed, 1, 2)]) == integers(changed, 3, 5)
            grid[integers(changed, 1, 2)] = integers(changed, 6, 8)
    return grid


@given(stacks)
def test_what_is_written_is_read_back(states: NDArray[np.uint8]) -> None:
    shown = view(states)
    base = read_backdrop(shown.legend(10_000), (3, 4))
    for number, state in enumerate(states):
        np.testing.assert_array_equal(read_state(shown.state(state), base), state)
        before = states[number - 1].astype(np.int64)
        np.testing.assert_array_equal(read_change(shown.change(before, state), before, base), state)


def test_a_room_is_its_things() -> None:
    one, two = room({(1, 1): (21, 1, 4), (3, 3): (8, 4, 5)}), room({(1, 2): (21, 1, 4), (3, 3): (8, 4, 5)})
    turned = room({(1, 2): (21, 1, 9), (3, 3): (8, 4, 5)})
    taken = room({(1, 2): (21, 1, 9)})
    shown = view(np.stack([one, two, turned, taken]))
    assert shown.state(one) == "(8,4,5) at [3,3]; (21,1,4) at [1,1]"
    assert shown.change(one, two) == "(21,1,4): [1,1] => [1,2]"
    assert shown.change(two, turned) == "[1,2] (21,1,4) -> (21,1,9)"
    assert shown.change(turned, taken) == f"[3,3] (8,4,5) -> ({FLOOR[0]},{FLOOR[1]},{FLOOR[2]})"
    assert shown.change(taken, taken) == "no change"
    assert "(3,7,5) at [1,1..4] [2,1..4] [3,1..4]; (9,9,5) elsewhere" in shown.legend(1000)


def test_a_change_that_is_longer_than_the_state_is_the_state() -> None:
    many = {(1, column): (8, column, 5) for column in range(1, 5)}
    other = {(3, column): (8, column, 5) for column in range(1, 5)}
    shown = view(np.stack([room({}), room(many), room(other)]))
    assert shown.change(room(many), room({})) == "in full: background only"
    assert shown.change(room(many), room(other)) == f"in full: {shown.state(room(other))}"
    two = dict(list(other.items())[:2])
    assert shown.change(room(other), room(two)) == "[3,3] (8,3,5) -> (3,7,5); [3,4] (8,4,5) -> (3,7,5)"


def test_a_thing_on_the_background_of_walls_is_no_move() -> None:
    """Where a thing comes to lie on a wall, floor does not change places with it."""
    before, after = room({(1, 1): (8, 4, 5)}), room({(0, 0): (8, 4, 5)})
    shown = view(np.stack([room({})] * 4 + [before, after]))
    text = shown.change(before, after)
    assert "=>" not in text
    assert "[1,1] (8,4,5) -> (3,7,5)" in text


def test_sizes_are_told_apart() -> None:
    small, large = room({(1, 1): (8, 4, 5)}), room({}, (4, 9))
    shown = view(small[None], large[None])
    assert shown.state(small) == "5 x 6: (8,4,5) at [1,1]"
    assert shown.state(large) == "4 x 9: background only"
    assert shown.change(small, large) == "in full: 4 x 9: background only"
    assert "(h, w) seen so far: 4 x 9, 5 x 6;" in shown.about
    unseen = room({}, (3, 3))
    assert shown.state(unseen).startswith("3 x 3: ")


def test_the_legend_names_codes_as_numbers_and_is_cut() -> None:
    things = [room({(1, 1): (8, number, 5)}) for number in range(3)]
    shown = view(*(np.stack([room({}), thing]) for thing in things))
    assert "Codes beside the background: a 8; b 0, 1, 2; c 5." in shown.legend(5000)
    assert shown.legend(60).endswith("more characters left out]")


def test_the_commonest_codes() -> None:
    assert commonest([room({})]) == (WALL, FLOOR)
    assert commonest([np.zeros((2, 2, 3), dtype=np.uint8)]) == ((0, 0, 0),)


@pytest.mark.parametrize("largest", [5, 255, 2**20 - 1, 2**20, 2**40])
@pytest.mark.parametrize("smallest", [0, -1])
def test_codes_of_any_size_are_counted(smallest: int, largest: int) -> None:
    cells = np.array([[smallest, 1, largest], [largest, 0, 2], [smallest, 1, largest]])
    assert codes_in(cells) == {(smallest, 1, largest): 2, (largest, 0, 2): 1}


def test_the_backdrop_is_what_lies_there_most_often() -> None:
    door = room({(0, 1): (5, 5, 5)})
    grid = backdrop([np.stack([door, room({}), door])], (FLOOR, WALL))
    np.testing.assert_array_equal(grid, room({}))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["...", "..."], ""),
        (["#..", "..."], "[0,0]"),
        (["###", "#..", "#.."], "[0,0..2] [1..2,0]"),
        (["####", "#..#", "#..#", "####"], "[0,0..3] [3,0..3] [1..2,0] [1..2,3]"),
        ([".#.", ".#.", "###"], "[2,0..2] [0..1,1]"),
    ],
)
def test_runs(rows: list[str], expected: str) -> None:
    assert runs(np.array([[cell == "#" for cell in row] for row in rows])) == expected


@given(arrays(np.bool_, (5, 6)))
def test_runs_cover_the_mask_once(mask: NDArray[np.bool_]) -> None:
    count = np.zeros(mask.shape, dtype=int)
    for top, bottom, left, right in SPAN.findall(runs(mask)):
        count[int(top) : int(bottom or top) + 1, int(left) : int(right or left) + 1] += 1
    np.testing.assert_array_equal(count, mask.astype(int))


def test_runs_of_a_large_mask_are_found_in_one_go() -> None:
    """A search that began again after every run would take a minute."""
    mask = np.random.default_rng(0).random((128, 128)) < 0.5
    assert len(SPAN.findall(runs(mask))) > 2_500


def test_views_are_found_by_kind() -> None:
    items = [Labelled(Demonstration(Trajectory(room({})[None]), "expert"), np.ones(1, dtype=np.bool_))]
    assert isinstance(view_of(items, Metadata("grid")), GridView)
