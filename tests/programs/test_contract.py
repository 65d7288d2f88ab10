"""How states are handed to programs."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.programs.contract import as_state, state_dtype


@pytest.mark.parametrize(
    ("stored", "ndim", "handed"),
    [
        ("<f4", 1, "<f4"),
        ("<f8", 1, "<f8"),
        ("<f2", 1, "<f2"),
        ("<i4", 1, "<f8"),
        ("|u1", 1, "<f8"),
        ("|u1", 3, "<i8"),
        (">i2", 3, "<i8"),
        ("<i8", 3, "<i8"),
    ],
)
def test_types(stored: str, ndim: int, handed: str) -> None:
    assert state_dtype(np.dtype(stored), ndim) == np.dtype(handed)
    state = as_state(np.ones((2,) * ndim, stored))
    assert state.dtype == np.dtype(handed)
    assert state.flags.owndata
    assert state.flags.writeable


def test_differences_of_codes_do_not_wrap_around() -> None:
    grid = np.zeros((2, 2, 3), np.uint8)
    grid[0, 0, 0] = 5
    state = as_state(grid)
    assert state[1, 1, 0] - state[0, 0, 0] == -5
