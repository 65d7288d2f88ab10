"""Packages: one type and precision for a set, portions, and equal screens once, in the order of the run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox import memory
from grace_irl.sandbox.packing import action_shape, common_dtype, convert, pack
from grace_irl.sandbox.parcel import Views
from grace_irl.states.texts import pack as pack_states
from tests.demos.conftest import screen

THIRD = np.full((100, 2), 1 / 3)
WIDENED = THIRD.astype(np.float32).astype(np.float64)
COUNTS = np.arange(200.0).reshape(100, 2)
LATE = np.concatenate([COUNTS, THIRD])
"""Its precision shows behind the first states only."""


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ([THIRD], "<f8"),
        ([THIRD.astype(">f8")], "<f8"),
        ([THIRD.astype("f4")] * 2, "<f4"),
        ([THIRD, THIRD.astype("f4")], "<f4"),
        ([THIRD.astype("f2"), THIRD, THIRD.astype("f4")], "<f2"),
        ([THIRD, WIDENED], "<f4"),
        ([WIDENED, WIDENED], "<f8"),
        ([WIDENED.astype("f4"), WIDENED], "<f4"),
        ([THIRD, COUNTS], "<f8"),  # counts have no precision that could tell
        ([LATE, THIRD], "<f8"),
        ([LATE.astype("f4").astype("f8"), THIRD], "<f4"),
        ([COUNTS, COUNTS.astype("f4")], "<f4"),
        ([COUNTS.astype("i8"), THIRD], "<f8"),
        ([COUNTS.astype("i8"), THIRD.astype("f4")], "<f4"),
        ([COUNTS.astype("u1")] * 2, "|u1"),
        ([COUNTS.astype("u1"), COUNTS.astype("i1")], "<i2"),
        ([COUNTS.astype("u8"), COUNTS.astype("i8")], "<i8"),
        ([COUNTS.astype(">i2"), COUNTS.astype("<i2")], "<i2"),
        ([], "<f8"),
    ],
)
def test_the_common_type(given_: list[np.ndarray], expected: str) -> None:
    assert common_dtype(given_).str == np.dtype(expected).str
    assert common_dtype(given_[::-1]).str == np.dtype(expected).str


@given(
    arrays.arrays("f8", (5, 2), elements=st.floats(-1e300, 1e300)),
    st.sampled_from(["<f8", ">f8", "<f4", "<f2"]),
)
def test_converted_numbers_are_finite_and_nearest(array: np.ndarray, name: str) -> None:
    dtype = np.dtype(name)
    found = convert(array, dtype)
    assert found.dtype == dtype
    assert np.isfinite(found).all()
    largest = float(np.finfo(dtype).max)
    inside = np.abs(array) <= largest
    np.testing.assert_array_equal(found[inside], array[inside].astype(dtype))
    assert (np.abs(found[~inside]).astype("f8") == largest).all()


def test_what_has_the_type_is_not_copied() -> None:
    assert convert(THIRD, np.dtype("f8")) is THIRD


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([], None),
        ([(), ()], None),
        ([(1,), (1,)], None),
        ([(), (1,)], ()),
        ([(1, 1), (1,)], ()),
        ([(2, 3), (6,), (3, 2)], (6,)),
        ([(2,), (3,)], None),
        ([(), (2,)], None),
    ],
)
def test_action_shapes(shapes: list[tuple[int, ...]], expected: tuple[int, ...] | None) -> None:
    assert action_shape(shapes) == expected


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [1, 1, 1, 1]), (24, [1, 1, 1, 1]), (48, [2, 1, 1]), (96, [3, 1]), (1 << 20, [4])],
)
def test_portions_hold_so_many_bytes(most: int, expected: list[int]) -> None:
    package = pack([Trajectory(np.full((length, 1), 1 / 3)) for length in (1, 3, 3, 6)])
    parts = list(package.portions(np.array([0, 1, 2, 3]), most))
    assert [part.stop - part.start for part in parts] == expected
    assert [part.start for part in parts] == list(np.cumsum([0, *expected[:-1]]))


def test_an_empty_run_is_one_portion() -> None:
    assert list(pack([]).portions(np.zeros(0, np.int64))) == [slice(0, 0)]


def made(indices: list[list[int]]) -> list[Trajectory]:
    screens = [screen(f"a{n}", "b" * n) for n in range(5)]
    return [
        Trajectory(pack_states([screens[index] for index in chosen]), extra_info="ab"[number % 2])
        for number, chosen in enumerate(indices)
    ]


def test_a_portion_counts_a_screen_once() -> None:
    package = pack(made([[0, 1], [1, 0], [2], [0]]))
    size = {index: len(text) for index, text in enumerate(package.texts)}
    most = size[0] + size[1] + 8 * 4
    assert list(package.portions(np.array([0, 1, 2, 3]), most)) == [slice(0, 2), slice(2, 4)]
    assert list(package.portions(np.array([0, 1, 2, 3]))) == [slice(0, 4)]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 0, 1], [1]])
def test_memory_holds_what_the_run_comes_to_in_its_order(order: list[int]) -> None:
    trajectories = made([[3, 4], [4, 0, 3], [2, 2]])
    package = pack(trajectories)
    fd = package.parcel(np.array(order))
    views = Views(fd)
    seen = [code for view in views for code in view.arrays[0].tolist()]
    assert list(dict.fromkeys(seen)) == list(range(len(set(seen))))
    for index, view in zip(order, views, strict=True):
        states = [view.state(step) for step in range(view.length)]
        assert list(view.states()) == states
        assert states == [state.decode() for state in trajectories[index].states.tolist()]
    with pytest.raises(IndexError):
        views[len(order)]
    whole = bytes(memory.read_all(fd, 1 << 20, 0))
    shown = {state for index in order for state in trajectories[index].states.tolist()}
    for state in {state for trajectory in trajectories for state in trajectory.states.tolist()}:
        assert whole.count(state) == (state in shown)
    memory.close(fd)
