"""Goal states of expert trajectories, in a text file that the user can edit (docs/runs.md, "Goal states").

The file is TOML. Each line holds a trajectory's digest (a hash of its content) and a list with the 1-based indices of
its goal states. The list may be empty. A comment above the line identifies the trajectory.

    # datasets/expert.parquet: episode 0; task go to obj; 12 states
    3f2a9c0d11e8b745 = [11, 12]
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.demos.trajectory import Demonstration, Demonstrations
from grace_irl.errors import InputError
from grace_irl.text import shows
from grace_irl.toml import read_toml

Goals = Mapping[str, tuple[int, ...]]
"""Map from a trajectory's digest to the 1-based indices of its goal states."""

HEAD = """\
# Goal states of expert trajectories, for --label goal: the trajectory's digest and the numbers of the states that
# reach the goal. 1 is the first state; [] says that none does, and all its states are then negative.
"""
DIGEST = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class GoalRow:
    """One expert trajectory and its goal states.

    Attributes:
        digest: digest of the trajectory.
        source: origin of the trajectory.
        task: name of its task.
        states: number of its states.
        goals: 1-based indices of its goal states; () if it has none, None if they are not marked.
    """

    digest: str
    source: str
    task: str
    states: int
    goals: tuple[int, ...] | None


def goals_of(demonstration: Demonstration, goals: Goals | None = None) -> tuple[int, ...] | None:
    """1-based indices of an expert's goal states, from `goals` or else from the data; None if both lack them.

    Raises:
        InputError: an index outside the trajectory.
    """
    trajectory = demonstration.trajectory
    found = None if goals is None else goals.get(trajectory.digest)
    if found is None and demonstration.goals is not None:
        found = tuple(index + 1 for index in demonstration.goals)
    count = len(trajectory.states)
    outside = [index for index in found or () if not 1 <= index <= count]
    if outside:
        where = trajectory.source or "an expert trajectory"
        raise InputError(
            f"{where} ({trajectory.digest}): goal state {outside[0]} of {count} states; "
            f"expected numbers from 1 to {count}, or none"
        )
    return None if found is None else tuple(sorted(set(found)))


def with_goals(demonstrations: Demonstrations, goals: Goals) -> Demonstrations:
    """A copy of the set in which experts have the goal states of `goals`.

    An expert that is not in `goals` keeps its goal states. A sample also keeps `goals` for the rest of its set.

    Raises:
        InputError: an index outside its trajectory.
    """

    def marked(item: Demonstration) -> Demonstration:
        if item.role != "expert" or (found := goals_of(item, goals)) is None:
            return item
        return replace(item, goals=tuple(index - 1 for index in found))

    sampled = demonstrations.sampled and replace(demonstrations.sampled, goals=goals)
    return replace(demonstrations, items=tuple(map(marked, demonstrations)), sampled=sampled)


def goal_rows(demonstrations: Iterable[Demonstration], goals: Goals | None = None) -> list[GoalRow]:
    """One row for each expert trajectory, in order. Goal states come from `goals`, or else from the data.

    Raises:
        InputError: an index outside its trajectory.
    """
    return [
        GoalRow(
            digest=item.trajectory.digest,
            source=item.trajectory.source,
            task=item.task,
            states=len(item.trajectory.states),
            goals=goals_of(item, goals),
        )
        for item in demonstrations
        if item.role == "expert"
    ]


def load_goals(path: str | Path) -> dict[str, tuple[int, ...]]:
    """Read a file of goal states that `save_goals` or the user wrote.

    Raises:
        InputError: no such file, not TOML, or an entry other than a digest with a list of whole numbers from 1.
    """
    table = read_toml(path, "goal states: one line for each trajectory, such as 3f2a9c0d11e8b745 = [11, 12]")
    goals: dict[str, tuple[int, ...]] = {}
    for digest, indices in table.items():
        if not DIGEST.fullmatch(digest):
            raise InputError(f"{path}: {reprlib.repr(digest)}; expected a trajectory's digest, 16 digits from 0 to f")
        whole = isinstance(indices, list) and all(type(index) is int and index >= 1 for index in indices)
        if not whole:
            raise InputError(
                f"{path}: {digest} = {reprlib.repr(indices)}; expected a list of state numbers from 1 on, or [] for "
                "none"
            )
        goals[digest] = tuple(indices)
    return goals


def save_goals(path: str | Path, goals: Goals, demonstrations: Iterable[Demonstration]) -> None:
    """Write the goal states of expert trajectories to a file, atomically.

    The goal states come from `goals`, else from `demonstrations`. Equal trajectories share one line, and each of them
    has its own comment above this line. Trajectories without marked goal states are left out.

    Raises:
        InputError: an index outside its trajectory, or a file that cannot be written.
    """
    entries: dict[str, list[GoalRow]] = {}
    for row in goal_rows(demonstrations, goals):
        if row.goals is not None:
            entries.setdefault(row.digest, []).append(row)
    lines = [HEAD]
    for digest, rows in entries.items():
        lines += [f"# {_plain(row.source)}; task {_plain(row.task)}; {row.states} states" for row in rows]
        lines.append(f"{digest} = {list(rows[0].goals or ())}\n")
    write_atomically(Path(path), "\n".join(lines))


def _plain(text: str) -> str:
    """The text with a blank in place of each invisible character, for a TOML comment; "-" if nothing is left."""
    return "".join(char if shows(char) else " " for char in text).strip() or "-"
