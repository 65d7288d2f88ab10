"""Data of the report beside the store: states, stored rewards, and the learning curves of an expansion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grace_irl.config import Config
from grace_irl.demos import load
from grace_irl.demos.trajectory import Demonstrations, Metadata, Trajectory
from grace_irl.errors import GraceError
from grace_irl.propose.goals import last_words
from grace_irl.runs.expand.round import Round
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.store import Store
from grace_irl.toml import from_json

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
        demonstrations = given or load(config.data.demos, config.data.negatives, kind=config.data.kind)
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


CURVE = "curve.json"
"""Beside a policy: what `grace_irl.rl.curve.to_json` writes. Read here without what trains."""


@dataclass(frozen=True)
class CurvePoint:
    """One evaluation of a policy on the way.

    Attributes:
        steps: environment steps of training so far.
        mean: its true return.
        success: share of episodes that reached the goal, or None.
        paid: mean return of the recovered reward in training since the last look, or None.
    """

    steps: float
    mean: float
    success: float | None = None
    paid: float | None = None


@dataclass(frozen=True)
class TrainingCurve:
    """One training of a policy.

    Attributes:
        name: which.
        looks: at the policy, in order.
    """

    name: str
    looks: tuple[CurvePoint, ...]


def trainings(expansion: Path, rounds: Sequence[Round]) -> list[TrainingCurve]:
    """Every training of an expansion that has a curve, in order; also the one that is under way.

    Args:
        expansion: its folder.
        rounds: the complete ones, which say on which reward a policy was trained.
    """
    trained_on = {each.number: each.trained_on for each in rounds}
    found = []
    for place in sorted((expansion / "rounds").glob("[0-9]*"), key=_number):
        looks = read_curve(place / "training" / CURVE)
        if looks:
            found.append(TrainingCurve(f"round {place.name}{_reward(trained_on.get(_number(place), ''))}", looks))
    return found


def _reward(path: str) -> str:
    """The reward that a policy learnt from, by its file in the expansion, such as `rounds/1/shaping/reward.py`."""
    parts = Path(path).parts
    if len(parts) < 4:
        return ""
    return f", {'reshaped ' if parts[2] == 'shaping' else ''}reward of round {parts[1]}"


def read_curve(path: Path) -> tuple[CurvePoint, ...]:
    """The points of a curve; () if there is no whole one."""
    try:
        points = from_json(tuple[CurvePoint, ...], path.read_bytes())
    except (OSError, ValueError):
        return ()
    numbers = (number for point in points for number in (point.steps, point.mean, point.success, point.paid))
    return points if all(number is None or math.isfinite(number) for number in numbers) else ()


def _number(place: Path) -> int:
    return int(place.name) if place.name.isdigit() else -1
