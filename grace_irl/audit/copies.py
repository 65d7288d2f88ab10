"""Copies: episodes of one recording. They are equal or differ only by noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.fields import NAMES, Numbers, moments, varies
from grace_irl.demos.labels import Labelled

Floats = NDArray[np.float64]

NEAR = 0.05
"""Maximum difference between states of copies, as a share of each field's standard deviation."""
MOST = 1_000
"""Maximum number of episodes for a search for copies with noise."""


def recordings(items: Sequence[Labelled]) -> list[int]:
    """A list that gives each episode the index of its recording. Copies have the same index.

    Two episodes come from one recording if their states, actions and instructions are equal. Two episodes of vectors or
    records also come from one recording if they differ only by noise: lengths, instructions and texts are equal, and no
    number of a state differs by more than `NEAR`. Their actions may differ. More than `MOST` episodes are compared for
    equality only.
    """
    found: dict[str, int] = {}
    for item in items:
        found.setdefault(item.trajectory.digest, len(found))
    own = [found[item.trajectory.digest] for item in items]
    if not items or items[0].trajectory.kind not in NAMES or len(items) > MOST:
        return own
    if not (rows := Numbers.of(items)):
        return own
    _, spread = moments(rows)
    varied = varies(np.concatenate([(each.min(axis=0), each.max(axis=0)) for each in rows]))
    if not varied.any():
        return own

    def scaled(place: int, states: slice = slice(None)) -> Floats:
        return np.asarray(rows[place][states, varied] / spread[varied])

    groups: dict[tuple[object, ...], list[int]] = {}
    for place, item in enumerate(items):
        parts = item.trajectory.state_kind.parts(item.trajectory.states)
        texts = tuple(tuple(array.tolist()) for array in parts.values() if array.dtype.kind == "S")
        groups.setdefault((len(rows[place]), item.trajectory.extra_info, texts), []).append(place)
    for places in groups.values():
        ends = np.stack([scaled(place, slice(None, None, max(len(rows[place]) - 1, 1))).ravel() for place in places])
        for at, place in enumerate(places):
            close = np.abs(ends[:at] - ends[at]).max(axis=1, initial=0.0) <= NEAR
            for other in (places[number] for number in np.flatnonzero(close)):
                if np.abs(scaled(place) - scaled(other)).max(initial=0.0) <= NEAR:
                    own[place] = own[other]
                    break
    return own
