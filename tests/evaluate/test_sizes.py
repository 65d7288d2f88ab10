"""The AUC of each episode, beside SciPy's ranks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata

from grace_irl.evaluate.sizes import episode_aucs


def by_ranks(high: NDArray[np.float64], low: NDArray[np.float64]) -> float:
    if not len(high) or not len(low):
        return 0.5
    ranks = rankdata(np.concatenate([high, low]))[: len(high)].sum()
    return float((ranks - len(high) * (len(high) + 1) / 2) / (len(high) * len(low)))


@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_an_episode_is_held_against_the_other_side(decimals: int) -> None:
    """With few decimals, most pairs are ties."""
    rng = np.random.default_rng(decimals)
    rewards = [np.round(rng.normal(size=length), decimals) for length in (1, 7, 40, 3, 200)]
    positive = [np.arange(len(each)) >= len(each) - 2 * (number % 2) for number, each in enumerate(rewards)]
    high = np.concatenate([each[own] for each, own in zip(rewards, positive, strict=True)])
    low = np.concatenate([each[~own] for each, own in zip(rewards, positive, strict=True)])
    expected = [
        by_ranks(each[own], low) if own.any() else by_ranks(high, each)
        for each, own in zip(rewards, positive, strict=True)
    ]
    assert episode_aucs(rewards, positive).tolist() == expected  # the same numbers, to the last digit


def test_without_another_side_nothing_is_known() -> None:
    rewards = [np.array([1.0, 2.0]), np.array([3.0])]
    assert episode_aucs(rewards, [np.ones(2, bool), np.ones(1, bool)]).tolist() == [0.5, 0.5]
    assert episode_aucs(rewards, [np.zeros(2, bool), np.zeros(1, bool)]).tolist() == [0.5, 0.5]
