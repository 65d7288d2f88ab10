"""Goal states of expert trajectories, as `grace-irl demos inspect --goals` shows them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grace_irl.demos.goals import GoalRow

SHOWN = 60
"""Trajectories in the table; `--json` has all of them."""


def goal_table(rows: Sequence[GoalRow], unknown: Sequence[str]) -> RenderableType:
    """A table of expert trajectories, with counts below it.

    Args:
        rows: one for each expert trajectory.
        unknown: digests in the file of which there is no expert trajectory.
    """
    table = Table(title="Goal states of experts", title_justify="left")
    table.add_column("trajectory", overflow="fold")
    table.add_column("task", overflow="fold")
    table.add_column("states", justify="right")
    table.add_column("digest", no_wrap=True)
    table.add_column("goal states", overflow="fold")
    for row in rows[:SHOWN]:
        table.add_row(Text(row.source), Text(row.task), str(row.states), row.digest, _said(row.goals))
    with_goals = sum(bool(row.goals) for row in rows)
    silent = sum(row.goals is None for row in rows)
    lines = [
        f"{len(rows)} expert trajectories: {with_goals} with goal states, "
        f"{len(rows) - with_goals - silent} with none, {silent} not marked"
    ]
    if len(rows) > SHOWN:
        lines.append(f"{len(rows) - SHOWN} more are not shown; --json has all of them")
    if unknown:
        others = ", ".join(unknown[:3]) + (", …" if len(unknown) > 3 else "")
        lines.append(f"{len(unknown)} entries of the file are of no expert trajectory here: {others}")
    return Group(table, *(Text(line) for line in lines), Text(""))


def _said(goals: tuple[int, ...] | None) -> str:
    if goals is None:
        return "not marked"
    return ", ".join(map(str, goals)) or "none"
