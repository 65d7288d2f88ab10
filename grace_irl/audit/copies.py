"""Copies: episodes that are one recording, exactly or but for noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.demos.fields import NAMES
from grace_irl.demos.labels import Labelled

NEAR = 0.05
"""Maximum difference between states of copies, as a share of each field's standard deviation."""
MOST = 1_000
"""Maximum number of episodes that are searched for copies with noise."""


def recordings(items: Sequence[Labelled]) -> list[int]:
    """The number of each episode's recording.

    Episodes of one recording have one instruction and are equal, actions included. Or they are as long,
    have the same texts, and none of their numbers differs by more than noise.
    """
    found: dict[str, int] = {}
    for item in items:
        found.setdefault(item.trajectory.digest, len(found))
    own = [found[item.trajectory.digest] for item in items]
    if not items or items[0].trajectory.kind not in NAMES or len(items) > MOST:
        return own
    numbers = [item.trajectory.state_kind.numbers(item.trajectory.states) for item in items]
    rows = [each for each in numbers if each is not None]
    if len(rows) < len(items):
        return own
    spread = np.concatenate(rows).std(axis=0)
    if not spread.any():
        return own
    scaled = [each[:, spread > 0] / spread[spread > 0] for each in rows]
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, item in enumerate(items):
        parts = item.trajectory.state_kind.parts(item.trajectory.states)
        texts = tuple(tuple(array.tolist()) for array in parts.values() if array.dtype.kind == "S")
        groups.setdefault((len(scaled[place]), item.trajectory.extra_info, texts), []).append(place)
    for places in groups.values():
        ends = np.stack([np.concatenate([scaled[place][0], scaled[place][-1]]) for place in places])
        for at, place in enumerate(places):
            close = np.abs(ends[:at] - ends[at]).max(axis=1, initial=0.0) <= NEAR
            for other in (places[number] for number in np.flatnonzero(close)):
                if np.abs(scaled[place] - scaled[other]).max(initial=0.0) <= NEAR:
                    own[place] = own[other]
                    break
    return own
