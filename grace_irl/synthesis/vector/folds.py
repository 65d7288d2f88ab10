"""Nested folds: each fold repeats a search without its episodes, and its episodes judge what the search found.

Programs that chose their terms on all episodes look equally good on any of them. So folds repeat the whole search, and
choose a size, not a program. The answer is the best program of this size, searched on all training episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rewards = Callable[[int], Floats]
"""A function that returns the rewards `(T+1,)` along the episode with this index."""

MOST_FOLDS = 5
FEWEST = 6
"""Minimum number of episodes of each side, experts and negatives, with which folds choose a size."""
DOUBT = 0.5
"""Number of standard errors of the paired differences by which a smaller size may be worse. With 1, the
chosen sizes lost 0.007 of AUC on Hopper and 0.003 on HalfCheetah (`benchmarks/front_peers.py`)."""
WORTH = 0.1
"""Part of what the best AUC lacks to 1 that a smaller program may lose."""


@dataclass(frozen=True)
class Rung:
    """Figures of folds for one size.

    Attributes:
        size: number of terms or limits, or another ordinal number of a size.
        auc: mean over episodes of how well the fold's program tells the episode's states from those of the other side
            in the fold: the probability that a positive state outranks another one.
        worse: mean of the paired differences per episode: AUC of the best size minus this AUC.
        error: standard error of `worse`.
    """

    size: int
    auc: float
    worse: float
    error: float


def assign(expert: Sequence[bool]) -> list[int] | None:
    """The fold of each episode; None if there are fewer than `FEWEST` episodes of a side.

    Both sides are dealt to the folds in turn.
    """
    counts = {side: sum(one == side for one in expert) for side in (True, False)}
    if min(counts.values()) < FEWEST:
        return None
    folds, dealt = min(MOST_FOLDS, *counts.values()), {True: 0, False: 0}
    found = []
    for side in map(bool, expert):
        found.append(dealt[side] % folds)
        dealt[side] += 1
    return found


def judged(
    folds: Sequence[int], positive: Sequence[Mask], search: Callable[[list[int]], dict[int, Rewards]]
) -> dict[int, Floats]:
    """The AUC of each episode by size, each from a search without the episodes of its fold.

    Args:
        folds: the fold of each episode.
        positive: for each episode, whether each state is positive.
        search: function that searches on the episodes with these indices, and returns the rewards of its best program
            of each size.

    Returns:
        For each size that every fold has, `(E,)` the AUC of each episode.
    """
    found: list[dict[int, Floats]] = []
    for fold in sorted({*folds}):
        inside = [i for i, one in enumerate(folds) if one == fold]
        programs = search([i for i, one in enumerate(folds) if one != fold])
        found.append({size: _aucs(inside, positive, rewards) for size, rewards in programs.items()})
    sizes = set.intersection(*(set(each) for each in found))
    order = np.argsort([i for fold in sorted({*folds}) for i, one in enumerate(folds) if one == fold])
    return {size: np.concatenate([each[size] for each in found])[order] for size in sorted(sizes)}


def ladder(aucs: dict[int, Floats]) -> list[Rung]:
    """The figures of all sizes, smallest first, beside the best of them."""
    if not aucs:
        return []
    best = max(aucs, key=lambda size: (aucs[size].mean(), -size))
    rungs = []
    for size, each in sorted(aucs.items()):
        differences = aucs[best] - each
        error = float(differences.std(ddof=1) / np.sqrt(len(differences)))
        rungs.append(Rung(size, float(each.mean()), float(differences.mean()), error))
    return rungs


def chosen(rungs: Sequence[Rung]) -> int | None:
    """The smallest size that is nearly as good as the best one; None without sizes.

    Its mean AUC is lower by at most `DOUBT` standard errors and `WORTH` of what the best size lacks to 1.
    """
    for rung in rungs:
        if rung.worse <= DOUBT * rung.error + WORTH * (1 - rung.auc - rung.worse):
            return rung.size
    return None


def barred(positive: Sequence[Mask]) -> float:
    """A log-prior that no fitness makes good.

    The prior is shared among the positive states (`search.ranks.merit`), and a fitness is between -2 log 2 and 0.
    """
    return -1.5 * float(sum(map(np.sum, positive)))


def _aucs(inside: Sequence[int], positive: Sequence[Mask], rewards: Rewards) -> Floats:
    """For each of these episodes: its positive states against all others, or its others against all positive ones."""
    values = [rewards(i) for i in inside]
    high = np.concatenate([each[positive[i]] for i, each in zip(inside, values, strict=True)])
    low = np.concatenate([each[~positive[i]] for i, each in zip(inside, values, strict=True)])
    found = []
    for i, each in zip(inside, values, strict=True):
        own = positive[i].any()
        found.append(_auc(each[positive[i]] if own else high, low if own else each))
    return np.array(found)


def _auc(high: Floats, low: Floats) -> float:
    """The probability that a number of `high` is larger than one of `low`; ties count one half."""
    if not len(high) or not len(low):
        return 0.5
    ranks = rankdata(np.concatenate([high, low]))[: len(high)].sum()
    return float((ranks - len(high) * (len(high) + 1) / 2) / (len(high) * len(low)))
