"""Scores of a few runs summed up honestly: mean, deviation, interquartile mean, with bootstrap intervals.

As Agarwal et al. 2021 ("Deep Reinforcement Learning at the Edge of the Statistical Precipice") advise for the few seeds
that one can afford, and as their library `rliable` computes them.
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

UNKNOWN: Interval = (float("nan"), float("nan"))
"""The interval of a single run: one number says nothing of its spread."""


@dataclass(frozen=True)
class Summary:
    """Scores of several runs.

    Attributes:
        runs: how many, over all tasks.
        mean: of all scores.
        deviation: standard deviation between runs (n - 1), within tasks where there are several; NaN for one run.
        iqm: interquartile mean: of the middle half of all scores.
        mean_interval: confidence interval of the mean.
        iqm_interval: confidence interval of the interquartile mean.
    """

    runs: int
    mean: float
    deviation: float
    iqm: float
    mean_interval: Interval
    iqm_interval: Interval


def summarise(
    tasks: Sequence[Sequence[float] | Floats], *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Summary:
    """Sums up the scores of one method.

    Args:
        tasks: for each task, the score of each run (seed). Tasks must be on one scale to be summed up together.
        confidence: of the intervals.
        resamples: of the bootstrap. Runs are drawn again within their task, and the percentiles of what they give are
            the interval (stratified percentile bootstrap).
        seed: of the draws.

    Raises:
        InputError: no scores, a task without any, or scores that are not finite.
    """
    columns = [np.asarray(task, np.float64) for task in tasks]
    if not columns or any(column.ndim != 1 or not len(column) for column in columns):
        raise InputError(f"{len(columns)} tasks, or one without runs; expected at least one score for each")
    scores = np.concatenate(columns)
    if not np.isfinite(scores).all():
        raise InputError("scores that are not finite; expected a number for each run")
    return Summary(
        runs=len(scores),
        mean=float(scores.mean()),
        deviation=_deviation(columns),
        iqm=float(interquartile_mean(scores)),
        mean_interval=_interval(columns, np.mean, confidence, resamples, seed),
        iqm_interval=_interval(columns, interquartile_mean, confidence, resamples, seed),
    )


def interquartile_mean(scores: Floats, axis: int = -1) -> Any:
    """Mean of what is left when a quarter of the scores is cut from each end; of 5 scores, one from each end."""
    return stats.trim_mean(scores, 0.25, axis=axis)


def _deviation(columns: list[Floats]) -> float:
    """Standard deviation within tasks, pooled."""
    freedom = sum(len(column) - 1 for column in columns)
    if not freedom:
        return float("nan")
    return float(np.sqrt(sum(((column - column.mean()) ** 2).sum() for column in columns) / freedom))


def _interval(columns: list[Floats], statistic: Any, confidence: float, resamples: int, seed: int) -> Interval:
    if any(len(column) < 2 for column in columns):
        return UNKNOWN
    if all(np.ptp(column) == 0 for column in columns):
        only = float(statistic(np.concatenate(columns)))
        return only, only

    def joined(*samples: Floats, axis: int) -> Any:
        return statistic(np.concatenate(samples, axis=axis), axis=axis)

    found = stats.bootstrap(
        tuple(columns),
        joined,
        n_resamples=resamples,
        confidence_level=confidence,
        method="percentile",
        vectorized=True,
        paired=False,
        batch=1_000,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)
