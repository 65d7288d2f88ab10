"""Statistics of ranks, as in `scipy.stats`, whose import takes longer than a small run's whole search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LONGEST = 200
"""Maximum number n of values whose n² pairs are compared at once. For more values, SciPy's n log n is faster."""


def average_ranks(values: Floats) -> Floats:
    """Ranks from 1, `(n,)`. Equal values share the average of their ranks (`scipy.stats.rankdata`)."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place.reshape(-1)], np.float64)


def tau_against_time(values: Floats) -> float:
    """Kendall's tau-b of `(n,)` finite values, at least two, against their indices; 0 if all values are equal.

    It equals `scipy.stats.kendalltau(values, range(n)).statistic` to the last digit.
    """
    count = len(values)
    if (values == values[0]).all():
        return 0.0
    if count > LONGEST:
        from scipy.stats import kendalltau

        return float(kendalltau(values, np.arange(count)).statistic)
    above = values[None, :] > values[:, None]  # [i, j]: value j is above value i
    rising, falling = int(np.triu(above).sum()), int(np.tril(above).sum())
    tau = (rising - falling) / np.sqrt(rising + falling) / np.sqrt(count * (count - 1) // 2)
    return float(min(1.0, max(-1.0, tau)))
