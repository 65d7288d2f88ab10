"""Looks for the readings of the demonstrations that cost least: conjunctions by beam search, clauses one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.propose.synthesis.ui.conditions import Conditions, telling
from grace_irl.propose.synthesis.ui.evidence import Evidence
from grace_irl.propose.synthesis.ui.parsimony import CLAUSE, Parsimony
from grace_irl.propose.synthesis.ui.reading import Around, Clause, Condition, Reading, Spoken, Test
from grace_irl.propose.synthesis.ui.universe import Vocabulary

MAX_CLAUSES = 6
FIRST = 8
"""Readings that are begun with different clauses."""
SHARED = 0.95
"""What holds in this share of a clause's goals can be asked for, too."""


class Found:
    """The rows, what can be said of them, and what readings cost.

    Args:
        items: training demonstrations.
        system: whether the system's own windows are looked at.
    """

    def __init__(self, items: Sequence[Labelled], *, system: bool) -> None:
        self.system = system
        self.evidence = Evidence.of(items, system=system)
        words = {word for said in self.evidence.said[: self.evidence.experts] for word in said.words.split()}
        vocabulary = Vocabulary(self.evidence)
        self.parsimony = Parsimony(words, telling(self.evidence, vocabulary))
        self.conditions = Conditions(self.evidence, vocabulary, self.parsimony)

    def readings(self) -> list[Reading]:
        """Readings to begin with, those of least cost first; none where nothing tells goals from other states."""
        none = self.evidence.cost(np.zeros(len(self.evidence.pairs), np.bool_))
        begun = self._clauses(self.evidence.signed, FIRST)
        found = {self._completed(clause) for clause in begun}
        ranked = sorted(found, key=lambda reading: (self.cost(reading), reading.text()))
        return [reading for reading in ranked if self.cost(reading) < none]

    def cost(self, reading: Reading) -> float:
        """What a reading gets wrong and what it says, in nats."""
        return self.evidence.cost(self.hits(reading)) + self.parsimony.reading(reading)

    def hits(self, reading: Reading) -> NDArray[np.bool_]:
        """(rows,) what a reading takes for goals."""
        hits = np.stack([self.clause_hits(clause) for clause in reading.clauses])
        return np.asarray(hits.any(axis=0), dtype=np.bool_)

    def clause_hits(self, clause: Clause) -> NDArray[np.bool_]:
        """(rows,) where all conditions of a clause hold."""
        hits = np.stack([self.conditions.hits(condition) for condition in clause])
        return np.asarray(hits.all(axis=0), dtype=np.bool_)

    def _clauses(self, signed: NDArray[np.float64], count: int) -> list[Clause]:
        """The clauses of least cost, each of which looks at the screen."""
        screens = self.conditions.screens
        clauses = [
            _in_order([screens.conditions[column] for column in one.columns]) for one in screens.best(signed, 4 * count)
        ]
        looking = (clause for clause in clauses if any(not isinstance(one, Spoken) for one in clause))
        return list(dict.fromkeys(looking))[:count]

    def _completed(self, first: Clause) -> Reading:
        """A reading that begins with a clause, and goes on with others as long as that costs less."""
        clauses = [first]
        hits = self.clause_hits(first)
        while len(clauses) < MAX_CLAUSES:
            left = np.where(hits, 0.0, self.evidence.signed)
            more = self._clauses(left, 1)
            if not more:
                break
            price = self.parsimony.clause(more[0]) + CLAUSE
            if float(left[self.clause_hits(more[0])].sum()) + price >= 0:
                break
            clauses.append(more[0])
            hits |= self.clause_hits(more[0])
        return Reading(tuple(clauses))

    def fuller(self, reading: Reading, most: int = 3) -> Reading:
        """The same reading with more of what all goals of each clause share: what the instruction says first."""
        return Reading(tuple(self._fuller(clause, most) for clause in reading.clauses))

    def _fuller(self, clause: Clause, most: int) -> Clause:
        chosen = list(clause)
        hits = self.clause_hits(clause)
        for condition in self.additions(clause):
            if len(chosen) - len(clause) == most:
                break
            narrower = hits & self.conditions.hits(condition)
            elsewhere = self.conditions.hits(condition)[self.evidence.missed == 0].mean()
            if isinstance(condition, Test) and condition.count and elsewhere < 0.5 and _told(condition):
                chosen.append(condition)
                hits = narrower
        return _in_order(chosen)

    def additions(self, clause: Clause) -> list[Condition]:
        """Conditions that hold in nearly all goals of a clause and are none of it, cheap and telling ones first."""
        hits = self.clause_hits(clause)
        covered = self.evidence.missed * hits
        screens = self.conditions.screens
        share = covered @ screens.table / max(1e-9, float(covered.sum()))
        wrong = self.evidence.wrong @ screens.table
        usual = wrong / max(1e-9, float(self.evidence.wrong.sum()))
        ranked = np.lexsort((np.arange(len(share)), screens.prices + 2 * usual))
        return [
            screens.conditions[column]
            for column in ranked.tolist()
            if share[column] >= SHARED and screens.conditions[column] not in clause
        ]


def _in_order(conditions: Sequence[Condition]) -> Clause:
    """A clause of these conditions, without those that another one implies."""
    held = {pattern for one in conditions if isinstance(one, Around) for pattern in one.patterns}
    kept = [one for one in conditions if not (isinstance(one, Test) and one.count == 1 and one.pattern in held)]
    return tuple(sorted(set(kept), key=_order))


def _order(condition: Condition) -> tuple[int, str]:
    """How conditions stand in a clause: the instruction first, then what is there, then what is not."""
    rank = (
        0 if isinstance(condition, Spoken) else 2 if isinstance(condition, Around) else 1 + 2 * (condition.count == 0)
    )
    return rank, repr(condition)


def _told(condition: Test) -> bool:
    """Whether a condition is about the instruction, or about what is on."""
    pattern = condition.pattern
    return bool(pattern.shows) or pattern.flag in ("checked", "selected") or pattern.chosen is not None
