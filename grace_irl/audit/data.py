"""Warnings about demonstrations: few episodes, negatives that are also experts, or states that are pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.copies import recordings
from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.labels import Labelled

FEW = 5
"""Minimum number of held-out experts, and of held-out negatives. With fewer, there is a warning."""
PIXELS = 256
"""Pictures with at least this number of values may have any shape."""
SHADES = 64
"""Minimum number of different values in pictures. The codes of grids have fewer."""
SMALL = 64
"""Pictures with at least this number of values, but fewer than `PIXELS`, must be squares with lines (`_lines`)."""
LINES = 0.2
"""Minimum correlation between each pixel and the one above it, in a picture with lines."""
SMOOTH = 0.8
"""Minimum correlation of neighbouring values in a scan, such as a lidar's."""
LOOKED_AT = 32
"""Maximum number of episodes whose middle state is searched for pixels."""


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
            "check which files hold experts and which hold negatives (demos inspect)",
        )
    if _pictured(items):
        yield RewardWarning(
            "pixels",
            "the states look like pictures, and the reward reads single pixels",
            "describe the things in the picture by numbers, or declare pictures (--kind image) and let a model that "
            "can see pictures write the programs (--llm-url, --images)",
        )


def _few(subject: Subject) -> Iterator[RewardWarning]:
    held_out = subject.separation.held_out
    if held_out is None and subject.problem.held_out:
        marks = np.concatenate([item.positive for item in subject.problem.held_out])
        lacking = "positive states" if not marks.any() else "negative states" if marks.all() else "both sides of a task"
        yield RewardWarning(
            "nothing-held-out",
            f"the held-out episodes lack {lacking}, so there are no figures on how good the reward is on new episodes",
            "hold out experts and negatives of the same task (--held-out divides both)",
        )
    elif held_out is None:
        yield RewardWarning(
            "nothing-held-out",
            "no episode was held out, so the figures do not say how good the reward is on new episodes",
            "bring more episodes, or hold some out (--held-out)",
        )
    elif held_out.episodes is not None:
        own = {*subject.given(subject.problem.items)}
        train, tested = (
            [item for item in items if item in own] for items in (subject.problem.train, subject.problem.held_out)
        )
        items, trained = (*train, *tested), len(train)
        known = recordings(items)
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
                "the held-out figures are uncertain",
                "bring more episodes, or hold out a larger share of the episodes (--held-out)",
            )


def _pictured(items: Sequence[Labelled]) -> bool:
    """Whether the vectors, or a part of the records, look like pictures."""
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
    """Whether states, given as rows of numbers, are pictures.

    A column holds one number of every state. A column is a possible pixel if it holds whole numbers from 0 to 255, or
    numbers from 0 to 1. The longest run of possible pixels must have at least `SMALL` columns and `SHADES` different
    values. A run of fewer than `PIXELS` columns must also form a square with lines (`_lines`). A longer run is not a
    picture if it looks like a scan: neighbouring values are alike, and there are no lines.
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
    """Whether values correlate at distance `width`, and correlate less at distances `width` - 2 and `width` + 2."""
    here = _alike(run, width)
    return here >= LINES and here >= max(_alike(run, width - 2), _alike(run, width + 2)) + LINES / 4


def _alike(run: NDArray[np.float64], lag: int) -> float:
    """Correlation of values at distance `lag`, after the mean of each column is subtracted."""
    shifted = run - run.mean(axis=0)
    return float((shifted[:, lag:] * shifted[:, :-lag]).mean() / max(float((shifted**2).mean()), 1e-12))
