"""Sections of the report about searches: a tree, and a pool with depths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from grace_irl.evaluate.evaluation import shown
from grace_irl.methods.account import Figures
from grace_irl.methods.method import Panel
from grace_irl.search.tried import ordered

if TYPE_CHECKING:
    from grace_irl.search.ranks import Scored


SHOWN = 100
"""Maximum number of best programs that the tree of `tree_panel` shows. The tree also shows their ancestors."""


def tree_panel(best: Scored | None, others: Sequence[Scored]) -> Panel:
    """The tree of a search. Each program stands below its first parent, with the program's operator and score.

    A large tree shows only the `SHOWN` best programs and their ancestors.
    """
    known = {each.program.id: each for each in others}
    parents = {
        name: parent if (parent := next(iter(each.program.parents), "")) in known else ""
        for name, each in known.items()
    }
    children: dict[str, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent, []).append(name)
    order: list[tuple[str, int]] = []  # programs with their depths, parents before children
    waiting = [(name, 0) for name in reversed(children.get("", []))]
    while waiting:
        name, depth = waiting.pop()
        order.append((name, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(name, []))]
    below, reached = dict.fromkeys(known, 0), dict[str, float]()
    for name, _ in reversed(order):  # children before parents
        parent, own = parents[name], known[name].evaluation
        scores = [*([own.score] if own.valid else []), *([reached[name]] if name in reached else [])]
        if parent:
            below[parent] += 1 + below[name]
            if scores:
                reached[parent] = max(*scores, reached.get(parent, -math.inf))
    shown = _with_ancestors(_best(others), parents)
    rows = []
    for name, depth in order:
        if name in shown:
            each, mark = known[name], " *" if best is not None and name == best.program.id else ""
            counted = str(below[name]), number(reached.get(name))
            rows.append((f"{'· ' * depth}{name}{mark}", each.program.operator, str(each.index), _score(each), *counted))
    text = (
        "A program stands below the one that its request began with. The best one has a star. The column "
        '"below" counts the programs that came from a program.'
    )
    if len(rows) < len(known):
        text += f" The best {SHOWN} of {len(known):,} programs are shown, with all programs above them."
    head = ("program", "made by", "candidate", "score", "below", "best below")
    return Panel("Tree", (text, Figures(head, tuple(rows))))


def _best(programs: Sequence[Scored]) -> list[str]:
    """Ids of the `SHOWN` best programs; ids of all programs if there are fewer."""
    order = sorted(programs, key=lambda each: each.evaluation.score if each.evaluation.valid else -math.inf)
    return [each.program.id for each in order[-SHOWN:]]


def _with_ancestors(names: Sequence[str], parents: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        while name and name not in found:
            found.add(name)
            name = parents[name]
    return found


def pool_panel(others: Sequence[Scored], size: int) -> Panel:
    """The best `size` programs with depths and parents, and below them the scores of all programs by depth."""
    depths = depths_of(others)
    best = ordered(filter(_counts, others))[:size]
    members = [
        (each.program.id, str(depths[each.program.id]), _score(each), ", ".join(each.program.parents) or "-")
        for each in best
    ]
    rows = [
        (str(depth), str(len(found)), number(max(found)), number(sum(found) / len(found)))
        for depth, found in scores_by_depth(others).items()
    ]
    text = (
        f"The best {size} programs, as many as the pool keeps. Depth of a program: 0 for a new one, else 1 more than "
        "its deepest parent."
    )
    return Panel(
        "Pool",
        (
            text,
            Figures(("program", "depth", "score", "parents"), tuple(members)),
            "All valid programs by depth.",
            Figures(("depth", "programs", "best score", "mean score"), tuple(rows)),
        ),
    )


def scores_by_depth(programs: Sequence[Scored]) -> dict[int, list[float]]:
    """The scores of the valid programs of each depth, by depth."""
    depths, scores = depths_of(programs), dict[int, list[float]]()
    for each in programs:
        if _counts(each):
            scores.setdefault(depths[each.program.id], []).append(each.evaluation.score)
    return dict(sorted(scores.items()))


def _counts(program: Scored) -> bool:
    """Whether a search keeps the score of a program, as in `grace_irl.search.tried.Tried`."""
    evaluation = program.evaluation
    return evaluation.valid and evaluation.complete and math.isfinite(evaluation.score)


def depths_of(programs: Sequence[Scored]) -> dict[str, int]:
    """The depths of programs by id.

    A program without parents has depth 0. The depth of any other program is 1 more than that of its deepest parent.

    Args:
        programs: the programs, parents before children.
    """
    depths: dict[str, int] = {}
    for each in programs:
        depths[each.program.id] = max((depths.get(parent, 0) + 1 for parent in each.program.parents), default=0)
    return depths


def _score(program: Scored) -> str:
    return number(program.evaluation.score) if program.evaluation.valid else program.evaluation.status


def number(value: float | None) -> str:
    """A number as text, as everywhere in reports and tables (`shown`); "-" for None."""
    return "-" if value is None else shown(value)
