"""Vectors for the report: highlighted states beside what positive and negative states are like, field by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.report.evidence import Shot
from grace_irl.report.values import Valued

FIELDS = 24
"""Rows of a table; of wider vectors the fields whose means differ most, in deviations."""


@dataclass(frozen=True)
class Field:
    """A field over the training states.

    Attributes:
        index: its place in the vector.
        name: or "".
        positive, negative: mean and deviation over positive and negative states; None where there are none.
        effect: difference of the means in pooled deviations (Cohen's d); 0 where a side is missing.
    """

    index: int
    name: str
    positive: tuple[float, float] | None
    negative: tuple[float, float] | None
    effect: float


def fields(
    valued: Sequence[Valued], trajectories: dict[str, Trajectory], names: Sequence[str]
) -> tuple[tuple[Field, ...], int]:
    """The fields that are shown, in order, and how many are left out."""
    sides = [_moments(valued, trajectories, positive=side) for side in (True, False)]
    width = next(iter(trajectories.values())).states.shape[1]
    found = []
    for index in range(width):
        name = names[index] if index < len(names) else ""
        positive, negative = ((float(s[0][index]), float(s[1][index])) if s else None for s in sides)
        effect = 0.0
        if positive and negative:
            pooled = np.sqrt((positive[1] ** 2 + negative[1] ** 2) / 2)
            effect = (positive[0] - negative[0]) / float(pooled) if pooled > 0 else 0.0
        found.append(Field(index, name, positive, negative, effect))
    most = sorted(found, key=lambda each: (-abs(each.effect), each.index))[:FIELDS]
    return tuple(sorted(most, key=lambda each: each.index)), len(found) - len(most)


def _moments(
    valued: Sequence[Valued], trajectories: dict[str, Trajectory], *, positive: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Mean and deviation of each field over the training states of one side."""
    parts = [
        trajectories[each.row.digest].states[each.positive == positive]
        for each in valued
        if each.row.split == "train" and each.row.digest in trajectories
    ]
    states = np.concatenate(parts).astype(np.float64) if parts else np.zeros((0, 0))
    return (states.mean(axis=0), states.std(axis=0)) if len(states) else None


def numbers(field: Field, shots: Sequence[Shot], trajectories: dict[str, Trajectory]) -> list[float | None]:
    """A field's number in each state; None where the state is not there."""
    found = (trajectories.get(shot.of.row.digest) for shot in shots)
    return [
        None if each is None else float(each.states[shot.step][field.index])
        for each, shot in zip(found, shots, strict=True)
    ]
