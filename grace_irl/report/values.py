"""The rewards that a run stored, with what its labels say of each state; the states themselves are not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.propose.goal_answer import last_words
from grace_irl.runs.store import Store
from grace_irl.runs.trajectory_row import TrajectoryRow

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Valued:
    """A trajectory with what the run's program gave it.

    Attributes:
        row: what the run keeps of the trajectory.
        values: `(T+1,)` rewards; NaN at the first state for a program that rewards transitions.
        positive: `(T+1,)` which states the labels call positive.
    """

    row: TrajectoryRow
    values: Floats
    positive: Marks

    @property
    def known(self) -> Marks:
        """`(T+1,)` which states have a reward."""
        return ~np.isnan(self.values)


def valued(store: Store, program: str) -> list[Valued]:
    """Every trajectory of the run whose rewards by this program were stored, in order."""
    rows, rule = store.trajectories(), store.meta("label")
    goals = last_words(store.goals())
    rewards = store.get(program, (row.digest for row in rows))
    return [
        Valued(row, rewards[row.digest], _positive(row, rule, goals))
        for row in rows
        if row.digest in rewards and len(rewards[row.digest]) == row.states
    ]


def _positive(row: TrajectoryRow, rule: str, goals: Mapping[str, tuple[int, ...]]) -> Marks:
    """As `grace_irl.demos.labels` marks them."""
    marked = np.zeros(row.states, dtype=np.bool_)
    if row.role == "expert" and row.positives:
        if rule == "all":
            marked[:] = True
        elif rule == "last":
            marked[-1] = True
        else:
            marked[[index - 1 for index in goals.get(row.digest, ()) if index <= row.states]] = True
    return marked
