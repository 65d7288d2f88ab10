"""Readings of the demonstrations over screens, and their prices.

A reading is a description of the goal: the goal is reached if all conditions of one of its clauses hold. Every
condition has a price in nats, in addition to the cost of the reading's mistakes.
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
    """A condition on the number of nodes that fit a pattern: at least `count`, or none if `count` is 0."""

    __test__ = False  # stops pytest from collecting this class

    pattern: NodePattern
    count: int = 1

    def phrase(self) -> str:
        if self.count == 0:
            return f"nowhere {self.pattern.phrase()}"
        return self.pattern.phrase() if self.count == 1 else f"{self.count} times {self.pattern.phrase()}"


@dataclass(frozen=True)
class Around:
    """A condition on items: in the item around some node with the id `anchor`, every pattern fits a node."""

    anchor: str
    patterns: tuple[NodePattern, ...]

    def phrase(self) -> str:
        return f"around one {shown(self.anchor)} " + " and ".join(pattern.phrase() for pattern in self.patterns)


@dataclass(frozen=True)
class Spoken:
    """A condition on the instruction: it contains one of these words."""

    words: tuple[str, ...]

    def phrase(self) -> str:
        return "the instruction says " + " or ".join(f'"{shown(word)}"' for word in self.words)


Condition = Test | Around | Spoken
Clause = tuple[Condition, ...]


@dataclass(frozen=True)
class ScreenReading:
    """A description of the goal by clauses, the most important first."""

    clauses: tuple[Clause, ...]

    def text(self) -> str:
        """The reading as JSON, without empty values."""
        return json.dumps([[_packed(condition) for condition in clause] for clause in self.clauses])

    @classmethod
    def of(cls, text: str) -> ScreenReading:
        return cls(tuple(tuple(_condition(entry) for entry in clause) for clause in json.loads(text)))

    def phrase(self) -> str:
        """The reading in words."""
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
"""Price of each condition in nats. The other prices are added to it."""
CLAUSE = 3.0
"""Price of each clause beyond the number of tasks."""
AROUND = -0.1
"""Price of a condition on items. It is negative, since conditions around one node mostly belong together."""
REPEATED = 0.1
"""Price of a pattern in a clause if its own price is negative. In addition, the clause gets the lowest negative price
once for each part of the instruction that its patterns show."""
SPOKEN = 3.0
"""Price of a condition on words of the instruction. It is high, so that conditions on the screen are preferred."""
OR = 0.5
"""Price of each further word in a condition on words."""
ABSENT = 1.0
SEVERAL = 1.5
"""Additional prices of a condition that nodes are absent, and that there are several."""

NAME = 0.25
KIND = 1.0
PACKAGE = 0.75
SAYS = 1.0
WORD = 1.5
"""Prices of a pattern's parts. An id is cheap because it shows the purpose of a node better than class and text."""
SHOWS = {"quote": 0.25, "time": 0.25, "number": 1.0, "name": 0.5, "word": 1.5}
SHOWS_ANYWHERE = {"quote": 0.25, "time": 0.25, "number": 1.5, "name": 1.0, "word": 0.0}
"""Prices of a part of the instruction, and additional prices if the node's id is not given. A number or a name of the
instruction may appear anywhere by chance."""
TOLD = {"quote": -0.5, "time": -0.5, "name": -0.25, "number": 0.25}
TOLD_ANYWHERE = 0.25
"""Prices of a part of the instruction that only goals show, and additional price without an id. They are mostly
negative, since experts followed the instruction."""
ASIDE = 0.25
"""Price of a text beside the node instead of in it."""
BOUND = 2.5
"""Price of a limit on a number. It is high, since among many numbers one always meets some limit by chance."""
CHOSEN = -0.5
EACH_CHOSEN = 0.1
"""Price of an exact set of chosen children, and of each child in it. Few conditions are as precise."""
FLAG = {"checked": -0.25, "unchecked": 0.0, "selected": -0.25, "focused": 1.0, "disabled": 0.25, "hidden": 1.0}
"""Prices of flags. Tasks concern what is on or off. Focus and hidden nodes are mostly accidental."""
FIGURES = 1.5
"""Price of digits in a text, since the next screen shows others."""
LONG = 1.0
LONG_TEXT = 40
"""Price of a text with more characters than `LONG_TEXT`."""
KNOWN = -0.5
"""Price of a text that shares a word with the instructions."""


class ScreenPrices:
    """Prices of conditions on these screens.

    Args:
        spoken: all words of the instructions.
        telling: patterns on parts of the instruction that goals show, and other states seldom show.
        tasks: number of tasks of the goals, and so of the clauses that cost nothing extra.
    """

    def __init__(self, spoken: Collection[str], telling: Collection[NodePattern], tasks: int) -> None:
        self._spoken = {word for word in spoken if len(word) > 2}
        self._telling = frozenset(telling)
        self._tasks = tasks

    def reading(self, reading: ScreenReading) -> float:
        """Price of a reading, in nats."""
        return sum(map(self.clause, reading.clauses)) + CLAUSE * max(0, len(reading.clauses) - self._tasks)

    def clause(self, clause: Clause) -> float:
        """Price of a clause. Each pattern counts once, and a negative price counts once for each shown part."""
        tests = [one.pattern for one in clause if isinstance(one, Test) and one.count == 1]
        inside = [pattern for one in clause if isinstance(one, Around) for pattern in one.patterns]
        told: dict[Shows, float] = {}
        price = AROUND * sum(isinstance(one, Around) for one in clause)
        for pattern in dict.fromkeys([*tests, *inside]):  # in a fixed order, unlike a set
            paid = self.pattern(pattern)
            if paid < 0:
                told[pattern.shows] = min(paid, told.get(pattern.shows, 0.0))
                paid = REPEATED
            price += paid
        others = [one for one in clause if isinstance(one, Spoken) or (isinstance(one, Test) and one.count != 1)]
        return price + sum(map(self.condition, others)) + sum(told.values())

    def condition(self, condition: Condition) -> float:
        """Price of a single condition. Patterns in an item have no negative price, as they may be outside as well."""
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
