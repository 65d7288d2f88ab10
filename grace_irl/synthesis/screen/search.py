"""Search for the readings of lowest cost.

A reading describes the goal by clauses. A clause is a conjunction of conditions, and the goal is reached if any clause
holds. A beam search finds clauses. Combinations of these clauses are the first readings, and changes of single clauses
improve them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.screen.conditions import ConditionSpace, telling
from grace_irl.synthesis.screen.evidence import MISSED, ScreenEvidence
from grace_irl.synthesis.screen.pattern import NodePattern
from grace_irl.synthesis.screen.reading import Around, Clause, Condition, ScreenPrices, ScreenReading, Spoken, Test
from grace_irl.synthesis.screen.universe import Vocabulary

MAX_CLAUSES = 6  # maximum number of clauses in a reading
FIRST = 8
"""Maximum number of initial readings."""
STARTS = 12
"""Maximum number of clauses that are found for each group of goals, such as the goals of one task."""
CLEAN = (0.01, 0.03, 0.1)
"""Limits on the mistakes of a clause: the cost of the states that the clause wrongly marks as goals, divided by the
cost of missing the goals that the clause covers. For each limit, the clauses within the limit are combined to
cover all goals."""
PER_GROUP = 4
"""Number of clauses that each group of goals contributes to combinations."""
MAX_GROUPS = 24  # maximum number of groups of goals
MORE = 3
"""Maximum number of conditions that `SearchSpace.fuller` adds to each clause."""
SHARED = 0.95
"""A condition may be added to a clause only if it holds in at least this share of the goals that the clause covers."""


class SearchSpace:
    """The demonstrations as rows, the candidate conditions, and the cost of readings.

    A row is a pair of a screen and an instruction.

    Args:
        items: training demonstrations.
        system: whether screens include the system's own windows (the status bar).
    """

    def __init__(self, items: Sequence[Labelled], *, system: bool) -> None:
        self.system = system
        self.evidence = ScreenEvidence.of(items, system=system)
        words = {word for said in self.evidence.said[: self.evidence.experts] for word in said.words.split()}
        vocabulary = Vocabulary(self.evidence)
        self.parsimony = ScreenPrices(words, telling(self.evidence, vocabulary), self.evidence.tasks)
        self.conditions = ConditionSpace(self.evidence, vocabulary, self.parsimony)

    def readings(self) -> list[ScreenReading]:
        """Find initial readings, lowest cost first; [] if nothing separates goals from other states."""
        none = self.evidence.cost(np.zeros(len(self.evidence.pairs), np.bool_))
        # With several tasks, a clause for all goals is seldom right, and a clause for one task misses what tasks share.
        # So the search starts from clauses of both types, and from combinations of clauses that cover all goals.
        groups = [self._clauses(self._only(group), STARTS) for group in self._groups()]
        pool = list(dict.fromkeys(clause for clauses in groups for clause in clauses[:PER_GROUP]))
        starts = [self._covering(pool, clean) for clean in CLEAN]
        starts += [*((clause,) for clauses in groups for clause in clauses[:1])]
        starts += [(clause,) for clause in groups[0]]
        found = {self._improved(ScreenReading(start), pool) for start in dict.fromkeys(starts) if start}
        ranked = sorted(found, key=lambda reading: (self.cost(reading), reading.text()))
        return [reading for reading in ranked if self.cost(reading) < none][:FIRST]

    def _groups(self) -> list[NDArray[np.bool_]]:
        """Groups of goals, each as a mask `(rows,)`: all goals, the goals of each task, and the goals of each word.

        The goals of a word are the goals under instructions that contain the word.
        """
        goal = self.evidence.missed > 0
        groups = [
            goal,
            *(self.evidence.task == number for number in range(self.evidence.tasks)),
        ]
        spoken = [one for one in self.conditions.screens.conditions if isinstance(one, Spoken)]
        groups += [group for word in spoken if (group := goal & self.conditions.hits(word)).sum() > 1]
        return list({np.packbits(group).tobytes(): group for group in groups}.values())[:MAX_GROUPS]

    def _only(self, group: NDArray[np.bool_]) -> NDArray[np.float64]:
        """For each row, the cost of marking it as a goal minus the cost of not marking it, `(rows,)`.

        The costs are for a search of clauses for one group, so missing a goal outside the group costs nothing.
        """
        return np.asarray(self.evidence.wrong - self.evidence.missed * group, dtype=np.float64)

    def _covering(self, pool: Sequence[Clause], wrong: float) -> tuple[Clause, ...]:
        """Choose clauses that together cover the goals, one at a time.

        Each choice minimises the clause's price minus the weight of the newly covered goals. The weight of goals is the
        cost of missing them.

        Args:
            pool: the clauses.
            wrong: limit on a clause's mistakes (`CLEAN`).
        """
        clean = {}
        for clause in pool:
            hits = self.clause_hits(clause)
            if self.evidence.wrong[hits].sum() <= wrong * self.evidence.missed[hits].sum():
                clean[clause] = hits
        chosen: list[Clause] = []
        left = self.evidence.missed.copy()
        while clean and len(chosen) < MAX_CLAUSES:
            best = min(clean, key=lambda one: (self.parsimony.clause(one) - float(left[clean[one]].sum()), repr(one)))
            # The newly covered goals must weigh at least as much as all goals of one trajectory.
            if left[clean[best]].sum() < MISSED:
                break
            chosen.append(best)
            left[clean.pop(best)] = 0.0
        return tuple(chosen)

    def _improved(self, reading: ScreenReading, pool: Sequence[Clause]) -> ScreenReading:
        """Change one clause at a time as long as the cost decreases.

        In the result, clauses that cover more goals come first.
        """
        cost = self.cost(reading)
        while True:
            best = min(self._changed(reading, pool), key=self.cost, default=reading)
            if self.cost(best) >= cost - 1e-9:
                return ScreenReading(tuple(sorted(reading.clauses, key=self._covered)))
            reading, cost = best, self.cost(best)

    def _covered(self, clause: Clause) -> tuple[float, str]:
        """Sort key of a clause: the negative cost of missing the goals that it covers, then the clause's text."""
        return -float(self.evidence.missed[self.clause_hits(clause)].sum()), repr(clause)

    def _changed(self, reading: ScreenReading, pool: Sequence[Clause]) -> Iterator[ScreenReading]:
        """Generate readings with one clause added from the pool, one removed, or one replaced from the pool.

        The only clause of a reading is neither removed nor replaced.
        """
        clauses = reading.clauses
        more = [clause for clause in pool if clause not in clauses]
        if len(clauses) < MAX_CLAUSES:
            yield from (ScreenReading((*clauses, clause)) for clause in more)
        for at in range(len(clauses)):
            if len(clauses) > 1:
                yield ScreenReading(clauses[:at] + clauses[at + 1 :])
                yield from (ScreenReading((*clauses[:at], clause, *clauses[at + 1 :])) for clause in more)

    def cost(self, reading: ScreenReading) -> float:
        """Cost of a reading in nats: its mistakes and its price."""
        return self.evidence.cost(self.hits(reading)) + self.parsimony.reading(reading)

    def hits(self, reading: ScreenReading) -> NDArray[np.bool_]:
        """Whether a reading marks each row as a goal, `(rows,)`."""
        hits = np.stack([self.clause_hits(clause) for clause in reading.clauses])
        return np.asarray(hits.any(axis=0), dtype=np.bool_)

    def clause_hits(self, clause: Clause) -> NDArray[np.bool_]:
        """Whether all conditions of a clause hold in each row, `(rows,)`."""
        hits = np.stack([self.conditions.hits(condition) for condition in clause])
        return np.asarray(hits.all(axis=0), dtype=np.bool_)

    def _clauses(self, signed: NDArray[np.float64], count: int) -> list[Clause]:
        """The clauses of lowest cost. Clauses with conditions only on the instruction are left out.

        Args:
            signed: (rows,) cost of marking a row as a goal minus the cost of not marking it.
            count: maximum number of clauses.
        """
        screens = self.conditions.screens
        clauses = [
            _in_order([screens.conditions[column] for column in one.columns]) for one in screens.best(signed, 4 * count)
        ]
        looking = (clause for clause in clauses if any(not isinstance(one, Spoken) for one in clause))
        return list(dict.fromkeys(looking))[:count]

    def fuller(self, reading: ScreenReading) -> ScreenReading:
        """Add conditions to each clause of a reading, at most `MORE` to a clause.

        An added condition holds in nearly all goals that the clause covers, and in less than half of the rows that are
        no goals. It requires a node that shows a part of the instruction, is checked or selected, or has a checked or
        selected child.
        """
        return ScreenReading(tuple(self._fuller(clause) for clause in reading.clauses))

    def _fuller(self, clause: Clause) -> Clause:
        chosen = list(clause)
        for condition in self.additions(clause):
            if len(chosen) - len(clause) == MORE:
                break
            elsewhere = self.conditions.hits(condition)[self.evidence.missed == 0].mean()
            if isinstance(condition, Test) and condition.count and elsewhere < 0.5 and _told(condition):
                chosen.append(condition)
        return _in_order(chosen)

    def additions(self, clause: Clause) -> list[Condition]:
        """Candidates to add to a clause: conditions that hold in nearly all goals that the clause covers.

        Conditions with a low price that seldom hold in other states come first.
        """
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
    """A clause of these conditions in a fixed order, without conditions that another condition implies."""
    tested = [one.pattern for one in conditions if isinstance(one, Test) and one.count == 1]
    inside = [pattern for one in conditions if isinstance(one, Around) for pattern in one.patterns]
    implied = {one for one in tested if one in inside or any(_more(other, one) for other in (*tested, *inside))}
    kept = {one for one in conditions if not (isinstance(one, Test) and one.count == 1 and one.pattern in implied)}
    return tuple(sorted(kept, key=_order))


def _more(one: NodePattern, other: NodePattern) -> bool:
    """Whether the pattern `one` requires all that `other` requires, and more."""
    return one != other and one.implies(other)


def _order(condition: Condition) -> tuple[int, str]:
    """Sort key of a condition: first conditions on the instruction, then on present nodes, items and absent nodes."""
    rank = (
        0 if isinstance(condition, Spoken) else 2 if isinstance(condition, Around) else 1 + 2 * (condition.count == 0)
    )
    return rank, repr(condition)


def _told(condition: Test) -> bool:
    """Whether a condition is about nodes that show a part of the instruction, are checked or selected, or have checked
    or selected children."""
    pattern = condition.pattern
    return bool(pattern.shows) or pattern.flag in ("checked", "selected") or pattern.chosen is not None
