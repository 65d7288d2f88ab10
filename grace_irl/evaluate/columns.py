"""The states of one split as columns: which are positive, what each weighs, and log pi beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.errors import InputError
from grace_irl.evaluate.log_pi import LogPi, align

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Columns:
    """States as rows, trajectories one after the other; n rows of m trajectories, K tasks.

    Attributes:
        positive: `(n,)` True if the state belongs to S_e.
        log_pi: `(n,)` log pi(a | s), or None if it is 0 everywhere.
        lengths: `(m,)` rows of each trajectory.
        first_step: the step of a trajectory's first row: 1 if rows are transitions, else 0.
        task: `(m,)` index into `tasks`.
        tasks: K task names.
        share: `(2, K)` what a negative (row 0) and a positive (row 1) state of each task weighs in the
            fitness: one over their number in the task, and one over the number of tasks. So the sum of weight
            times log-term is GRACE eq. 4.1, meaned over tasks.
    """

    positive: Marks
    log_pi: Floats | None
    lengths: NDArray[np.int64]
    first_step: int
    task: NDArray[np.int64]
    tasks: tuple[str, ...]
    share: Floats

    def groups(self) -> Iterator[tuple[Marks, float, float]]:
        """Rows that weigh the same: mask `(n,)`, sign (+1 positive, -1 negative), weight of each row; none empty."""
        row_task = np.repeat(self.task, self.lengths) if len(self.tasks) > 1 else None
        for number in range(len(self.tasks)):
            for side, sign in ((1, 1.0), (0, -1.0)):
                weight = float(self.share[side, number])
                mask = self.positive if side else ~self.positive
                if row_task is not None:
                    mask = mask & (row_task == number)
                if weight > 0 and mask.any():
                    yield mask, sign, weight

    def row_mask(self, items: Marks) -> Marks:
        """`(n,)` True for the rows of these trajectories, a mask `(m,)`."""
        mask: Marks = np.repeat(items, self.lengths)
        return mask

    def of_items(self, items: Marks) -> Columns:
        """The rows of some trajectories, a mask `(m,)`, with the weights that they have in the whole."""
        mask = self.row_mask(items)
        log_pi = None if self.log_pi is None else self.log_pi[mask]
        positive, lengths, task = self.positive[mask], self.lengths[items], self.task[items]
        return replace(self, positive=positive, log_pi=log_pi, lengths=lengths, task=task)

    def of_task(self, number: int) -> Columns | None:
        """The rows of one task, weighed as if it were the only one; None if it lacks one side."""
        if self.share[0, number] == 0:
            return None
        whole = np.zeros_like(self.share)
        whole[:, number] = self.share[:, number] * np.count_nonzero(self.share[0])
        return replace(self.of_items(self.task == number), share=whole)

    def place(self, row: int) -> tuple[int, int]:
        """The trajectory (index into the m) and the step of a row."""
        ends = np.cumsum(self.lengths)
        item = int(np.searchsorted(ends, row, side="right"))
        return item, row - int(ends[item] - self.lengths[item]) + self.first_step


def shares(positives: NDArray[np.int64], negatives: NDArray[np.int64]) -> Floats | None:
    """`(2, K)` weights of a negative and a positive state of each task, from their numbers `(K,)`.

    Tasks that lack one of the two sides weigh nothing. None if every task lacks one.
    """
    whole = (positives > 0) & (negatives > 0)
    if not whole.any():
        return None
    counts = np.stack([negatives, positives]).astype(np.float64)
    share = np.zeros_like(counts)
    share[:, whole] = 1.0 / counts[:, whole] / whole.sum()
    return share


def columns(items: Sequence[Labelled], log_pi: LogPi, *, takes_action: bool) -> Columns | None:
    """Columns of a split for programs that reward states or, with `takes_action`, transitions.

    The first state of a trajectory has no transition reward, and no row then. None if the split has no
    task with both positive and negative states.
    """
    if not items:
        return None
    tasks = tuple(dict.fromkeys(item.task for item in items))
    number = {name: index for index, name in enumerate(tasks)}
    first = 1 if takes_action else 0
    lengths = np.array([len(item.positive) - first for item in items], dtype=np.int64)
    task = np.array([number[item.task] for item in items], dtype=np.int64)
    marked = np.array([int(item.positive[first:].sum()) for item in items], dtype=np.int64)
    positives = np.bincount(task, marked, len(tasks)).astype(np.int64)
    negatives = np.bincount(task, lengths - marked, len(tasks)).astype(np.int64)
    share = shares(positives, negatives)
    if share is None:
        return None
    pi = None
    if not log_pi.zero:
        pi = np.concatenate([align(log_pi.of(item.trajectory), takes_action=takes_action) for item in items])
    return Columns(
        positive=np.concatenate([item.positive[first:] for item in items]),
        log_pi=pi,
        lengths=lengths,
        first_step=first,
        task=task,
        tasks=tasks,
        share=share,
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
            others = [name for name in dict.fromkeys(item.task for item in items) if name != task]
            told = f" (the other trajectories are of {', '.join(map(repr, others[:3]))})" if others else ""
            raise InputError(
                f"task {task!r}: {found} for training{told}; expected some of each: add expert or negative "
                "trajectories of this task, give all one task (demos convert --task), or choose another --label"
            )
