"""Metrics of rewards on one split: over all tasks, and per task."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

from grace_irl.evaluate.calibration import Calibration
from grace_irl.evaluate.columns import Columns
from grace_irl.evaluate.discriminator import fitness
from grace_irl.evaluate.ranking import Ranking, ranking
from grace_irl.evaluate.separation import Metrics

Floats = NDArray[np.float64]


def metrics_of(rows: Columns, fitness: float, ranked: Ranking) -> Metrics:
    """Metrics over all rows, for rewards whose fitness and ranking are known."""
    experts = int(rows.positive.sum())
    return Metrics(
        fitness=fitness,
        auc=ranked.auc,
        accuracy=ranked.accuracy,
        separated=ranked.separated,
        experts=experts,
        negatives=len(rows.positive) - experts,
    )


def task_metrics(
    values: Floats, rows: Columns, fitted: Calibration, threshold: float, whole: Metrics
) -> dict[str, Metrics]:
    """Metrics of each task that has both positive and negative states, under one calibration and threshold for all.

    Args:
        whole: the metrics over all tasks, which are those of a task that is alone.
    """
    if len(rows.tasks) == 1:
        return {rows.tasks[0]: whole}
    found = {}
    for number, name in enumerate(rows.tasks):
        part = rows.of_task(number)
        if part is not None:
            own = values[rows.row_mask(rows.task == number)]
            ranked = ranking(own, part.positive, threshold)
            found[name] = metrics_of(part, fitness(own, part, fitted.scale, fitted.offset), ranked)
    return found


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
