"""auc, accuracy and separated, against counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.ranking import ranking


@pytest.mark.parametrize(
    ("experts", "negatives", "auc", "accuracy", "separated"),
    [
        ([1.0], [0.0], 1.0, 1.0, True),
        ([0.0], [1.0], 0.0, 0.5, False),
        ([1.0], [1.0], 0.5, 0.5, False),
        ([2.0, 1.0], [1.0, 0.0], 0.875, 0.75, False),
        ([3.0, 0.0], [1.0, 2.0], 0.5, 0.75, False),
        ([5.0, 5.0, 5.0], [5.0 - 1e-12], 1.0, 1.0, True),
    ],
)
def test_small_cases(
    experts: list[float], negatives: list[float], auc: float, accuracy: float, separated: bool
) -> None:
    found = ranking(np.array(experts + negatives), np.array([True] * len(experts) + [False] * len(negatives)))
    assert (found.auc, found.accuracy, found.separated) == (auc, accuracy, separated)


@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=15),
    st.lists(st.integers(-4, 4), min_size=1, max_size=15),
)
def test_against_counting(experts: list[int], negatives: list[int]) -> None:
    values = np.array([*experts, *negatives], dtype=float)
    positive = np.array([True] * len(experts) + [False] * len(negatives))
    found = ranking(values, positive)
    pairs = [(e > n) + 0.5 * (e == n) for e in experts for n in negatives]
    assert found.auc == pytest.approx(np.mean(pairs))
    thresholds = [-10.0, *np.unique(values)]
    balanced = [(np.mean([e > t for e in experts]) + np.mean([n <= t for n in negatives])) / 2 for t in thresholds]
    assert found.accuracy == pytest.approx(max(balanced))
    assert found.separated == (min(experts) > max(negatives))
    at = (values[positive] > found.threshold).mean() + (values[~positive] <= found.threshold).mean()
    assert at / 2 == pytest.approx(found.accuracy)
