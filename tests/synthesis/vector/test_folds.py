"""Nested folds: who is judged by whom, and which size they choose."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.evaluate.sizes import Rung, chosen, ladder
from grace_irl.synthesis.vector.folds import Rewards, assign, judged


@pytest.mark.parametrize(
    ("experts", "negatives", "folds"), [(8, 8, 5), (6, 40, 5), (30, 6, 5), (5, 40, None), (6, 5, None), (0, 9, None)]
)
def test_folds_have_both_sides(experts: int, negatives: int, folds: int | None) -> None:
    sides = [True] * experts + [False] * negatives
    found = assign(sides)
    assert (found is None) == (folds is None)
    if found is not None:
        assert {*found} == set(range(folds or 0))
        for side in (True, False):
            assert {fold for fold, one in zip(found, sides, strict=True) if one == side} == {*found}


def test_no_fold_judges_what_it_has_seen() -> None:
    """A search that remembers its episodes is right about them, and knows nothing of others."""
    positive = [np.array([False, i < 8]) for i in range(16)]
    folds = assign([i < 8 for i in range(16)])
    assert folds is not None

    def search(inside: list[int]) -> dict[int, Rewards]:
        remembers: Rewards = lambda i: positive[i].astype(float) if i in inside else np.zeros(2)  # noqa: E731
        knows: Rewards = lambda i: positive[i].astype(float)  # noqa: E731
        return {1: remembers, 2: knows}

    aucs = judged(folds, positive, search)
    assert aucs[1].tolist() == [0.5] * 16
    assert aucs[2].tolist() == [1.0] * 16


def test_sizes_that_a_fold_lacks_are_left_out() -> None:
    positive = [np.array([False, i < 6]) for i in range(12)]
    folds = assign([i < 6 for i in range(12)])
    assert folds is not None
    aucs = judged(
        folds, positive, lambda inside: dict.fromkeys(range(1, 3 + (0 in inside)), lambda i: positive[i] * 1.0)
    )
    assert list(aucs) == [1, 2]


@pytest.mark.parametrize(
    ("aucs", "size"),
    [
        ({1: [0.9, 0.9, 0.9, 0.9], 2: [0.9, 0.9, 0.9, 0.9]}, 1),
        ({1: [0.6, 0.7, 0.6, 0.7], 2: [0.94, 0.96, 1.0, 0.9], 3: [0.94, 1.0, 0.96, 0.91]}, 2),
        ({1: [0.95, 0.7, 0.95, 0.95], 4: [0.9, 0.9, 0.9, 0.9]}, 1),  # one episode alone decides nothing
        ({2: [1.0, 1.0, 1.0, 1.0], 7: [0.9, 0.8, 0.9, 0.9]}, 2),
        ({1: [0.895, 0.894, 0.895, 0.894], 9: [0.9, 0.9, 0.9, 0.9]}, 1),  # a tenth of what is lacking is not worth it
        ({1: [0.98, 0.98, 0.98, 0.98], 9: [1.0, 1.0, 1.0, 1.0]}, 9),
    ],
)
def test_the_smallest_size_that_is_not_worse_is_chosen(aucs: dict[int, list[float]], size: int) -> None:
    rungs = ladder({key: np.array(each) for key, each in aucs.items()})
    assert [rung.size for rung in rungs] == sorted(aucs)
    assert min(rung.worse for rung in rungs) == 0.0
    assert chosen(rungs) == size


def test_without_folds_no_size_is_chosen() -> None:
    assert ladder({}) == []
    assert chosen([]) is None
    assert chosen([Rung(3, 0.9, 0.0, 0.0)]) == 3
