"""The states of one split as columns: which are positive, what each weighs, and log pi beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.errors import InputError
from grace_irl.evaluate.log_pi import LogPi, align

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Columns:
    """States as rows, trajectories one after the other; n rows in all.

    Attributes:
        positive: `(n,)` True where the state belongs to S_e.
        weight: `(n,)` what the state weighs in the fitness: one over the number of positive (or negative)
            states of its task, times one over the number of tasks, so that `sum(weight * log-term)` is GRACE
            eq. 4.1, meaned over tasks.
        task: `(n,)` index into `tasks`.
        tasks: task names.
        log_pi: `(n,)` log pi(a | s), or None where it is 0 everywhere.
        item: `(n,)` index of the trajectory in the split.
        step: `(n,)` index of the state in its trajectory.
    """

    positive: NDArray[np.bool_]
    weight: Floats
    task: NDArray[np.int32]
    tasks: tuple[str, ...]
    log_pi: Floats | None
    item: NDArray[np.int32]
    step: NDArray[np.int32]

    @property
    def sign(self) -> NDArray[np.int8]:
        """`(n,)` +1 for positive, -1 for negative states: both log-terms are log sigmoid(sign * logit)."""
        return np.where(self.positive, np.int8(1), np.int8(-1))

    def rows(self, mask: NDArray[np.bool_]) -> Columns:
        """The rows where the mask holds, with the weights that they have in the whole."""
        log_pi = None if self.log_pi is None else self.log_pi[mask]
        parts = {name: getattr(self, name)[mask] for name in ("positive", "weight", "task", "item", "step")}
        return replace(self, log_pi=log_pi, **parts)

    def of_task(self, index: int) -> Columns | None:
        """The rows of one task, weighed as if it were the only one; None where it lacks one side."""
        part = self.rows(self.task == index)
        weight = weights(part.positive, np.zeros(len(part.positive), dtype=np.int32), 1)
        return None if weight is None else replace(part, weight=weight)


def weights(positive: NDArray[np.bool_], task: NDArray[np.int32], count: int) -> Floats | None:
    """Weights `(n,)` that make a sum the mean over tasks of mean positive plus mean negative terms.

    Tasks that lack one of the two sides weigh nothing. None where every task lacks one.
    """
    positives = np.bincount(task[positive], minlength=count)
    negatives = np.bincount(task[~positive], minlength=count)
    whole = (positives > 0) & (negatives > 0)
    if not whole.any():
        return None
    with np.errstate(divide="ignore"):
        share = np.stack([1.0 / negatives, 1.0 / positives]) / whole.sum()
    share[:, ~whole] = 0.0
    found: Floats = share[positive.astype(np.intp), task]
    return found


def columns(items: Sequence[Labelled], log_pi: LogPi, *, takes_action: bool) -> Columns | None:
    """Columns of a split for programs that reward states or, with `takes_action`, transitions.

    The first state of a trajectory has no transition reward, and no row then.
    None where the split has no task with both positive and negative states.
    """
    if not items:
        return None
    tasks = tuple(dict.fromkeys(item.task for item in items))
    number = {name: index for index, name in enumerate(tasks)}
    first = 1 if takes_action else 0
    lengths = np.array([len(item.positive) - first for item in items])
    positive = np.concatenate([item.positive[first:] for item in items])
    task = np.repeat(np.array([number[item.task] for item in items], dtype=np.int32), lengths)
    weight = weights(positive, task, len(tasks))
    if weight is None:
        return None
    pi = None
    if not log_pi.zero:
        pi = np.concatenate([align(log_pi.of(item.trajectory), takes_action=takes_action) for item in items])
    return Columns(
        positive=positive,
        weight=weight,
        task=task,
        tasks=tasks,
        log_pi=pi,
        item=np.repeat(np.arange(len(items), dtype=np.int32), lengths),
        step=np.concatenate([np.arange(first, first + n, dtype=np.int32) for n in lengths]),
    )


def flatten(items: Sequence[Labelled], rewards: Mapping[str, Floats], *, takes_action: bool) -> Floats:
    """Rewards `(n,)` of these trajectories, from digest to `(T+1,)`, in the rows' order of `columns`."""
    first = 1 if takes_action else 0
    return np.concatenate([rewards[item.trajectory.digest][first:] for item in items])


def require_both_sides(items: Sequence[Labelled]) -> None:
    """Checks that every task of the training data has positive and negative states.

    Raises:
        InputError: for a task that lacks one.
    """
    if not items:
        raise InputError("no training trajectories; expected expert and negative ones: give --demos")
    for task in dict.fromkeys(item.task for item in items):
        marks = [item.positive for item in items if item.task == task]
        positives, states = sum(int(m.sum()) for m in marks), sum(len(m) for m in marks)
        if positives == 0 or positives == states:
            found = f"{positives} positive and {states - positives} negative states"
            raise InputError(
                f"task {task!r}: {found} for training; expected some of each: "
                "add expert or negative trajectories of this task, or choose another --label"
            )
