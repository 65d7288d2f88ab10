"""auc, accuracy and separated, against counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.metrics import ranking


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


@pytest.mark.parametrize(
    ("experts", "negatives", "threshold"),
    [
        ([1.0, 2.0], [0.0, -3.0], 0.5),  # separated: halfway
        ([3.0, 0.0], [1.0, 2.0], 2.5),
        ([1.0], [1.0], 1.0),
        ([1e308], [-1e308], 0.0),  # whose difference is not finite
        ([np.nextafter(1.0, 2.0)], [1.0], 1.0),  # between which no double lies
        ([5e-324], [0.0], 0.0),
    ],
)
def test_the_threshold_lies_between_the_values_that_it_parts(
    experts: list[float], negatives: list[float], threshold: float
) -> None:
    values = np.array(experts + negatives)
    positive = np.array([True] * len(experts) + [False] * len(negatives))
    found = ranking(values, positive)
    assert found.threshold == threshold
    assert ranking(values, positive, threshold) == found


def test_accuracy_at_a_threshold_that_is_given() -> None:
    values, positive = np.array([0.6, 0.4, 0.3, 0.0]), np.array([True, True, False, False])
    assert [ranking(values, positive, at).accuracy for at in (0.5, 0.4, 0.35, 0.3, -1.0, 9.0)] == [
        *(0.75, 0.75, 1.0, 1.0, 0.5, 0.5)
    ]
    assert ranking(values, positive, 9.0).separated


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
