"""A reward judged by episode: whether experts are paid at their goal, and who is paid elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.evaluate.ranking import ranking

Rewards = Sequence[NDArray[np.float64]]
"""Of each state, by episode."""


@dataclass(frozen=True)
class Verdict:
    """A reward on held-out episodes; a state is paid where its reward is above the threshold.

    Attributes:
        accuracy: by state, balanced: experts' last states against all other states.
        hit: share of expert episodes whose last state is paid.
        early: share of expert episodes in which a state before the last is paid.
        false: share of negative episodes in which any state is paid, by kind.
    """

    accuracy: float
    hit: float
    early: float
    false: dict[str, float]


def best_threshold(experts: Rewards, negatives: Rewards) -> float:
    """The threshold of best balanced accuracy, where experts' last states are the positive ones."""
    values, positive = _states(experts, negatives)
    return ranking(values, positive).threshold


def verdict(experts: Rewards, negatives: Mapping[str, Rewards], threshold: float) -> Verdict:
    """Judges rewards of held-out episodes, the negative ones by kind."""
    values, positive = _states(experts, [one for kind in negatives.values() for one in kind])
    paid = values > threshold
    return Verdict(
        accuracy=float((paid[positive].mean() + (~paid[~positive]).mean()) / 2),
        hit=float(np.mean([one[-1] > threshold for one in experts])),
        early=float(np.mean([(one[:-1] > threshold).any() for one in experts])),
        false={kind: float(np.mean([(one > threshold).any() for one in some])) for kind, some in negatives.items()},
    )


def _states(experts: Rewards, negatives: Rewards) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """All rewards, and which are of experts' last states."""
    values = np.concatenate([*experts, *negatives])
    positive = np.zeros(len(values), np.bool_)
    positive[np.cumsum([len(one) for one in experts]) - 1] = True
    return values, positive
