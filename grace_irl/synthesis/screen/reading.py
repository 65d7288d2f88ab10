"""A reading, as a program over screens says it, and its price.

A goal is reached if all conditions of one of its clauses hold. Every condition has a price in nats, whatever the
screens show.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import Any

from grace_irl.synthesis.screen import functions
from grace_irl.synthesis.screen.pattern import NodePattern, Shows, shown


@dataclass(frozen=True)
class Test:
    """A count of the nodes that fit a pattern: at least a number of them, or none at all."""

    __test__ = False  # a word that pytest looks for

    pattern: NodePattern
    count: int = 1

    def phrase(self) -> str:
        if self.count == 0:
            return f"nowhere {self.pattern.phrase()}"
        return self.pattern.phrase() if self.count == 1 else f"{self.count} times {self.pattern.phrase()}"


@dataclass(frozen=True)
class Around:
    """In the item around some node with the id `anchor` every pattern is fit by a node."""

    anchor: str
    patterns: tuple[NodePattern, ...]

    def phrase(self) -> str:
        return f"around one {shown(self.anchor)} " + " and ".join(pattern.phrase() for pattern in self.patterns)


@dataclass(frozen=True)
class Spoken:
    """The instruction holds one of these words."""

    words: tuple[str, ...]

    def phrase(self) -> str:
        return "the instruction says " + " or ".join(f'"{shown(word)}"' for word in self.words)


Condition = Test | Around | Spoken
Clause = tuple[Condition, ...]


@dataclass(frozen=True)
class ScreenReading:
    """Clauses, the most important first."""

    clauses: tuple[Clause, ...]

    def text(self) -> str:
        """As JSON; what is empty is left out."""
        return json.dumps([[_packed(condition) for condition in clause] for clause in self.clauses])

    @classmethod
    def of(cls, text: str) -> ScreenReading:
        return cls(tuple(tuple(_condition(entry) for entry in clause) for clause in json.loads(text)))

    def phrase(self) -> str:
        """The goal in words."""
        return "; or ".join(", ".join(condition.phrase() for condition in clause) for clause in self.clauses)


def _packed(condition: Condition) -> dict[str, Any]:
    match condition:
        case Test(pattern, count):
            return {"pattern": _short(pattern), "count": count}
        case Around(anchor, patterns):
            return {"anchor": anchor, "patterns": [_short(pattern) for pattern in patterns]}
        case Spoken(words):
            return {"words": words}


def _condition(entry: dict[str, Any]) -> Condition:
    if "anchor" in entry:
        return Around(entry["anchor"], tuple(_pattern(short) for short in entry["patterns"]))
    if "pattern" in entry:
        return Test(_pattern(entry["pattern"]), entry["count"])
    return Spoken(tuple(entry["words"]))


def _short(pattern: NodePattern) -> dict[str, Any]:
    standard = asdict(NodePattern())
    return {field: value for field, value in asdict(pattern).items() if value != standard[field]}


def _pattern(short: dict[str, Any]) -> NodePattern:
    known = {field.name: short[field.name] for field in fields(NodePattern) if field.name in short}
    if "chosen" in known:
        known["chosen"] = tuple(known["chosen"])
    return NodePattern(**known)


CONDITION = 1.0
"""Each condition, before what it says."""
CLAUSE = 3.0
"""Each clause after the first, or if goals are of several tasks, after one for each."""
AROUND = -0.1
"""That conditions hold around one node: what belongs together is likelier than what does not."""
REPEATED = 0.1
"""A condition that pays for itself, repeated."""
SPOKEN = 3.0
"""A word of the instruction that tells goals apart; what the screen shows should do so if it can."""
OR = 0.5
"""Each other word that will do."""
ABSENT = 1.0
SEVERAL = 1.5
"""That something is not there; that it is there several times."""

NAME = 0.25
KIND = 1.0
PACKAGE = 0.75
SAYS = 1.0
WORD = 1.5
"""Parts of a pattern: ids say what a node is for, classes and texts less so."""
SHOWS = {"quote": 0.25, "time": 0.25, "number": 1.0, "name": 0.5, "word": 1.5}
SHOWS_ANYWHERE = {"quote": 0.25, "time": 0.25, "number": 1.5, "name": 1.0, "word": 0.0}
"""Parts of the instruction, and what they cost more in a node without an id: a number or a name of the instruction
stands anywhere by chance."""
TOLD = {"quote": -0.5, "time": -0.5, "name": -0.25, "number": 0.25}
TOLD_ANYWHERE = 0.25
"""Conditions on parts of the instruction that only goals show pay for themselves: experts followed it."""
ASIDE = 0.25
"""That a text stands beside a node, not in it."""
BOUND = 2.5
"""That a number has a limit: of many numbers one always has."""
CHOSEN = -0.5
EACH_CHOSEN = 0.1
"""That just these children are chosen: few conditions are as sharp."""
FLAG = {"checked": -0.25, "unchecked": 0.0, "selected": -0.25, "focused": 1.0, "disabled": 0.25, "hidden": 1.0}
"""Tasks are about what is on or off; the place of the focus, and what is hidden, is mostly an accident."""
FIGURES = 1.5
"""A text with figures in it: the next screen shows others."""
LONG = 1.0
LONG_TEXT = 40
"""A text of more letters than this."""
KNOWN = -0.5
"""A text of which the instruction holds a word."""


class ScreenPrices:
    """The prices of conditions on these screens.

    Args:
        spoken: all words of the instructions.
        telling: what of the instruction is shown in goals, and seldom elsewhere.
        tasks: how many tasks the goals are of; that many clauses are to be expected.
    """

    def __init__(self, spoken: Collection[str], telling: Collection[NodePattern], tasks: int) -> None:
        self._spoken = {word for word in spoken if len(word) > 2}
        self._telling = frozenset(telling)
        self._tasks = tasks

    def reading(self, reading: ScreenReading) -> float:
        """The cost of saying so much."""
        return sum(map(self.clause, reading.clauses)) + CLAUSE * max(0, len(reading.clauses) - self._tasks)

    def clause(self, clause: Clause) -> float:
        """The cost of its conditions, if a pattern counts once, and what pays for itself pays once."""
        tests = [one.pattern for one in clause if isinstance(one, Test) and one.count == 1]
        inside = [pattern for one in clause if isinstance(one, Around) for pattern in one.patterns]
        told: dict[Shows, float] = {}
        price = AROUND * sum(isinstance(one, Around) for one in clause)
        for pattern in dict.fromkeys([*tests, *inside]):  # in this order: a set's changes from process to process
            paid = self.pattern(pattern)
            if paid < 0:
                told[pattern.shows] = min(paid, told.get(pattern.shows, 0.0))
                paid = REPEATED
            price += paid
        others = [one for one in clause if isinstance(one, Spoken) or (isinstance(one, Test) and one.count != 1)]
        return price + sum(map(self.condition, others)) + sum(told.values())

    def condition(self, condition: Condition) -> float:
        """The cost of a condition beside others: in an item nothing pays for itself, as it may do so outside, too."""
        match condition:
            case Test(pattern, count):
                return self.pattern(pattern) + (ABSENT if count == 0 else SEVERAL if count > 1 else 0.0)
            case Around(_, patterns):
                return AROUND + sum(max(REPEATED, self.pattern(pattern)) for pattern in patterns)
            case Spoken(words):
                return SPOKEN + OR * (len(words) - 1)

    def pattern(self, pattern: NodePattern) -> float:
        if pattern in self._telling and pattern.shows in TOLD:
            return (
                TOLD[pattern.shows]
                + (0.0 if pattern.name else TOLD_ANYWHERE)
                + FLAG.get(pattern.flag, 0.0)
                + ASIDE * pattern.aside
            )
        price = CONDITION
        price += NAME * bool(pattern.name) + KIND * bool(pattern.kind) + PACKAGE * bool(pattern.package)
        price += ASIDE * pattern.aside + FLAG.get(pattern.flag, 0.0) + BOUND * bool(pattern.bound)
        if pattern.says or pattern.word:
            price += self._text(pattern.says) if pattern.says else WORD
            price += KNOWN * (not self._spoken.isdisjoint(functions.words(pattern.says, pattern.word)))
        if pattern.shows:
            price += SHOWS[pattern.shows] + (0.0 if pattern.name else SHOWS_ANYWHERE[pattern.shows])
        if pattern.chosen is not None:
            price += CHOSEN + EACH_CHOSEN * len(pattern.chosen)
        return price

    def _text(self, text: str) -> float:
        return SAYS + FIGURES * any(map(str.isdigit, text)) + LONG * (len(text) > LONG_TEXT)
