"""Metrics of rewards on one split: over all tasks, and per task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grace_irl.evaluate.calibration import Calibration
from grace_irl.evaluate.columns import Columns
from grace_irl.evaluate.discriminator import fitness
from grace_irl.evaluate.evaluation import Metrics
from grace_irl.evaluate.ranking import ranking

Floats = NDArray[np.float64]


def metrics_of(values: Floats, rows: Columns, fitness: float) -> Metrics:
    """Metrics over all rows, for rewards `(n,)` whose fitness is known."""
    ranked = ranking(values, rows.positive)
    experts = int(rows.positive.sum())
    return Metrics(
        fitness=fitness,
        auc=ranked.auc,
        accuracy=ranked.accuracy,
        separated=ranked.separated,
        experts=experts,
        negatives=len(values) - experts,
    )


def task_metrics(values: Floats, rows: Columns, fitted: Calibration, whole: Metrics) -> dict[str, Metrics]:
    """Metrics of each task that has both positive and negative states, under one calibration for all.

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
            found[name] = metrics_of(own, part, fitness(own, part, fitted.scale, fitted.offset))
    return found
