"""The choice of a program's size, based on episodes that the search for the program did not use.

The inputs are the AUCs of the same episodes for each size. The differences between the AUCs of two sizes, paired by
episode, decide. Nested folds (`synthesis.vector.folds`) and validation episodes (`runs.preference`) use this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 6
"""Minimum number of expert episodes, and of negative episodes, for the choice of a size."""
DOUBT = 0.5
"""Number of standard errors (`Rung.error`) that `nearly_best` allows between an AUC and the best AUC. With the value
1, the chosen sizes had a lower AUC than with 0.5: by 0.007 on Hopper and 0.003 on HalfCheetah
(`benchmarks/front_peers.py`)."""
WORTH = 0.1
"""`nearly_best` allows an AUC loss of this fraction of (1 - best AUC), in addition to `DOUBT` standard errors."""


@dataclass(frozen=True)
class Rung:
    """Figures of one size.

    Attributes:
        size: number of terms of a sum, number of limits of a predicate, or another number that orders programs by size.
        auc: mean of `episode_aucs`: the probability that a positive state has a higher reward than a negative state.
        worse: mean of the paired differences: AUC of the best size minus AUC of this size, per episode.
        error: standard error of `worse`.
    """

    size: int
    auc: float
    worse: float
    error: float


def ladder(aucs: Mapping[int, Floats]) -> list[Rung]:
    """The figures of all sizes, in comparison with the best size. The smallest size comes first.

    Args:
        aucs: map from a size to the AUC of each episode, `(E,)`.
    """
    if not aucs:
        return []
    best = max(aucs, key=lambda size: (aucs[size].mean(), -size))
    rungs = []
    for size, each in sorted(aucs.items()):
        differences = aucs[best] - each
        error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
        rungs.append(Rung(size, float(each.mean()), float(differences.mean()), error))
    return rungs


def nearly_best(rungs: Sequence[Rung]) -> list[int]:
    """The sizes that are nearly as good as the best size, smallest first.

    The mean AUC of such a size is at most `DOUBT` standard errors plus `WORTH` * (1 - best mean AUC) below the best.
    """
    return [rung.size for rung in rungs if rung.worse <= DOUBT * rung.error + WORTH * (1 - rung.auc - rung.worse)]


def chosen(rungs: Sequence[Rung]) -> int | None:
    """The smallest size of `nearly_best`; None if there are no sizes."""
    return next(iter(nearly_best(rungs)), None)


def episode_aucs(rewards: Sequence[Floats], positive: Sequence[Mask]) -> Floats:
    """The AUC of each episode, `(E,)`.

    If an episode has positive states, they are compared with the non-positive states of all episodes. Otherwise, all
    states of the episode are compared with the positive states of all episodes.

    Args:
        rewards: the rewards `(T,)` of the states of each episode.
        positive: for each episode, whether each state is positive.
    """
    high = np.sort(np.concatenate([each[own] for each, own in zip(rewards, positive, strict=True)]))
    low = np.sort(np.concatenate([each[~own] for each, own in zip(rewards, positive, strict=True)]))
    found = [
        _wins(each[own], low) if own.any() else _wins(each, high, lower=True)
        for each, own in zip(rewards, positive, strict=True)
    ]
    return np.array(found)


def _wins(values: Floats, others: Floats, *, lower: bool = False) -> float:
    """The probability that a random entry of `values` is larger than a random entry of `others`. Ties count one half.

    Args:
        values: the numbers of one episode.
        others: the numbers to compare with, in ascending order.
        lower: whether to count smaller entries instead of larger entries.
    """
    pairs = len(values) * len(others)
    if not pairs:
        return 0.5
    above = (np.searchsorted(others, values, "left").sum() + np.searchsorted(others, values, "right").sum()) / 2
    return float((pairs - above if lower else above) / pairs)
