"""Material of the sets made by somebody who knows the rules: ways of a point, and sets of vectors and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Trajectory
from grace_irl.states.record import RecordStates
from grace_irl.states.texts import pack

Rows = NDArray[np.float64]


def way(rng: np.random.Generator, start: Rows, end: Rows, states: int, tremor: float) -> Rows:
    """Places `(states, n)` on a trembling way from `start` to `end`. Both ends are exact."""
    share = np.linspace(0.0, 1.0, states)[:, None]
    inside = np.sin(np.pi * share) ** 0.5
    return np.asarray(start + share * (end - start) + inside * rng.normal(0.0, tremor, (states, len(start))))


def vector(columns: Mapping[str, Any], instruction: str = "") -> Trajectory:
    """An episode of vectors from its columns, each `(T+1,)` or one number that stays."""
    length = max(np.size(column) for column in columns.values())
    states = np.stack([np.broadcast_to(np.asarray(each, np.float64), length) for each in columns.values()], axis=1)
    return Trajectory(states, extra_info=instruction)


def record(parts: Mapping[str, Any], instruction: str = "") -> Trajectory:
    """An episode of records from its parts, arrays `(T+1, ...)` or lists of T+1 texts."""
    arrays = {name: pack(part) if isinstance(part, list) else part for name, part in parts.items()}
    return Trajectory(RecordStates(arrays), extra_info=instruction, kind="record")


def gathered(
    experts: Iterable[Trajectory],
    negatives: Iterable[Trajectory],
    label: LabelRule,
    fields: Iterable[str] = (),
    environment: str = "",
) -> Demonstrations:
    """Demonstrations of both roles, which state their label rule."""
    items = (
        *(Demonstration(each, "expert") for each in experts),
        *(Demonstration(each, "negative") for each in negatives),
    )
    kind = items[0].trajectory.kind
    return Demonstrations(Metadata(kind, tuple(fields), environment=environment, label=label), items)
