"""The choice of a program's size by episodes that its search did not use.

For each size, the AUC of every episode is given. Sizes are compared by the paired differences per episode. Nested folds
(`synthesis.vector.folds`) and validation episodes (`runs.preference`) use this choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 6
"""Minimum number of expert episodes, and of negative ones, for the choice of a size."""
DOUBT = 0.5
"""Number of standard errors of the paired differences by which a smaller size may be worse. With 1, the
chosen sizes lost 0.007 of AUC on Hopper and 0.003 on HalfCheetah (`benchmarks/front_peers.py`)."""
WORTH = 0.1
"""Fraction of (1 - best AUC) that a smaller program may lose."""


@dataclass(frozen=True)
class Rung:
    """Figures of one size.

    Attributes:
        size: number of a sum's terms or of a predicate's limits, or another number that orders sizes.
        auc: mean over episodes of the AUC: the probability that a positive state outranks one that is not.
        worse: mean of the paired differences per episode: AUC of the best size minus this AUC.
        error: standard error of `worse`.
    """

    size: int
    auc: float
    worse: float
    error: float


def ladder(aucs: Mapping[int, Floats]) -> list[Rung]:
    """The figures of all sizes, smallest first, each in comparison with the best size.

    Args:
        aucs: for each size, `(E,)` the AUC of each episode.
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
    """The sizes that are nearly as good as the best one, smallest first.

    Their mean AUC is lower by at most `DOUBT` standard errors plus `WORTH` times (1 - the best size's mean AUC).
    """
    return [rung.size for rung in rungs if rung.worse <= DOUBT * rung.error + WORTH * (1 - rung.auc - rung.worse)]


def chosen(rungs: Sequence[Rung]) -> int | None:
    """The smallest size of `nearly_best`; None without sizes."""
    return next(iter(nearly_best(rungs)), None)


def episode_aucs(rewards: Sequence[Floats], positive: Sequence[Mask]) -> Floats:
    """For each episode, how well a program tells its states from those of the other side, `(E,)`.

    If an episode has positive states, they are compared with all other states. If not, its states are compared with all
    positive ones.

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
    """The probability that one of `values` is larger than one of `others`, or smaller; ties count one half.

    Args:
        values: the numbers of one episode.
        others: the numbers of all others, in ascending order.
        lower: whether to count smaller values instead of larger ones.
    """
    pairs = len(values) * len(others)
    if not pairs:
        return 0.5
    above = (np.searchsorted(others, values, "left").sum() + np.searchsorted(others, values, "right").sum()) / 2
    return float((pairs - above if lower else above) / pairs)
