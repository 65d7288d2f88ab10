"""The ranking of expert above negative states by values: auc, accuracy, separated (docs/fitness.md, "Metrics")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHUNK = 65_536  # values at a time, so that a million need no large temporaries


@dataclass(frozen=True)
class Ranking:
    """Attributes as in `Metrics`; `threshold` is the one that `accuracy` is at."""

    auc: float
    accuracy: float
    separated: bool
    threshold: float


def ranking(values: Floats, positive: NDArray[np.bool_], threshold: float | None = None) -> Ranking:
    """All of them, for values `(n,)` with at least one positive and one negative state.

    Args:
        threshold: a state counts as an expert's if its value is above it. None: the best one for these states,
            halfway between the two values that it parts.
    """
    experts, negatives = np.sort(values[positive]), np.sort(values[~positive])
    if threshold is None:
        threshold = _best(experts, negatives)
    separated = bool(experts[0] > negatives[-1])
    accuracy = float(_balanced(experts, negatives, np.array([threshold]))[0])
    return Ranking(_auc(experts, negatives), accuracy, separated, threshold)


def _best(experts: Floats, negatives: Floats) -> float:
    """The threshold of the best balanced accuracy, from sorted values."""
    # Balanced accuracy of "expert iff value > t" changes only at a negative value (up) or an expert one
    # (down), so the best t is a negative value; the largest of them is never worse than one half.
    candidates = np.unique(negatives)
    best = int(_balanced(experts, negatives, candidates).argmax())
    below = float(candidates[best])
    higher = [float(candidates[best + 1])] if best + 1 < len(candidates) else []
    place = int(np.searchsorted(experts, below, side="right"))
    higher += [float(experts[place])] if place < len(experts) else []
    above = min(higher, default=below)
    halfway = below / 2 + above / 2  # the difference of two doubles may be none
    return halfway if below <= halfway < above else below


def _balanced(experts: Floats, negatives: Floats, thresholds: Floats) -> Floats:
    """Balanced accuracy at each threshold, from sorted values."""
    expert_right = 1.0 - np.searchsorted(experts, thresholds, side="right") / len(experts)
    negative_right = np.searchsorted(negatives, thresholds, side="right") / len(negatives)
    balanced: Floats = (expert_right + negative_right) / 2
    return balanced


def _auc(experts: Floats, negatives: Floats) -> float:
    """Mann-Whitney's U over the number of pairs, from sorted values: a tie counts half below and half above."""
    wins = 0
    for start in range(0, len(experts), CHUNK):
        part = experts[start : start + CHUNK]
        below = np.searchsorted(negatives, part, side="left").sum()
        wins += int(below) + int(np.searchsorted(negatives, part, side="right").sum())
    return wins / (2 * len(experts) * len(negatives))
