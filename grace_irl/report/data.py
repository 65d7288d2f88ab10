"""The states of a run's trajectories, read from its demonstrations, and the stored rewards beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations, Metadata, Trajectory
from grace_irl.errors import GraceError
from grace_irl.propose.goals import last_words
from grace_irl.runs.config import Config
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.store import Store

NOT_OWN = (
    "this user did not make the run on this machine, and files that somebody else's run names are not opened: "
    "name them with grace-irl report RUN --demos PATH…"
)


@dataclass(frozen=True, eq=False)
class Data:
    """Demonstrations as far as they could be read again.

    Attributes:
        metadata: of the set; None if nothing could be read.
        trajectories: by digest; those of the run that were found.
        trouble: reason why some or all are missing, in one line; "" if none is.
    """

    metadata: Metadata | None = None
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    trouble: str = ""


def read(
    config: Config, rows: Sequence[TrajectoryRow], *, own: bool = True, given: Demonstrations | None = None
) -> Data:
    """The demonstrations that a configuration names, as far as they are still the run's; data never make it raise.

    Args:
        config: of the run.
        rows: what the run is about.
        own: this user made the run on this machine; of anybody else's run no file is opened that it names.
        given: demonstrations in place of those that it names.
    """
    if given is None and not own:
        return Data(trouble=NOT_OWN)
    if given is None and not config.data.demos:
        return Data(trouble="the run was given its demonstrations by a program, and names no file of them")
    try:
        demonstrations = given or load(config.data.demos, config.data.negatives)
    except (GraceError, OSError) as error:
        return Data(trouble=f"the demonstrations cannot be read any more ({error})")
    wanted = {row.digest for row in rows}
    found = {each.trajectory.digest: each.trajectory for each in demonstrations if each.trajectory.digest in wanted}
    missing = len(wanted) - len(found)
    trouble = (
        f"{missing} of {len(wanted)} different trajectories are no longer in the demonstrations" if missing else ""
    )
    return Data(demonstrations.metadata, found, trouble)


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
