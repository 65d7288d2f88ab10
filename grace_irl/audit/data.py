"""Warnings about the demonstrations: too few, alike on both sides, or pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.copies import recordings
from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.labels import Labelled

FEW = 5
"""Number of held-out episodes of a side below which there is a warning."""
PIXELS = 256
"""Number of numbers in a state from which the state may be a picture."""
SHADES = 64
"""Number of different values from which a state may be a picture. Codes of grids have fewer."""
SMALL = 64
"""Number of numbers from which they may be a small picture, if they are a square with lines."""
LINES = 0.2
"""Correlation of numbers one line apart, from which there are lines."""
SMOOTH = 0.8
"""Correlation of neighbours from which numbers may be a scan."""
LOOKED_AT = 32
"""Number of states that are searched for pixels."""


def of_data(subject: Subject) -> Iterator[RewardWarning]:
    """Warnings about the demonstrations."""
    yield from _few(subject)
    items = subject.problem.items
    known = recordings(items)
    own = {one for one, item in zip(known, items, strict=True) if item.demonstration.role == "expert"}
    same = sum(one in own and item.demonstration.role == "negative" for one, item in zip(known, items, strict=True))
    if same:
        yield RewardWarning(
            "no-difference",
            f"{same} negative episode{' is' if same == 1 else 's are'} also among the experts",
            "check which files are experts and which are negatives (demos inspect)",
        )
    if _pictured(items):
        yield RewardWarning(
            "pixels",
            "the states look like pixels, which the reward reads one by one",
            "give the things in the picture as numbers, or declare pictures (--kind image) and let a model that sees "
            "write the programs (--llm-url, --images)",
        )


def _few(subject: Subject) -> Iterator[RewardWarning]:
    held_out = subject.separation.held_out
    if held_out is None:
        yield RewardWarning(
            "nothing-held-out",
            "no episode was held out, so the figures do not say how well the reward carries over",
            "bring more episodes, or hold some out (--held-out)",
        )
    elif held_out.episodes is not None:
        items = (*subject.problem.train, *subject.problem.held_out)
        known = recordings(items)
        trained = len(subject.problem.train)
        experts, negatives = (
            len(
                {one for one, item in zip(known[trained:], items[trained:], strict=True) if item.positive.any() == side}
                - {*known[:trained]}
            )
            for side in (True, False)
        )
        if experts < FEW or (held_out.episodes.negatives and negatives < FEW):
            yield RewardWarning(
                "few-episodes",
                f"only {experts} expert and {negatives} negative episodes are held out (copies are not counted), so "
                "figures on them are uncertain",
                "bring more episodes, or hold out a larger share of them (--held-out)",
            )


def _pictured(items: Sequence[Labelled]) -> bool:
    """Whether vectors, or a part of records, may be a picture."""
    kind = items[0].trajectory.state_kind
    if not (kind.named_fields or kind.has_parts):
        return False
    middle = [
        {name: array[len(array) // 2].ravel() for name, array in kind.parts(item.trajectory.states).items()
         if array.dtype.kind not in "SUO"}
        for item in items[:LOOKED_AT]
    ]  # fmt: skip
    return any(
        len({len(each[name]) for each in middle}) == 1 and _shows(np.stack([each[name] for each in middle]))
        for name in middle[0]
    )


def _shows(values: NDArray[np.float64]) -> bool:
    """Whether rows hold pictures: neighbouring numbers from 0 to 255, or from 0 to 1, with many different values.

    With fewer than `PIXELS` numbers, all are a square whose lines are alike. A scan, such as a lidar's, has neighbours
    that are alike, but no lines.
    """
    whole = (values == np.round(values)).all(axis=0)
    inside = (values.min(axis=0) >= 0) & ((values.max(axis=0) <= 1) | ((values.max(axis=0) <= 255) & whole))
    outside = np.flatnonzero(np.concatenate([[True], ~inside, [True]]))
    place = int(np.diff(outside).argmax())
    run = values[:, outside[place] : outside[place + 1] - 1].astype(np.float64)
    count = run.shape[1]
    if count < SMALL or len(np.unique(run)) < SHADES:
        return False
    sides = [channels * round((count / channels) ** 0.5) for channels in (1, 3, 4)]
    if count < PIXELS:
        return any(side * side == channels * count and _lines(run, side)
                   for side, channels in zip(sides, (1, 3, 4), strict=True))  # fmt: skip
    return _alike(run, 1) < SMOOTH or any(_lines(run, width) for width in range(6, count // 4 + 1))


def _lines(run: NDArray[np.float64], width: int) -> bool:
    """Whether numbers are more like those one line further than like their neighbours there."""
    here = _alike(run, width)
    return here >= LINES and here >= max(_alike(run, width - 2), _alike(run, width + 2)) + LINES / 4


def _alike(run: NDArray[np.float64], lag: int) -> float:
    """Correlation of numbers so many places apart, less their means over states."""
    shifted = run - run.mean(axis=0)
    return float((shifted[:, lag:] * shifted[:, :-lag]).mean() / max(float((shifted**2).mean()), 1e-12))
