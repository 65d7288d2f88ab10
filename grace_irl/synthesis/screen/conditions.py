"""The candidate conditions of the search: tests of whole screens, of items on them, and of the instruction.

A pattern is a test of one node of a screen. An item is the part of a screen around one node (`universe`), such as an
entry of a list. The id of this node is the item's anchor. A row is a screen under an instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.screen.evidence import ScreenEvidence
from grace_irl.synthesis.screen.pattern import NodePattern
from grace_irl.synthesis.screen.reading import Around, Condition, ScreenPrices, Spoken, Test
from grace_irl.synthesis.screen.universe import Universe, Vocabulary

SHARE = 0.08
"""Minimum share of a task's goals in which a candidate pattern holds. The pattern must also hold in at least two of
these goals, or in one if the task has only one."""
RARE = 0.05
"""The absence of a pattern is a candidate condition if the pattern holds in at most this share of all goals."""
MAX_PATTERNS = 1_500
"""Maximum number of candidate patterns for the items of one anchor, or for whole screens. If there are more, those that
hold in most goals are used. The patterns whose absence is a candidate condition are limited to this number, too."""
MAX_ANCHORS = 16
"""Maximum number of anchors, the ids of nodes around which there are items. If there are more, those that occur in most
goals are used."""
MAX_NEAR = 400
"""Maximum number of rows in a sample that shows how often patterns hold."""
TELLING = 0.6
"""Minimum share of a task's goals in which a telling pattern holds (see `telling`). The share of other states in which
the pattern holds is at most 1 - `TELLING`."""
PER_ANCHOR = 8
"""At most `PER_ANCHOR` times `MAX_ANCHORS` conjunctions become conditions, over all anchors together."""


def telling(evidence: ScreenEvidence, vocabulary: Vocabulary) -> set[NodePattern]:
    """Find the telling patterns. They test whether a node shows a part of the instruction, such as a name.

    A telling pattern holds in most goals of a task, and in few other states. Experts followed the instruction, so such
    a pattern probably belongs to the description of the goal.

    The other states are the task's expert states that are no goals. If there are none, the other states are all states
    that are no goals of the task.
    """
    found: set[NodePattern] = set()
    for task in range(evidence.tasks):
        goals = evidence.task == task
        # Rows of other instructions are left out, because their tasks may require other parts of the same screens.
        others = evidence.near & ~goals & np.isin(evidence.pairs[:, 1], evidence.pairs[goals, 1])
        shown = _shown(evidence, vocabulary, np.flatnonzero(goals))
        elsewhere = _shown(evidence, vocabulary, np.flatnonzero(others if others.any() else ~goals))
        found |= {one for one, share in shown.items() if share >= TELLING and elsewhere.get(one, 0.0) <= 1 - TELLING}
    return found


def _shown(evidence: ScreenEvidence, vocabulary: Vocabulary, rows: NDArray[np.int64]) -> dict[NodePattern, float]:
    """For each pattern that tests whether a node shows a part of the instruction: the share of rows with such a node.

    If there are more than `MAX_NEAR` rows, a sample of the rows is counted.
    """
    sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_NEAR)).astype(np.int64)]
    counted: Counter[NodePattern] = Counter()
    for screen, said in evidence.pairs[sample].tolist():
        fit = (vocabulary.patterns[i] for i in vocabulary.fit(set(evidence.sights[screen].looks), said))
        counted.update(pattern for pattern in fit if pattern.shows)
    return {pattern: count / len(sample) for pattern, count in counted.items()}


class ConditionSpace:
    """All candidate conditions, with the rows in which they hold.

    Args:
        evidence: the demonstrations as rows. A row is a screen under an instruction.
        vocabulary: the patterns of these rows.
        parsimony: prices of conditions.
    """

    def __init__(self, evidence: ScreenEvidence, vocabulary: Vocabulary, parsimony: ScreenPrices) -> None:
        self.evidence = evidence
        self.parsimony = parsimony
        self._vocabulary = vocabulary
        self._goals = np.flatnonzero(evidence.missed > 0)
        self._hits: dict[Condition, NDArray[np.bool_]] = {}
        # `_absent` gives numbers to patterns. All patterns must have numbers before the first table is made.
        self._absentees = self._absent()
        self._items = [self._around(anchor) for anchor in self._anchors()]
        self.screens = self._whole()

    def hits(self, condition: Condition) -> NDArray[np.bool_]:
        """Whether a candidate condition holds in each row, (rows,)."""
        return self._hits[condition]

    def _places(self, row: int, anchor: str) -> list[tuple[int, ...]]:
        """The places in a row: the items of an anchor, or the whole screen for the anchor "".

        A place is given by the looks of its nodes, as indices of `evidence.looks.all`. A look is a node's features
        (`NodeLook`).
        """
        sight = self.evidence.sights[self.evidence.pairs[row, 0]]
        if not anchor:
            return [sight.looks]
        return [sight.within(span) for span in sight.items.get(anchor, ())]

    def _anchors(self) -> list[str]:
        """Ids that repeat side by side on some goal screen, as in a list; the most frequent ones first."""
        goals = {int(screen) for screen in self.evidence.pairs[self._goals, 0]}
        repeated = {name for i in goals for name, spans in self.evidence.sights[i].items.items() if _apart(spans)}
        seen: Counter[str] = Counter()
        for row in self._goals.tolist():
            sight = self.evidence.sights[self.evidence.pairs[row, 0]]
            for name, spans in sight.items.items():
                # A condition on an item with a single node says no more than a test of this node.
                if name in repeated and any(end - start > 1 for start, end in spans):
                    seen[name] += self.evidence.missed[row]
        ranked = sorted(seen, key=lambda name: (-seen[name], name))
        return ranked[:MAX_ANCHORS]

    def _common(self, anchor: str) -> list[int]:
        """Numbers of the patterns that hold at a place of the anchor (`_places`) in enough goals of some task."""
        counted: Counter[int] = Counter()
        found: dict[int, None] = {}
        for task in range(self.evidence.tasks):
            goals = np.flatnonzero(self.evidence.task == task)
            rows = Counter(pattern for row in goals.tolist() for pattern in self._fit(row, anchor))
            # The minimum share refers to the goals of one task, so that a rare task has its own conditions.
            least = max(min(2, len(goals)), SHARE * len(goals))
            found |= {pattern: None for pattern in rows if rows[pattern] >= least}
            counted += rows
        return self._ranked(list(found), counted)[:MAX_PATTERNS]

    def _fit(self, row: int, anchor: str = "") -> set[int]:
        """Numbers of all patterns that hold at a place of the anchor (`_places`) in a row."""
        looks = {look for place in self._places(row, anchor) for look in place}
        return self._vocabulary.fit(looks, int(self.evidence.pairs[row, 1]))

    def _ranked(self, found: list[int], counted: Counter[int]) -> list[int]:
        patterns = self._vocabulary.patterns
        return sorted(found, key=lambda i: (-counted[i], self.parsimony.pattern(patterns[i]), patterns[i].key))

    def _table(self, anchor: str, patterns: list[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """For the places of an anchor: their rows, and whether each pattern holds at each place, (places, patterns)."""
        said = self.evidence.pairs[:, 1].tolist()
        places = [(row, place) for row in range(len(said)) for place in self._places(row, anchor)]
        table = self._vocabulary.table(((set(place), said[row]) for row, place in places), patterns)
        return np.array([row for row, _ in places], dtype=np.int64), table

    def _around(self, anchor: str) -> tuple[str, Universe]:
        common = self._common(anchor)
        owners, table = self._table(anchor, common)
        patterns = [self._vocabulary.patterns[i] for i in common]
        prices = np.array([self.parsimony.pattern(pattern) for pattern in patterns])
        return anchor, Universe(owners, len(self.evidence.pairs), [Test(one) for one in patterns], prices, table)

    def _whole(self) -> Universe:
        """The conditions on rows. Each is about a pattern, a count of nodes, a number, an item or the instruction."""
        common, absent = self._common(""), self._absentees
        owners, table = self._table("", [*common, *absent])
        table[:, len(common) :] ^= True
        conditions: list[Condition] = [Test(self._vocabulary.patterns[i]) for i in common]
        conditions += [Test(self._vocabulary.patterns[i], 0) for i in absent]
        parts = [table]
        for offered in (self._spoken(), self._counted(), self._bound(), self._conjoined()):
            conditions += offered
            parts += [np.stack(list(offered.values()), axis=1)] if offered else []
        table = np.concatenate(parts, axis=1)
        self._hits = {condition: table[:, column] for column, condition in enumerate(conditions)}
        prices = np.array([self.parsimony.condition(condition) for condition in conditions])
        return Universe(owners, len(self.evidence.pairs), conditions, prices, table)

    def _absent(self) -> list[int]:
        """Numbers of the patterns that seldom hold in goals, but hold in other states of experts."""
        had: Counter[int] = Counter()
        for row in self._goals.tolist():
            for pattern in self._fit(row):
                had[pattern] += self.evidence.missed[row]
        near = np.flatnonzero(self.evidence.near & (self.evidence.missed == 0))
        near = near[np.linspace(0, len(near) - 1, min(len(near), MAX_NEAR)).astype(np.int64)]
        seen = Counter(pattern for row in near.tolist() for pattern in self._fit(row))
        few = RARE * float(self.evidence.missed.sum())
        found = [pattern for pattern in seen if had[pattern] <= few and seen[pattern] >= min(2, len(near))]
        return self._ranked(found, seen)[:MAX_PATTERNS]

    def _spoken(self) -> dict[Condition, NDArray[np.bool_]]:
        """Conditions on words of the instruction, with the rows in which they hold.

        There is a condition for each word that some instructions of goals contain and others lack. Each task adds a
        condition that the instruction contains at least one word of a set. The set is chosen to fit many goals of the
        task and few goals of other tasks.
        """
        said = [frozenset(one.words.split()) for one in self.evidence.said]
        asked = {int(i) for i in self.evidence.pairs[self._goals, 1]}
        usual = [{word for word in words if len(word) > 2 and not word.isdecimal()} for words in said]
        telling = {word for i in asked for word in usual[i] if not all(word in said[other] for other in asked)}
        sets: set[tuple[str, ...]] = {(word,) for word in telling}
        for task in range(self.evidence.tasks):
            goals = Counter(self.evidence.pairs[self.evidence.task == task, 1].tolist())
            foreign = Counter(self.evidence.pairs[self.evidence.task >= 0, 1].tolist())
            foreign.subtract(goals)
            chosen: list[str] = []
            while gains := {
                word: sum(goals[i] - foreign[i] for i in asked if word in said[i] and said[i].isdisjoint(chosen))
                for word in telling
            }:
                best = max(sorted(gains), key=lambda word: gains[word])
                if gains[best] <= 0:
                    break
                chosen.append(best)
            if chosen:
                sets.add(tuple(sorted(chosen)))
        return {
            Spoken(words): np.array([not one.isdisjoint(words) for one in said])[self.evidence.pairs[:, 1]]
            for words in sorted(sets)
        }

    def _counted(self) -> dict[Condition, NDArray[np.bool_]]:
        """Conditions of the form "at least n nodes have this id (or this class), and this flag".

        The flag may be missing from a condition with an id. An example is "at least 3 checked boxes". Here n is the
        smallest number of such nodes in any goal. If n is 1, there is no condition.
        """
        counts = [self._occurrences(row) for row in range(len(self.evidence.pairs))]
        goals = [counts[row] for row in self._goals.tolist()]
        always = set.intersection(*(set(count) for count in goals)) if goals else set()
        offered: dict[Condition, NDArray[np.bool_]] = {}
        for pattern in sorted(always, key=repr):
            least = min(count[pattern] for count in goals)
            if least > 1:
                offered[Test(pattern, least)] = np.array([count[pattern] >= least for count in counts])
        return offered

    def _occurrences(self, row: int) -> Counter[NodePattern]:
        seen: Counter[NodePattern] = Counter()
        for number, count in Counter(self._places(row, "")[0]).items():
            look = self.evidence.looks.all[number]
            for flag in ("", *(flag for flag in ("checked", "selected") if flag in look.flags)):
                if look.name:
                    seen[NodePattern(name=look.name, flag=flag)] += count
                if look.kind and flag:
                    seen[NodePattern(kind=look.kind, flag=flag)] += count
        return seen

    def _bound(self) -> dict[Condition, NDArray[np.bool_]]:
        """Conditions on a number that a node with a certain id shows: it is at least a limit, or at most a limit.

        Each limit is the strictest one that all goals fulfil.
        """
        values = [self._numbers(row) for row in range(len(self.evidence.pairs))]
        goals = [values[row] for row in self._goals.tolist()]
        always = set.intersection(*(set(value) for value in goals)) if goals else set()
        offered: dict[Condition, NDArray[np.bool_]] = {}
        for name in sorted(always):
            least = min(max(value[name]) for value in goals)
            most = max(min(value[name]) for value in goals)
            above = [any(number >= least for number in value.get(name, ())) for value in values]
            below = [any(number <= most for number in value.get(name, ())) for value in values]
            offered[Test(NodePattern(name=name, bound=">=", limit=least))] = np.array(above)
            offered[Test(NodePattern(name=name, bound="<=", limit=most))] = np.array(below)
        return offered

    def _numbers(self, row: int) -> dict[str, set[float]]:
        """The numbers that the nodes with each id show, by id."""
        shown: dict[str, set[float]] = {}
        for number in set(self._places(row, "")[0]):
            look = self.evidence.looks.all[number]
            if look.name and look.numbers:
                shown.setdefault(look.name, set()).update(look.numbers)
        return shown

    def _conjoined(self) -> dict[Condition, NDArray[np.bool_]]:
        """Conditions of the form "some item fits all of these patterns": the best conjunctions for each anchor."""
        offered: dict[Condition, NDArray[np.bool_]] = {}
        for anchor, universe in self._items:
            for found in universe.best(self.evidence.signed, 4 * PER_ANCHOR):
                patterns = tuple(_pattern(universe.conditions[column]) for column in found.columns)
                if len(patterns) > 1 and len(offered) < MAX_ANCHORS * PER_ANCHOR:
                    offered[Around(anchor, patterns)] = found.hits
        return offered


def _apart(spans: Sequence[tuple[int, int]]) -> bool:
    """Whether there are two or more spans that do not overlap."""
    return len(spans) > 1 and all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


def _pattern(condition: Condition) -> NodePattern:
    assert isinstance(condition, Test)
    return condition.pattern
