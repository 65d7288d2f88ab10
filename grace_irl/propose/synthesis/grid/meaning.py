"""What a reward over happenings may say: filters on a thing's features, meanings of words, steps of an instruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grace_irl.propose.synthesis.grid.scene import EVENTS, SIDES

Feature = Literal["event", "channel 0", "channel 1", "channel 2", "side", "count"]
STATIC: tuple[Feature, ...] = ("channel 0", "channel 1", "side")
"""Features that a thing has from the start, so that an instruction can refer to it by them."""

Novel = Literal["ignore", "guess", "require"]
Arrangement = Literal["whole", "then", "after", "both", "beside"]


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
    """How an instruction is taken apart.

    Attributes:
        arrangement: "whole": one step. With a separator, the words before it and after it are two steps: "then" does
            them in order, "after" in reverse order, "both" in any order; "beside" is one step, in which the words
            before the separator describe the thing, and those after it a thing in a neighbouring cell.
        separator: the word between the steps, "" for "whole". An instruction without it is one step.
    """

    arrangement: Arrangement = "whole"
    separator: str = ""

    def steps(self, words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """The words of each step, in the order in which the steps are to be done."""
        if self.arrangement == "whole" or self.separator not in words:
            return (words,)
        at = words.index(self.separator)
        before, after = words[:at], words[at + 1 :]
        return (after, before) if self.arrangement == "after" else (before, after)


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
