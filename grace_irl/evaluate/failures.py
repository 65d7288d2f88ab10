"""The states on the wrong side, as feedback for the next program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.evaluate.columns import Columns
from grace_irl.evaluate.evaluation import Failure
from grace_irl.evaluate.ranking import ranking

MAX_FAILURES = 24
MAX_PER_TRAJECTORY = 3


def worst_states(
    values: NDArray[np.float64],
    rows: Columns,
    digests: Sequence[str],
    task_fitness: Mapping[str, float],
) -> tuple[Failure, ...]:
    """Expert states valued below, and negative states valued above, the threshold of the best accuracy.

    Worst tasks first (METHODS: Multi-task), in a task the farthest on the wrong side first; at most three
    states of a trajectory and 24 in all, so that a prompt sees different mistakes. Empty when the values are
    separated.

    Args:
        values: `(n,)` rewards, in the rows' order.
        digests: of the split's trajectories, in order.
        task_fitness: by task name; a task that is not listed comes last.
    """
    threshold = ranking(values, rows.positive).threshold
    # An expert's value must lie above the threshold, as in `ranking`; a negative's may lie on it.
    wrong = np.flatnonzero(np.where(rows.positive, values <= threshold, values > threshold))
    margin = np.abs(values[wrong] - threshold)
    of_task = np.array([task_fitness.get(name, 0.0) for name in rows.tasks])
    task = of_task[np.repeat(rows.task, rows.lengths)[wrong]] if len(rows.tasks) > 1 else np.zeros(len(wrong))
    taken: Counter[str] = Counter()
    failures: list[Failure] = []
    for row in wrong[np.lexsort((wrong, -margin, task))]:
        item, step = rows.place(int(row))
        if taken[digests[item]] < MAX_PER_TRAJECTORY:
            taken[digests[item]] += 1
            failures.append(Failure(digests[item], step, float(values[row]), bool(rows.positive[row])))
        if len(failures) == MAX_FAILURES:
            break
    return tuple(failures)
