"""The truth of candidate conditions: for whole screens, or for the items around the nodes of one id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.screen.evidence import ScreenEvidence
from grace_irl.synthesis.screen.pattern import NodePattern, plain_patterns, told_patterns
from grace_irl.synthesis.screen.reading import Condition

BEAM = 16
"""Conjunctions that are grown further, of each length."""
MAX_LENGTH = 5
"""Conditions of one conjunction."""
GROWN = 24
"""Conditions that are tried on top of a conjunction, those of least cost."""


class Vocabulary:
    """Patterns by number, and those that each look fits."""

    def __init__(self, evidence: ScreenEvidence) -> None:
        self.patterns: list[NodePattern] = []
        self._evidence = evidence
        self._numbers: dict[NodePattern, int] = {}
        self._plain: dict[int, frozenset[int]] = {}
        self._told: dict[tuple[int, int], frozenset[int]] = {}
        self._numbered: dict[tuple[int, int], NDArray[np.int32]] = {}

    def fit(self, looks: Iterable[int], said: int) -> set[int]:
        """The numbers of all patterns that one of these looks fits under an instruction."""
        fit: set[int] = set()
        for look in looks:
            if look not in self._plain:
                self._plain[look] = self._of(plain_patterns(self._evidence.looks.all[look]))
            if (look, said) not in self._told:
                told = told_patterns(self._evidence.looks.all[look], self._evidence.said[said])
                self._told[look, said] = self._of(told)
            fit |= self._plain[look]
            fit |= self._told[look, said]
        return fit

    def table(self, places: Iterable[tuple[Iterable[int], int]], wanted: Sequence[int]) -> NDArray[np.bool_]:
        """(places, wanted): whether a wanted pattern holds at a place.

        Args:
            places: the looks of each place, and its instruction.
            wanted: numbers of patterns. All patterns that are ever wanted have a number before the first table.
        """
        columns = np.full(len(self.patterns), -1)
        columns[list(wanted)] = np.arange(len(wanted))
        plain: dict[frozenset[int], NDArray[np.bool_]] = {}  # the same place under another instruction
        rows = []
        for looks, said in places:
            place = frozenset(looks)
            if place not in plain:
                plain[place] = self._row(((look, -1) for look in place), columns, len(wanted))
            speaking = ((look, said) for look in place if self._evidence.looks.all[look].speaks)
            rows.append(plain[place] | self._row(speaking, columns, len(wanted)))
        return np.stack(rows) if rows else np.zeros((0, len(wanted)), dtype=np.bool_)

    def _row(self, keys: Iterable[tuple[int, int]], columns: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
        """(width,) the columns of the patterns that these looks fit: each with an instruction, or -1 without."""
        row = np.zeros(width, dtype=np.bool_)
        held = columns[np.concatenate([*map(self._known, keys), np.zeros(0, np.int32)])]
        row[held[held >= 0]] = True
        return row

    def _known(self, key: tuple[int, int]) -> NDArray[np.int32]:
        """The numbers of those patterns that have one and that a look fits."""
        if key not in self._numbered:
            look = self._evidence.looks.all[key[0]]
            offered = plain_patterns(look) if key[1] < 0 else told_patterns(look, self._evidence.said[key[1]])
            found = [self._numbers[pattern] for pattern in offered if pattern in self._numbers]
            self._numbered[key] = np.array(found, dtype=np.int32)
        return self._numbered[key]

    def _of(self, patterns: Iterable[NodePattern]) -> frozenset[int]:
        found = []
        for pattern in patterns:
            if pattern not in self._numbers:
                self._numbers[pattern] = len(self.patterns)
                self.patterns.append(pattern)
            found.append(self._numbers[pattern])
        return frozenset(found)


@dataclass(frozen=True)
class Conjunction:
    """Columns of a universe that hold together.

    Attributes:
        columns: their numbers, sorted.
        cost: nats, of what it gets wrong and of what it says, less the cost of taking nothing for a goal.
        hits: (rows,) of the evidence.
    """

    columns: tuple[int, ...]
    cost: float
    hits: NDArray[np.bool_] = field(compare=False, repr=False)


class Universe:
    """Places, each in a row of the evidence, and the conditions that hold there.

    Args:
        owners: (places,) the row that each place lies in, sorted.
        rows: how many rows there are.
        conditions: what each column says.
        prices: (columns,) nats for saying it.
        table: (places, columns): whether a column's condition holds at a place.
    """

    def __init__(
        self,
        owners: NDArray[np.int64],
        rows: int,
        conditions: Sequence[Condition],
        prices: NDArray[np.float64],
        table: NDArray[np.bool_],
    ) -> None:
        self.owners = owners
        self.rows = rows
        kept = _distinct(table, prices)
        self.conditions = [conditions[column] for column in kept]
        self.prices = prices[kept]
        self.table = np.ascontiguousarray(table[:, kept])
        self._single = len(owners) == rows
        self._floats = self.table.astype(np.float32) if self._single else None

    def hits(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(rows,) the rows that hold one of these places."""
        hits = np.zeros(self.rows, dtype=np.bool_)
        hits[self.owners[mask]] = True
        return hits

    def best(self, signed: NDArray[np.float64], count: int) -> list[Conjunction]:
        """The conjunctions of least cost that a beam search finds, best first, each with hits of its own.

        Args:
            signed: (rows,) what it costs more to take a row for a goal than not to.
            count: how many at most.
        """
        found: dict[bytes, Conjunction] = {}
        beam: list[tuple[tuple[int, ...], NDArray[np.bool_], float]] = [((), np.ones(len(self.owners), np.bool_), 0.0)]
        for _ in range(MAX_LENGTH):
            grown: dict[bytes, tuple[tuple[int, ...], NDArray[np.bool_], float]] = {}
            for columns, mask, before in beam:
                costs = self._costs(mask, signed) + self.prices + sum(self.prices[list(columns)])
                # A stable sort, here and below: equal costs are common, and the same data must give the same programs.
                for column in np.argsort(costs, kind="stable")[:GROWN].tolist():
                    cost = float(costs[column])
                    if column in columns or (columns and cost >= before):
                        continue
                    # Of conjunctions that hold in the same places one is enough: else the beam fills with synonyms.
                    narrower = mask & self.table[:, column]
                    key = np.packbits(narrower).tobytes()
                    if key not in grown or cost < grown[key][2] - 1e-9:
                        grown[key] = (tuple(sorted((*columns, column))), narrower, cost)
            beam = sorted(grown.values(), key=lambda one: (one[2], one[0]))[:BEAM]
            for columns, mask, cost in beam:
                # In the result those in the same rows are one, too: places within a row make no difference there.
                hits = self.hits(mask)
                key = np.packbits(hits).tobytes()
                if key not in found or cost < found[key].cost - 1e-9:
                    found[key] = Conjunction(columns, cost, hits)
            if not beam:
                break
        return sorted(found.values(), key=lambda one: (one.cost, one.columns))[:count]

    def _costs(self, mask: NDArray[np.bool_], signed: NDArray[np.float64]) -> NDArray[np.float64]:
        """(columns,) the cost of false goals if a column is added to a conjunction."""
        if self._floats is not None:
            rows = np.flatnonzero(mask & (signed != 0))
            return np.asarray(signed[rows].astype(np.float32) @ self._floats[rows], dtype=np.float64)
        owners = self.owners[mask]
        if not len(owners):
            return np.zeros(len(self.prices))
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        somewhere = np.logical_or.reduceat(self.table[mask], starts, axis=0)
        return np.asarray(signed[owners[starts]] @ somewhere, dtype=np.float64)


def _distinct(table: NDArray[np.bool_], prices: NDArray[np.float64]) -> list[int]:
    """Of columns that hold in the same places the cheapest; none that holds everywhere or nowhere."""
    cheapest: dict[bytes, int] = {}
    holds = table.sum(axis=0)
    packed = np.packbits(table, axis=0).T
    for column in np.lexsort((np.arange(len(prices)), prices)).tolist():
        if 0 < holds[column] < len(table):
            cheapest.setdefault(packed[column].tobytes(), column)
    return sorted(cheapest.values())
