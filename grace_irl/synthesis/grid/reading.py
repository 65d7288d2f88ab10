"""A reading of the instructions: which constants hold and what each word means, as indices of filters."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from grace_irl.synthesis.grid.meaning import Feature

Constants = dict[Feature, int]
WordMeanings = dict[str, int]


@dataclass
class Reading:
    """A reading in the making: filter indices for constants (by feature) and for words. Never changed in place."""

    constants: Constants
    meanings: WordMeanings = field(default_factory=dict)

    @cached_property
    def always(self) -> tuple[int, ...]:
        """The constants' filters, sorted."""
        return tuple(sorted(self.constants.values()))

    def with_meaning(self, word: str, column: int) -> Reading:
        """The reading with one word's meaning changed; -1 takes it away."""
        changed = {known: value for known, value in self.meanings.items() if known != word}
        if column >= 0:
            changed[word] = column
        return Reading(self.constants, changed)


@dataclass
class Posterior:
    """What the walks found.

    Attributes:
        best: the likeliest reading.
        cost: its cost, nats.
        words: word -> filter index -> probability by profile likelihood; -1 stands for no meaning.
    """

    best: Reading
    cost: float
    words: dict[str, dict[int, float]]
