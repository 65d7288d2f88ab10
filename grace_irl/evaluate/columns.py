"""Labels, weights and log-probabilities of actions (log pi) of many trajectories, one row per state or transition."""

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
class LabelColumns:
    """Labels, weights and log pi of n rows. A row is a state or, for rewards of transitions, a transition.

    The rows are those of m trajectories, one trajectory after another. The trajectories belong to K tasks.

    Attributes:
        positive: `(n,)` True if the state is positive, in GRACE's set S_e of expert states.
        log_pi: `(n,)` log pi(a | s) minus `LogPi.mean`, or None if this is 0 everywhere.
        lengths: `(m,)` number of rows of each trajectory.
        first_step: time step of a trajectory's first row: 0 for states, 1 for transitions. The row of a transition has
            the step of its next state.
        task: `(m,)` index into `tasks`.
        tasks: K task names.
        share: `(3, K)` weight of one state in the fitness, for each task. `share[0]` is for negative states outside
            swaps, `share[1]` for positive states, and `share[2]` for states of swaps. A positive state weighs
            1 / (positive states of the task * number of tasks). Without swaps, negative states are weighted likewise.
            So the weighted sum of log D over positive states and log(1 - D) over negative states, for a discriminator
            D, is the mean over tasks of the fitness (GRACE, eq. 4.1). If a task has swaps and other negatives, all
            swaps together weigh half as much as all positive states together, and so do all other negatives. Tasks
            without positive or without negative states have weight 0, and do not count in the number of tasks.
        swapped: `(m,)` True for swaps (experts' trajectories with another expert's instruction); None without swaps.
    """

    positive: Marks
    log_pi: Floats | None
    lengths: NDArray[np.int64]
    first_step: int
    task: NDArray[np.int64]
    tasks: tuple[str, ...]
    share: Floats
    swapped: Marks | None = None

    def groups(self) -> Iterator[tuple[Marks, float, float]]:
        """Split the rows into groups with equal task and class. Omit groups that are empty or have weight 0.

        The classes are positive states, negative states, and states of swaps.

        Yields:
            Mask of the group's rows `(n,)`, sign (+1 positive, -1 negative) and weight of one row, for each group.
        """
        row_task = np.repeat(self.task, self.lengths) if len(self.tasks) > 1 else None
        negative, swaps = ~self.positive, None
        if self.swapped is not None:
            swaps = self.row_mask(self.swapped)
            negative &= ~swaps
        for number in range(len(self.tasks)):
            for side, sign, rows in ((1, 1.0, self.positive), (0, -1.0, negative), (2, -1.0, swaps)):
                if rows is None:
                    continue
                weight, mask = float(self.share[side, number]), rows
                if row_task is not None:
                    mask = mask & (row_task == number)
                if weight > 0 and mask.any():
                    yield mask, sign, weight

    def row_mask(self, items: Marks) -> Marks:
        """`(n,)` True for the rows of the trajectories that the mask `items` `(m,)` selects."""
        mask: Marks = np.repeat(items, self.lengths)
        return mask

    def of_items(self, items: Marks) -> LabelColumns:
        """The rows of the trajectories that the mask `items` `(m,)` selects, with unchanged weights."""
        mask = self.row_mask(items)
        log_pi = None if self.log_pi is None else self.log_pi[mask]
        positive, lengths, task = self.positive[mask], self.lengths[items], self.task[items]
        swapped = None if self.swapped is None else self.swapped[items]
        return replace(self, positive=positive, log_pi=log_pi, lengths=lengths, task=task, swapped=swapped)

    def of_task(self, number: int) -> LabelColumns | None:
        """The rows of one task, with weights as if the task were the only one.

        The result is None if the task lacks positive or negative states.
        """
        if self.share[1, number] == 0:
            return None
        whole = np.zeros_like(self.share)
        whole[:, number] = self.share[:, number] * np.count_nonzero(self.share[1])
        return replace(self.of_items(self.task == number), share=whole)

    def place(self, row: int) -> tuple[int, int]:
        """The trajectory (0 to m - 1) and the time step of a row."""
        ends = np.cumsum(self.lengths)
        item = int(np.searchsorted(ends, row, side="right"))
        return item, row - int(ends[item] - self.lengths[item]) + self.first_step


def shares(
    positives: NDArray[np.int64], negatives: NDArray[np.int64], swaps: NDArray[np.int64] | None = None
) -> Floats | None:
    """`(3, K)` weights of one negative state, one positive state and one state of a swap per task.

    They are `LabelColumns.share`. A task without positive or without negative states has weight 0. The result is None
    if every task has weight 0.

    Args:
        positives, negatives, swaps: `(K,)` number of states per task. `negatives` does not include `swaps`.
    """
    swaps = np.zeros_like(negatives) if swaps is None else swaps
    whole = (positives > 0) & (negatives + swaps > 0)
    if not whole.any():
        return None
    counts = np.stack([negatives, positives, swaps]).astype(np.float64)
    sides = np.count_nonzero([negatives, swaps], axis=0)
    classes = np.stack([sides, np.ones_like(sides), sides])
    share = np.zeros_like(counts)
    np.divide(1.0 / whole.sum(), counts * classes, out=share, where=(counts > 0) & whole)
    return share


def columns(items: Sequence[Labelled], log_pi: LogPi, *, takes_action: bool) -> LabelColumns | None:
    """The columns of labelled trajectories; None if no task has both positive and negative states.

    Rows are states or, with `takes_action`, transitions. A transition has the label of its next state. The first state
    of a trajectory ends no transition, so it has no row with `takes_action`.
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
    swapped = np.array([item.demonstration.swapped for item in items], dtype=np.bool_)
    negatives, swaps = (
        np.bincount(task, (lengths - marked) * some, len(tasks)).astype(np.int64) for some in (~swapped, swapped)
    )
    share = shares(positives, negatives, swaps)
    if share is None:
        return None
    pi = None
    if not log_pi.constant:
        pi = np.concatenate([align(log_pi.of(item.trajectory), takes_action=takes_action) for item in items])
        pi -= log_pi.mean
    return LabelColumns(
        positive=np.concatenate([item.positive[first:] for item in items]),
        log_pi=pi,
        lengths=lengths,
        first_step=first,
        task=task,
        tasks=tasks,
        share=share,
        swapped=swapped if swapped.any() else None,
    )


def flatten(items: Sequence[Labelled], rewards: Mapping[str, Floats], *, takes_action: bool) -> Floats:
    """Rewards `(n,)` in the row order of `columns`.

    Args:
        items: the labelled trajectories, as in the call of `columns`.
        rewards: map from a trajectory's digest to the trajectory's rewards `(T+1,)`.
        takes_action: whether rows are transitions.
    """
    first = 1 if takes_action else 0
    return np.concatenate([rewards[item.trajectory.digest][first:] for item in items])


def require_both_sides(items: Sequence[Labelled]) -> None:
    """Check that every task of the training data has positive and negative states.

    Raises:
        InputError: a task lacks positive or negative states, or there are no trajectories.
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
