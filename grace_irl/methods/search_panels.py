"""Sections of the report about searches: a tree, and scores by depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grace_irl.methods.account import Figures
from grace_irl.methods.method import Panel

if TYPE_CHECKING:
    from grace_irl.search.ranks import Scored


def tree_panel(best: Scored | None, others: Sequence[Scored]) -> Panel:
    """The tree of a search: each program below the one that it was made from, with its operator and score."""
    children: dict[str, list[Scored]] = {}
    known = {each.program.id for each in others}
    for each in others:
        parent = each.program.parents[0] if each.program.parents else ""
        children.setdefault(parent if parent in known else "", []).append(each)
    rows: list[tuple[str, ...]] = []

    def add(parent: str, depth: int) -> None:
        for each in children.get(parent, []):
            mark = " *" if best is not None and each.program.id == best.program.id else ""
            rows.append(
                (f"{'· ' * depth}{each.program.id}{mark}", each.program.operator, str(each.index), _score(each))
            )
            add(each.program.id, depth + 1)

    add("", 0)
    text = "A program stands below the one that its request began with. The best one has a star."
    return Panel("Tree", (text, Figures(("program", "made by", "candidate", "score"), tuple(rows))))


def depth_panel(others: Sequence[Scored]) -> Panel:
    """The scores of programs by depth: 0 for a new program, else 1 more than the deepest parent."""
    depths: dict[str, int] = {}
    scores: dict[int, list[float]] = {}
    for each in others:
        depths[each.program.id] = max((depths.get(parent, 0) + 1 for parent in each.program.parents), default=0)
        if each.evaluation.valid:
            scores.setdefault(depths[each.program.id], []).append(each.evaluation.score)
    rows = [
        (str(depth), str(len(found)), number(max(found)), number(sum(found) / len(found)))
        for depth, found in sorted(scores.items())
    ]
    text = "Depth of a program: 0 for a new one, else 1 more than its deepest parent."
    return Panel("Depth", (text, Figures(("depth", "programs", "best score", "mean score"), tuple(rows))))


def _score(program: Scored) -> str:
    return number(program.evaluation.score) if program.evaluation.valid else program.evaluation.status


def number(value: float | None) -> str:
    """A number with three significant digits, so that small components do not become 0."""
    return "-" if value is None else f"{value:.3g}"
