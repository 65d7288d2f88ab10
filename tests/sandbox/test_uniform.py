"""One type and precision for a set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from grace_irl.sandbox.uniform import action_shape, common_dtype, convert

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
