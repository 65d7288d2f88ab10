"""Summaries of a few runs: mean, deviation and an interval that holds at small n.

The interval of the mean is Student's t. The percentile bootstrap that is usual for many runs (Agarwal et al. 2021,
`rliable`) is too narrow for a handful of them; `benchmarks/interval_coverage.py` prints how often each one holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from grace_irl.errors import InputError

Floats = NDArray[np.float64]
Interval = tuple[float, float]

CONFIDENCE = 0.95
TRIM = 0.25
"""Share of the runs that the interquartile mean cuts from each end."""
IQM_RUNS = 4
"""Runs below which `TRIM` cuts nothing, so that the interquartile mean is the mean."""
UNKNOWN: Interval = (float("nan"), float("nan"))
"""The interval of a single run, or of equal ones: they say nothing of how far another run may be."""
ANYWHERE: Interval = (-float("inf"), float("inf"))


@dataclass(frozen=True)
class Summary:
    """Scores of several runs (seeds) of one method.

    Attributes:
        runs: number of runs.
        mean: of their scores.
        deviation: standard deviation between runs (n - 1); NaN for one run.
        interval: Student t interval of the mean over runs; `UNKNOWN` for one run and for equal ones.
        iqm: interquartile mean; None for fewer than `IQM_RUNS` runs, of which it is the mean.
    """

    runs: int
    mean: float
    deviation: float
    interval: Interval
    iqm: float | None


def summarise(
    scores: Sequence[float] | Floats, *, confidence: float = CONFIDENCE, within: Interval = ANYWHERE
) -> Summary:
    """Sums up the scores of one method, or the differences between two methods, seed by seed.

    Args:
        scores: one for each run.
        confidence: of the interval.
        within: least and largest mean that there can be, such as 0 and 1 for success rates; the interval ends there.

    Raises:
        InputError: no scores, or scores that are not finite.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not len(values):
        raise InputError(f"scores of shape {values.shape}; expected at least one, a number for each run")
    if not np.isfinite(values).all():
        raise InputError("scores that are not finite; expected a number for each run")
    few = len(values) < 2
    return Summary(
        runs=len(values),
        mean=float(values.mean()),
        deviation=float("nan") if few else float(values.std(ddof=1)),
        interval=UNKNOWN if few or np.ptp(values) == 0 else _student(values, confidence, within),
        iqm=float(interquartile_mean(values)) if len(values) >= IQM_RUNS else None,
    )


def interquartile_mean(scores: Floats, axis: int = -1) -> Any:
    """Mean of what is left when a quarter of the scores is cut from each end; of 5 scores, one from each end."""
    return stats.trim_mean(scores, TRIM, axis=axis)


def _student(values: Floats, confidence: float, within: Interval) -> Interval:
    error = float(stats.sem(values))
    if error == 0:  # of scores whose differences no float can hold
        return UNKNOWN
    low, high = stats.t.interval(confidence, len(values) - 1, loc=values.mean(), scale=error)
    least, largest = within
    return max(float(low), least), min(float(high), largest)
