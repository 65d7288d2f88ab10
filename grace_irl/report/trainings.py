"""The learning curves of an expansion: one for each training of a round that left one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grace_irl.runs.expand.round import Round

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
    success: float | None
    paid: float | None


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
        looks = read(place / "training" / CURVE)
        if looks:
            found.append(TrainingCurve(f"round {place.name}{_reward(trained_on.get(_number(place), ''))}", looks))
    return found


def _reward(path: str) -> str:
    """The reward that a policy learnt from, by its file in the expansion, such as `rounds/1/shaping/reward.py`."""
    parts = Path(path).parts
    if len(parts) < 4:
        return ""
    return f", {'reshaped ' if parts[2] == 'shaping' else ''}reward of round {parts[1]}"


def read(path: Path) -> tuple[CurvePoint, ...]:
    """The points of a curve; () if there is no whole one."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return tuple(
            CurvePoint(_finite(row["steps"]), _finite(row["mean"]), *map(_or_none, _rest(row))) for row in rows
        )
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
