"""Nested folds, which choose the size of programs.

A fold is a part of the training episodes. For each fold, a search on all other episodes finds programs, and the
episodes of the fold judge these programs. The programs differ from fold to fold, so folds choose only a size.
The final program is the best one of this size from a search on all training episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from grace_irl.evaluate.sizes import FEWEST, Floats, Mask, episode_aucs

Rewards = Callable[[int], Floats]
"""A function that returns the rewards `(T+1,)` along the episode with this index."""

MOST_FOLDS = 5


def assign(expert: Sequence[bool]) -> list[int] | None:
    """The fold of each episode; None if there are fewer than `FEWEST` experts or negatives.

    The experts are dealt to the folds in turn, and so are the negatives.
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
    """Compute the AUC of each episode, for each size of programs.

    The program that gives an episode its rewards comes from a search on the episodes of the other folds.

    Args:
        folds: the fold of each episode.
        positive: for each episode, whether each state is positive.
        search: function that searches on the episodes with given indices. It returns the rewards of the best program
            of each size.

    Returns:
        The AUC of each episode, `(E,)`, by size. Sizes that a fold lacks are left out.
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
    """A log-prior so low that no fitness can compensate for it.

    The prior is divided by the number of positive states (`search.ranks.merit`). A fitness is between -2 log 2 and 0.
    """
    return -1.5 * float(sum(map(np.sum, positive)))
