"""Scenes written down row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.synthesis.grid.evidence import GridEvidence
from grace_irl.synthesis.grid.meaning import Filter
from grace_irl.synthesis.grid.reading import GridReading
from grace_irl.synthesis.grid.scene import EVENTS, SIDES, Scene, ThingRows

Row = tuple[int, str, tuple[int, int, int]]
"""State, event ("" for a thing of the first state) and codes."""


def table(rows: Sequence[Row], sides: Sequence[str] = (), start: Sequence[tuple[int, int, int]] = ()) -> ThingRows:
    """ThingRows in different cells, all on the same sides, with the codes of the things at the start."""
    count = len(rows)
    return ThingRows(
        state=np.array([row[0] for row in rows], np.int64),
        event=np.array([EVENTS.index(row[1]) if row[1] else -1 for row in rows], np.int64),
        codes=np.array([row[2] for row in rows], np.int64).reshape(-1, 3),
        sides=np.tile([side in sides for side in SIDES], (count, 1)).reshape(-1, 4),
        halves=np.zeros((count, 4), np.bool_),
        cells=np.array([(1, place) for place in range(count)], np.int64).reshape(-1, 2),
        start=np.array(start, np.int64).reshape(-1, 3),
    )


def scene(
    length: int,
    happenings: Sequence[Row],
    things: Sequence[tuple[int, int, int]] = (),
    words: str = "",
    sides: Sequence[str] = (),
) -> Scene:
    """A scene of this many states; its grid shows the codes of all happenings in all states."""
    shape = (length, 2, max(len(happenings), 1))
    states = np.zeros((*shape, 3), np.int64)
    for place, row in enumerate(happenings):
        states[:, 1, place] = row[2]
    return Scene(
        words=tuple(words.split()),
        length=length,
        happenings=table(happenings, sides, things),
        things=table([(0, "", code) for code in things], sides, things),
        states=states,
        objects=np.zeros(shape, np.bool_),
    )


def marks(length: int, *states: int) -> np.ndarray:
    """True at these states."""
    return np.isin(np.arange(length), states)


def event(name: str) -> Filter:
    return Filter("event", EVENTS.index(name))


TINY = GridEvidence(
    [
        scene(3, [(1, "faced", (1, 5, 0)), (2, "taken", (1, 5, 0))], [(1, 5, 0), (2, 6, 0)], "go ka lu", ("ahead",)),
        scene(3, [(2, "faced", (2, 6, 0))], [(1, 5, 0), (2, 6, 0)], "go mo lu"),
        scene(3, [(2, "faced", (2, 6, 0))], [(1, 5, 0), (2, 6, 0)], "lu ko go"),
    ],
    [marks(3, 2)] * 3,
)
FACED, TAKEN = event("faced"), event("taken")
ONE, TWO, FIVE = Filter("channel 0", 1), Filter("channel 0", 2), Filter("channel 1", 5)


def reading(constants: dict[str, Filter], **meanings: Filter) -> GridReading:
    return GridReading(
        {feature: TINY.index[f] for feature, f in constants.items()},  # type: ignore[misc]
        {word: TINY.index[f] for word, f in meanings.items()},
    )
