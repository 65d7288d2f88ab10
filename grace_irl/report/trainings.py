"""The learning curves of an expansion: one for each training of a round that left one."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CURVE = "curve.json"
"""Beside a policy: what `grace_irl.rl.curve.to_json` writes. Read here without what trains."""


@dataclass(frozen=True)
class Look:
    """One evaluation of a policy on the way.

    Attributes:
        steps: environment steps of training so far.
        mean: its true return.
        success: share of episodes that reached the goal, or None.
        paid: mean return of the recovered reward in training since the last look, or None.
    """

    steps: float
    mean: float
    success: float | None
    paid: float | None


@dataclass(frozen=True)
class Training:
    """One training of a policy.

    Attributes:
        name: which.
        looks: at the policy, in order.
    """

    name: str
    looks: tuple[Look, ...]


def trainings(expansion: Path) -> list[Training]:
    """Every training of an expansion that has a curve, in order of rounds; a second one of a round stands behind it."""
    found = []
    for place in sorted((expansion / "rounds").glob("[0-9]*"), key=_number):
        for path in sorted(place.glob(f"training*/{CURVE}")):
            looks = read(path)
            if looks:
                more = path.parent.name.removeprefix("training").strip("-_. ")
                found.append(Training(f"round {place.name}{f', {more}' if more else ''}", looks))
    return found


def read(path: Path) -> tuple[Look, ...]:
    """The points of a curve; () where there is no whole one."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Look(_finite(row["steps"]), _finite(row["mean"]), *map(_or_none, _rest(row))) for row in rows)
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def _rest(row: Any) -> tuple[Any, Any]:
    return row.get("success"), row.get("paid")


def _or_none(value: Any) -> float | None:
    return None if value is None else _finite(value)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r}; expected a finite number")
    return number


def _number(place: Path) -> int:
    return int(place.name) if place.name.isdigit() else -1
