"""Goal states of expert trajectories, as `grace-irl demos inspect --goals` and `show` show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from grace_irl.demos.goals import GoalRow
from grace_irl.propose.goals import GoalAnswer

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
        table.add_row(row.source, row.task, str(row.states), row.digest, _said(row.goals))
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
    return Group(table, *lines, "")


def _said(goals: tuple[int, ...] | None) -> str:
    if goals is None:
        return "not marked"
    return ", ".join(map(str, goals)) or "none"


def goals_found(answers: Sequence[GoalAnswer]) -> dict[str, Any]:
    """Figures of a run's goal states; {} if it did not need them."""
    if not answers:
        return {}
    last = {answer.digest: answer for answer in answers if answer.indices is not None}
    return {
        "trajectories": len({answer.digest for answer in answers}),
        "known": len(last),
        "with_goals": sum(bool(answer.indices) for answer in last.values()),
        "states": sum(len(answer.indices or ()) for answer in last.values()),
        "by": dict(Counter(answer.origin for answer in last.values())),
        "calls": sum(answer.origin == "model" for answer in answers),
        "tokens": sum(answer.tokens_in + answer.tokens_out for answer in answers),
        "seconds": sum(answer.seconds for answer in answers),
    }


def goals_line(found: dict[str, Any], path: Path) -> str:
    """The same in one line."""
    by = ", ".join(f"{count} by {origin}" for origin, count in found["by"].items())
    text = (
        f"goal states: {found['states']} in {found['with_goals']} of {found['trajectories']} expert trajectories "
        f"({by or 'none answered yet'})"
    )
    if found["calls"]:
        text += f", {found['calls']} calls, {found['tokens']} tokens"
    return f"{text}; see {path}"
