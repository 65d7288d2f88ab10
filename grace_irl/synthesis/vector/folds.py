"""Nested folds: each fold repeats a search without its episodes, and its episodes judge what the search found.

Programs that chose their terms on all episodes look equally good on any of them. So folds repeat the whole search, and
choose a size, not a program. The answer is the best program of this size, searched on all training episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grace_irl.evaluate.sizes import FEWEST, Floats, Mask, episode_aucs

Rewards = Callable[[int], Floats]
"""A function that returns the rewards `(T+1,)` along the episode with this index."""

MOST_FOLDS = 5


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
        own = [positive[i] for i in inside]
        found.append({size: episode_aucs([rewards(i) for i in inside], own) for size, rewards in programs.items()})
    sizes = set.intersection(*(set(each) for each in found))
    order = np.argsort([i for fold in sorted({*folds}) for i, one in enumerate(folds) if one == fold])
    return {size: np.concatenate([each[size] for each in found])[order] for size in sorted(sizes)}


def barred(positive: Sequence[Mask]) -> float:
    """A log-prior that no fitness makes good.

    The prior is shared among the positive states (`search.ranks.merit`), and a fitness is between -2 log 2 and 0.
    """
    return -1.5 * float(sum(map(np.sum, positive)))
