"""A reward judged by episode: whether experts are paid at their goal, and who is paid elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def verdict(experts: Rewards, negatives: Mapping[str, Rewards], threshold: float) -> Verdict:
    """Judges rewards of held-out episodes, the negative ones by kind; `threshold` is the program's own."""
    values = np.concatenate([*experts, *(one for kind in negatives.values() for one in kind)])
    positive = np.zeros(len(values), np.bool_)
    positive[np.cumsum([len(one) for one in experts]) - 1] = True
    paid = values > threshold
    return Verdict(
        accuracy=float((paid[positive].mean() + (~paid[~positive]).mean()) / 2),
        hit=float(np.mean([one[-1] > threshold for one in experts])),
        early=float(np.mean([(one[:-1] > threshold).any() for one in experts])),
        false={kind: float(np.mean([(one > threshold).any() for one in some])) for kind, some in negatives.items()},
    )
