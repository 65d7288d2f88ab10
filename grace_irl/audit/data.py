"""Warnings about the demonstrations: too few, alike on both sides, or pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from grace_irl.audit.subject import Subject
from grace_irl.audit.warning import RewardWarning
from grace_irl.demos.labels import Labelled

FEW = 5
"""Number of held-out episodes of a side below which there is a warning."""
PIXELS = 256
"""Number of numbers in a state from which the state may be a picture."""
SHADES = 64
"""Number of different values from which a state may be a picture. Codes of grids have fewer."""
LOOKED_AT = 32
"""Number of states that are searched for pixels."""


def of_data(subject: Subject) -> Iterator[RewardWarning]:
    """Warnings about the demonstrations."""
    yield from _few(subject)
    items = subject.problem.items
    own = {item.trajectory.digest for item in items if item.demonstration.role == "expert"}
    same = sum(item.trajectory.digest in own for item in items if item.demonstration.role == "negative")
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
        trained = {item.trajectory.digest for item in subject.problem.train}
        experts, negatives = (
            len({item.trajectory.digest for item in subject.problem.held_out if item.positive.any() == side} - trained)
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
    """Whether vectors or records are many numbers from 0 to 255, or from 0 to 1, with many different values."""
    kind = items[0].trajectory.state_kind
    if not (kind.named_fields or kind.has_parts):
        return False
    rows = []
    for item in items[:LOOKED_AT]:
        numbers = kind.numbers(item.trajectory.states)
        if numbers is None or numbers.shape[1] < PIXELS:
            return False
        rows.append(numbers[len(numbers) // 2])
    values = np.concatenate(rows)
    inside = values.min() >= 0 and (values.max() <= 1 or (values.max() <= 255 and (values == np.round(values)).all()))
    return bool(inside) and len(np.unique(values)) >= SHADES
