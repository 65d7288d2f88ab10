"""Readings, which describe the goals of demonstrations on screens, and the prices of readings.

A reading consists of clauses, and a clause of conditions. The goal is reached if all conditions of one clause hold.
The cost of a reading in nats is the cost of its mistakes (`evidence`) plus the prices of its conditions.
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
    """A condition on how many nodes fit a pattern (a test of one node): at least `count`, or none if `count` is 0."""

    __test__ = False  # stops pytest from collecting this class

    pattern: NodePattern
    count: int = 1

    def phrase(self) -> str:
        if self.count == 0:
            return f"nowhere {self.pattern.phrase()}"
        return self.pattern.phrase() if self.count == 1 else f"{self.count} times {self.pattern.phrase()}"


@dataclass(frozen=True)
class Around:
    """A condition on items, such as rows of a list: some item around a node with the id `anchor` fits all patterns."""

    anchor: str
    patterns: tuple[NodePattern, ...]

    def phrase(self) -> str:
        return f"around one {shown(self.anchor)} " + " and ".join(pattern.phrase() for pattern in self.patterns)


@dataclass(frozen=True)
class Spoken:
    """A condition on the instruction: it contains at least one of these words."""

    words: tuple[str, ...]

    def phrase(self) -> str:
        return "the instruction says " + " or ".join(f'"{shown(word)}"' for word in self.words)


Condition = Test | Around | Spoken
Clause = tuple[Condition, ...]


@dataclass(frozen=True)
class ScreenReading:
    """A description of the goal by clauses. The goal is reached if all conditions of one clause hold."""

    clauses: tuple[Clause, ...]

    def text(self) -> str:
        """The reading as JSON. Attributes of patterns that have their default values are left out."""
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
"""Price of a pattern before the prices of its parts are added. All prices are in nats."""
CLAUSE = 3.0
"""Price of each clause beyond one clause per task."""
AROUND = -0.1
"""Price of a condition on items. It is negative, since patterns in one item mostly belong together."""
REPEATED = 0.1
"""Price that replaces a negative price of a pattern in a clause. In addition, the lowest negative price for each part
of the instruction (`Shows`) is added once. For example, if two patterns with prices -0.5 and -0.25 both show a time,
they cost 0.1 + 0.1 - 0.5. So a clause gains nothing if it tests one part repeatedly."""
SPOKEN = 3.0
"""Price of a condition on words of the instruction. It is high, so that conditions on the screen are preferred."""
OR = 0.5
"""Price of each further word in a condition on words."""
ABSENT = 1.0
SEVERAL = 1.5
"""Additional prices of conditions that no node fits a pattern, or that several nodes fit a pattern."""

NAME = 0.25
KIND = 1.0
PACKAGE = 0.75
SAYS = 1.0
WORD = 1.5
"""Prices of the parts of a pattern: id, class, app, whole text, word. An id is cheap, because it shows the purpose of a
node better than class and text do."""
SHOWS = {"quote": 0.25, "time": 0.25, "number": 1.0, "name": 0.5, "word": 1.5}
SHOWS_ANYWHERE = {"quote": 0.25, "time": 0.25, "number": 1.5, "name": 1.0, "word": 0.0}
"""Prices of a pattern that tests whether a node shows a part of the instruction, by part. `SHOWS_ANYWHERE` is added if
the pattern has no id: without an id, for example, a number of the instruction may appear anywhere by chance."""
TOLD = {"quote": -0.5, "time": -0.5, "name": -0.25, "number": 0.25}
TOLD_ANYWHERE = 0.25
"""A telling pattern tests for a part of the instruction that goals show and other states seldom show. Its price in
`TOLD` replaces `CONDITION`, `NAME` and `SHOWS`. `TOLD_ANYWHERE` is added if the pattern has no id. Most prices in
`TOLD` are negative, because experts followed the instruction."""
ASIDE = 0.25
"""Additional price of texts beside the node instead of the node's own texts."""
BOUND = 2.5
"""Price of a limit on a number. It is high, since among many numbers some separate the goals by chance."""
CHOSEN = -0.5
EACH_CHOSEN = 0.1
"""Price of an exact set of chosen (checked or selected) children, and price of each child in the set. `CHOSEN` is
negative, because an exact set is a precise condition."""
FLAG = {"checked": -0.25, "unchecked": 0.0, "selected": -0.25, "focused": 1.0, "disabled": 0.25, "hidden": 1.0}
"""Prices of flags. Many tasks require that something is on or off. Focus and hidden nodes are mostly accidental."""
FIGURES = 1.5
"""Price of digits in a text, since such texts change from screen to screen."""
LONG = 1.0
LONG_TEXT = 40
"""Price of a text with more characters than `LONG_TEXT`."""
KNOWN = -0.5
"""Additional price of a pattern whose text or word contains a word of the experts' instructions."""


class ScreenPrices:
    """Prices of patterns, conditions, clauses and readings. They depend on the demonstrations.

    Args:
        spoken: all words of the experts' instructions.
        telling: the telling patterns (see `TOLD`).
        tasks: number of tasks that have goals. A reading may have one clause per task without an additional price.
    """

    def __init__(self, spoken: Collection[str], telling: Collection[NodePattern], tasks: int) -> None:
        self._spoken = {word for word in spoken if len(word) > 2}
        self._telling = frozenset(telling)
        self._tasks = tasks

    def reading(self, reading: ScreenReading) -> float:
        """Price of a reading, in nats."""
        return sum(map(self.clause, reading.clauses)) + CLAUSE * max(0, len(reading.clauses) - self._tasks)

    def clause(self, clause: Clause) -> float:
        """Price of a clause. Equal patterns count once. For negative prices of patterns see `REPEATED`."""
        tests = [one.pattern for one in clause if isinstance(one, Test) and one.count == 1]
        inside = [pattern for one in clause if isinstance(one, Around) for pattern in one.patterns]
        told: dict[Shows, float] = {}
        price = AROUND * sum(isinstance(one, Around) for one in clause)
        for pattern in dict.fromkeys([*tests, *inside]):  # not a set: sums in a fixed order are reproducible
            paid = self.pattern(pattern)
            if paid < 0:
                told[pattern.shows] = min(paid, told.get(pattern.shows, 0.0))
                paid = REPEATED
            price += paid
        others = [one for one in clause if isinstance(one, Spoken) or (isinstance(one, Test) and one.count != 1)]
        return price + sum(map(self.condition, others)) + sum(told.values())

    def condition(self, condition: Condition) -> float:
        """Price of a single condition. In an item, the price of each pattern is at least `REPEATED`."""
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
