"""Monotonicity: the steadiness of a reward's rise along expert trajectories (METHODS: Reshape)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau


def monotonicity(rewards: Iterable[NDArray[np.float64]]) -> float | None:
    """Mean over trajectories of Kendall's tau-b of reward against time; None where none has two states.

    Args:
        rewards: one `(T+1,)` array per expert trajectory; a leading NaN (transition rewards) is left out.

    A constant reward counts as 0: it rises as often as it falls.
    """
    taus = []
    for values in rewards:
        known = values[1:] if len(values) and np.isnan(values[0]) else values
        if len(known) < 2:
            continue
        constant = bool((known == known[0]).all())
        taus.append(0.0 if constant else float(kendalltau(known, np.arange(len(known))).statistic))
    return float(np.mean(taus)) if taus else None
