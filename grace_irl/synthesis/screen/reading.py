"""A reading, as a program over screens says it: a goal is reached where all conditions of one of its clauses hold."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from grace_irl.synthesis.screen.pattern import NodePattern, shown


@dataclass(frozen=True)
class Test:
    """How many nodes of a screen fit a pattern: at least so many, or none at all."""

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
        """What the goal is, in words."""
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
