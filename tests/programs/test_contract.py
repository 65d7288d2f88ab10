"""The way of states to programs."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.programs.contract import as_action
from grace_irl.states import as_state

FLOATS = ("<f4", "<f8", "<f2", ">f8")
INTEGERS = ("<i4", "|u1", ">i2", "<i8")


@pytest.mark.parametrize(
    ("stored", "shape", "handed"),
    [
        *(
            pytest.param(stored, (2,), "<f8", id=f"vector {stored}")
            for stored in ("<f4", "<f8", "<f2", ">f8", *INTEGERS)
        ),
        *(pytest.param(stored, (2, 2, 3), "<i8", id=f"grid {stored}") for stored in INTEGERS),
    ],
)
def test_types(stored: str, shape: tuple[int, ...], handed: str) -> None:
    stored_state = np.ones(shape, stored, order="F")
    state = as_state(stored_state)
    assert state.dtype == np.dtype(handed)
    assert state.flags.owndata
    assert state.flags.writeable
    assert state.flags.c_contiguous
    assert not np.shares_memory(state, stored_state)


@pytest.mark.parametrize("action", [2, 2.0, np.int64(2), np.float32(2), np.array(2, ">i2"), True + True])
def test_an_action_of_one_number_is_a_number(action: object) -> None:
    found = as_action(action)
    assert type(found) is np.float64
    assert found == 2.0


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "|u1"])
def test_an_action_of_several_numbers_is_an_array(dtype: str) -> None:
    action = np.ones((3,), dtype)
    found = as_action(action)
    assert found.dtype == np.float64
    assert found.flags.owndata
    np.testing.assert_array_equal(found, [1, 1, 1])


def test_differences_of_codes_do_not_wrap_around() -> None:
    grid = np.zeros((2, 2, 3), np.uint8)
    grid[0, 0, 0] = 5
    state = as_state(grid)
    assert state[1, 1, 0] - state[0, 0, 0] == -5
