"""Kendall's tau along expert trajectories."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.evaluate.metrics import monotonicity


@pytest.mark.parametrize(
    ("trajectories", "tau"),
    [
        ([[0.0, 1, 2, 3]], 1.0),
        ([[3.0, 2, 1]], -1.0),
        ([[1.0, 1, 1]], 0.0),
        ([[0.0, 1, 2], [2.0, 1, 0]], 0.0),
        ([[0.0, 2, 1]], 1 / 3),  # two pairs rise, one falls
        ([[1.0]], None),
        ([], None),
    ],
)
def test_monotonicity(trajectories: list[list[float]], tau: float | None) -> None:
    found = monotonicity(np.array(values) for values in trajectories)
    assert found is None if tau is None else found == pytest.approx(tau)
