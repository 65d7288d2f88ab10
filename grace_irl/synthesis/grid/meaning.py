"""The words of a reward over happenings: filters on a thing's features, meanings of words, steps of an instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from grace_irl.synthesis.grid.scene import EVENTS, SIDES

Feature = Literal["event", "channel 0", "channel 1", "channel 2", "side", "count"]
STATIC: tuple[Feature, ...] = ("channel 0", "channel 1", "side")
"""Features that a thing has from the start, so that an instruction can refer to it by them."""

Novel = Literal["ignore", "guess", "require"]
Arrangement = Literal["then", "after", "both", "beside"]

Words = tuple[str, ...]
Step = tuple[Words, ...]
"""The words that describe the thing, and those that describe each thing beside it."""
Stage = tuple[Step, ...]
"""Steps that may be done in any order."""


@dataclass(frozen=True, order=True)
class Filter:
    """A condition on one feature of a thing: feature == value (for sides: it lies on that side)."""

    feature: Feature
    value: int

    def __str__(self) -> str:
        if self.feature == "event":
            return EVENTS[self.value]
        if self.feature == "side":
            return SIDES[self.value]
        return f"{self.feature} = {self.value}"


@dataclass(frozen=True)
class Plan:
    """How instructions are taken apart: at separating words, which bind in this order, the loosest first.

    * then, after: what stands before the word is a step to be done before, or after, what stands behind it.
    * both: the steps on both sides are done in any order.
    * beside: the words behind it describe a thing in a neighbouring cell of the one that the words before it describe.

    Attributes:
        separators: words and what each does, sorted; () where every instruction is one step.
    """

    separators: tuple[tuple[str, Arrangement], ...] = ()

    def of(self, *arrangements: Arrangement) -> tuple[str, ...]:
        """The words that do this."""
        return tuple(word for word, arrangement in self.separators if arrangement in arrangements)

    def and_at(self, separator: str, arrangement: Arrangement) -> Plan:
        """The plan with one more separator."""
        return Plan(tuple(sorted([*self.separators, (separator, arrangement)])))

    @property
    def steps(self) -> bool:
        """Whether an instruction may have several steps."""
        return bool(self.of("then", "after", "both"))

    @property
    def beside(self) -> bool:
        """Whether a step may speak of more than one thing."""
        return bool(self.of("beside"))

    def stages(self, words: Words) -> tuple[Stage, ...]:
        """The steps of an instruction: stages in the order in which they are to be done."""
        for at, word in enumerate(words):
            if word in self.of("then", "after"):
                before, after = self.stages(words[:at]), self.stages(words[at + 1 :])
                return before + after if word in self.of("then") else after + before
        return (tuple(_cut(step, self.of("beside")) for step in _cut(words, self.of("both"))),)


def _cut(words: Words, separators: Sequence[str]) -> tuple[Words, ...]:
    """The words between separators."""
    places = [-1, *(at for at, word in enumerate(words) if word in separators), len(words)]
    return tuple(words[a + 1 : b] for a, b in pairwise(places))


SEVERAL = Filter("count", 1)
"""What a word like "a" says beside "the": more than one thing fits. It constrains no thing, so no program uses it."""

Meanings = tuple[tuple[str, tuple[Filter, ...]], ...]
"""Word -> filters of which a thing must meet one."""


@dataclass(frozen=True)
class Hypothesis:
    """A whole reading of the data: what has to happen to a thing that the instruction describes.

    Attributes:
        plan: how instructions are taken apart.
        constants: filters that always hold; a word that says what happens replaces the usual event.
        meanings: what words surely mean.
        guesses: what words may mean: a happening that fits the meanings but not the guesses earns half the reward.
        novel: how to take a word that training never showed: "ignore" it; "guess" that it names what no known word
            names (half the reward otherwise); or "require" so.
    """

    plan: Plan
    constants: tuple[Filter, ...] = ()
    meanings: Meanings = ()
    guesses: Meanings = ()
    novel: Novel = "ignore"
