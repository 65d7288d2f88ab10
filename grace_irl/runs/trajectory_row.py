"""A row of a run's database about one of its demonstrations."""

from __future__ import annotations

from dataclasses import dataclass

from grace_irl.demos.labels import Problem


@dataclass(frozen=True)
class TrajectoryRow:
    """What the store keeps of a trajectory."""

    digest: str
    role: str
    task: str
    split: str
    states: int
    positives: int
    source: str


def trajectory_rows(problem: Problem) -> list[TrajectoryRow]:
    """What the store keeps of a problem."""
    rows = []
    for item in problem:
        demonstration, trajectory = item.demonstration, item.trajectory
        states, positives = len(item.positive), int(item.positive.sum())
        role, task, split = demonstration.role, demonstration.task, demonstration.side
        rows.append(TrajectoryRow(trajectory.digest, role, task, split, states, positives, trajectory.source))
    return rows
