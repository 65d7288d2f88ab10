"""Data of the report: states of the demonstrations, stored rewards, and learning curves of an expansion.

An expansion consists of rounds. Round 0 is a search. Each later round trains a policy on the reward, adds the policy's
rollouts to the negatives and, if necessary, searches again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grace_irl.config import Config, DataConfig
from grace_irl.demos import load
from grace_irl.demos.components import in_order
from grace_irl.demos.trajectory import Demonstrations, Metadata, Trajectory
from grace_irl.errors import GraceError
from grace_irl.propose.goals import last_words
from grace_irl.runs.data import load_data, open_data
from grace_irl.runs.expand.round import Round
from grace_irl.runs.record import TrajectoryRow
from grace_irl.runs.store import Store
from grace_irl.runs.swaps import swaps_among
from grace_irl.toml import from_json

NOT_OWN = (
    "this user did not make the run on this machine, and files that somebody else's run names are not opened: "
    "name them with grace-irl report RUN --demos PATH…"
)


@dataclass(frozen=True, eq=False)
class Data:
    """The readable demonstrations of a run.

    Attributes:
        metadata: metadata of the demonstrations; None if nothing could be read.
        trajectories: trajectories of the run that were found, by digest.
        trouble: one line with the reason why trajectories are missing; "" if all were found.
    """

    metadata: Metadata | None = None
    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    trouble: str = ""


Shown = Demonstrations | Callable[[DataConfig], Demonstrations]
"""Demonstrations that a report shows, or a function that gets the run's data settings and returns them."""


def read(
    config: Config,
    rows: Sequence[TrajectoryRow],
    *,
    fields: Sequence[str] = (),
    own: bool = True,
    given: Shown | None = None,
    played: Sequence[Path] = (),
) -> Data:
    """Read the demonstrations of a run again. Unreadable data raise no exception. A run with a task may have none.

    Args:
        config: configuration of the run, which names the files.
        rows: descriptions of the run's trajectories from its database. Other trajectories in the files are ignored.
        fields: names of the components of vectors in the order of the run; () if they have no names.
        own: whether this user made the run on this machine. If not, files that the run names are not opened.
        given: demonstrations to use in place of the files.
        played: files with the rollouts of an expansion. They are read if trajectories are missing in `given`.

    Raises:
        InputError: the function `given` raises this error, or the vectors that it returns have other components.
    """
    wanted = {row.digest for row in rows}
    if given is not None and not isinstance(given, Demonstrations):
        given = in_order(given(config.data), fields, "--demos")
    if given is None and not rows:
        return Data()
    if given is None and not own:
        return Data(trouble=NOT_OWN)
    if given is None and not config.data.files:
        return Data(trouble="the run was given its demonstrations by a program, and names no file of them")
    try:
        if given is None:
            given = open_data(config.data).only(wanted) if config.data.sample else load_data(config.data)
    except (GraceError, OSError) as error:
        return Data(trouble=f"the demonstrations cannot be read any more ({error})")
    found = {each.trajectory.digest: each.trajectory for each in given if each.trajectory.digest in wanted}
    found |= swaps_among(given, {row.digest for row in rows if row.swap} - set(found))
    damaged = ""
    for path in played:
        if len(found) < len(wanted):
            try:
                found |= {each.trajectory.digest: each.trajectory for each in load([], [path])}
            except (GraceError, OSError) as error:
                damaged = f" ({error})"
    found = {digest: each for digest, each in found.items() if digest in wanted}
    missing = len(wanted) - len(found)
    trouble = (
        f"{missing} of {len(wanted)} different trajectories are no longer in the demonstrations{damaged}"
        if missing
        else ""
    )
    return Data(given.metadata, found, trouble)


Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Valued:
    """A trajectory with its rewards and labels.

    Attributes:
        row: description of the trajectory in the run's database.
        values: `(T+1,)` rewards of a program. The first is NaN for rewards of transitions.
        positive: `(T+1,)` True for positive states.
    """

    row: TrajectoryRow
    values: Floats
    positive: Marks

    @property
    def known(self) -> Marks:
        """`(T+1,)` True for states with a reward."""
        return ~np.isnan(self.values)


def valued(store: Store, program: str) -> list[Valued]:
    """All trajectories of the run with stored rewards of this program, in the order of the database."""
    rows, rule = store.trajectories(), store.meta("label")
    goals = last_words(store.goals())
    rewards = store.get(program, (row.digest for row in rows))
    return [
        Valued(row, rewards[row.digest], _positive(row, rule, goals))
        for row in rows
        if row.digest in rewards and len(rewards[row.digest]) == row.states
    ]


def _positive(row: TrajectoryRow, rule: str, goals: Mapping[str, tuple[int, ...]]) -> Marks:
    """The labels `(T+1,)` of a trajectory, equal to those of `grace_irl.demos.labels`.

    Args:
        row: description of the trajectory.
        rule: rule that selects the positive expert states: "all", "last" or "goal".
        goals: numbers of the goal states, from 1, by digest of the trajectory.
    """
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
"""Name of the file with the learning curve of a policy, as written by `grace_irl.rl.curve.to_json`. This module parses
the file itself, so that a report needs no training code."""


@dataclass(frozen=True)
class CurvePoint:
    """One evaluation of a policy during training.

    Attributes:
        steps: number of environment steps of training so far.
        mean: mean true return.
        success: share of episodes that reached the goal; None if the environment has no goal.
        paid: mean return of the training episodes since the previous evaluation, under the recovered reward; None if
            no episode ended.
    """

    steps: float
    mean: float
    success: float | None = None
    paid: float | None = None


@dataclass(frozen=True)
class TrainingCurve:
    """The learning curve of one training of a policy.

    Attributes:
        name: name of the training.
        looks: evaluations of the policy, in order.
    """

    name: str
    looks: tuple[CurvePoint, ...]


def trainings(expansion: Path, rounds: Sequence[Round]) -> list[TrainingCurve]:
    """The learning curves of an expansion's trainings, in order. A training that still runs is included.

    Args:
        expansion: folder of the expansion.
        rounds: complete rounds, each with the file of the reward for its training.
    """
    trained_on = {each.number: each.trained_on for each in rounds}
    found = []
    for place in sorted((expansion / "rounds").glob("[0-9]*"), key=_number):
        looks = read_curve(place / "training" / CURVE)
        if looks:
            found.append(TrainingCurve(f"round {place.name}{_reward(trained_on.get(_number(place), ''))}", looks))
    return found


def _reward(path: str) -> str:
    """A short description of the reward of a training, from a path such as `rounds/1/shaping/reward.py`."""
    parts = Path(path).parts
    if len(parts) < 4:
        return ""
    return f", {'reshaped ' if parts[2] == 'shaping' else ''}reward of round {parts[1]}"


def read_curve(path: Path) -> tuple[CurvePoint, ...]:
    """The points of a curve file; () if the file is missing, incomplete or damaged."""
    try:
        points = from_json(tuple[CurvePoint, ...], path.read_bytes())
    except (OSError, ValueError):
        return ()
    numbers = (number for point in points for number in (point.steps, point.mean, point.success, point.paid))
    return points if all(number is None or math.isfinite(number) for number in numbers) else ()


def _number(place: Path) -> int:
    return int(place.name) if place.name.isdigit() else -1
