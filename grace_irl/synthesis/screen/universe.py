"""Tables of the conditions that hold at places on screens, and a search for the best conjunctions of conditions.

A place is a whole screen, or one *item* on it, such as a row of a list. The item around a node is the largest part of
the screen that contains the node and no other node with the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.screen.evidence import ScreenEvidence
from grace_irl.synthesis.screen.pattern import NodePattern, plain_patterns, told_patterns
from grace_irl.synthesis.screen.reading import Condition

BEAM = 16
"""Number of conjunctions of each length that the beam search extends."""
MAX_LENGTH = 5
"""Maximum number of conditions in a conjunction."""
GROWN = 24
"""Number of conditions that the beam search tries to add to a conjunction: those that lead to the lowest cost."""


class Vocabulary:
    """All patterns, numbered from 0, and the patterns that each look fits.

    A pattern is a test of one node. A look consists of those features of a node that patterns can test (`NodeLook`).
    Methods receive looks as indices into `evidence.looks.all`, and instructions as indices into `evidence.said`.
    """

    def __init__(self, evidence: ScreenEvidence) -> None:
        self.patterns: list[NodePattern] = []
        self._evidence = evidence
        self._numbers: dict[NodePattern, int] = {}
        self._plain: dict[int, frozenset[int]] = {}
        self._told: dict[tuple[int, int], frozenset[int]] = {}
        self._numbered: dict[tuple[int, int], NDArray[np.int32]] = {}

    def fit(self, looks: Iterable[int], said: int) -> set[int]:
        """The numbers of all patterns that at least one of these looks fits under the instruction `said`."""
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
        """Whether each wanted pattern holds at each place, as an array `(places, wanted)`.

        Before the first table, call `fit` for all places whose patterns any table may want. A table may miss a pattern
        that gets its number later.

        Args:
            places: for each place, the looks of its nodes, and its instruction.
            wanted: numbers of the wanted patterns, from `fit`.
        """
        columns = np.full(len(self.patterns), -1)
        columns[list(wanted)] = np.arange(len(wanted))
        # Rows of the table by looks. They contain only the patterns that do not depend on the instruction.
        plain: dict[frozenset[int], NDArray[np.bool_]] = {}
        rows = []
        for looks, said in places:
            place = frozenset(looks)
            if place not in plain:
                plain[place] = self._row(((look, -1) for look in place), columns, len(wanted))
            speaking = ((look, said) for look in place if self._evidence.looks.all[look].speaks)
            rows.append(plain[place] | self._row(speaking, columns, len(wanted)))
        return np.stack(rows) if rows else np.zeros((0, len(wanted)), dtype=np.bool_)

    def _row(self, keys: Iterable[tuple[int, int]], columns: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
        """Whether at least one look in `keys` fits each wanted pattern, as an array `(width,)`.

        Args:
            keys: pairs of a look and an instruction. With -1 as the instruction, the patterns are those that do not
                depend on the instruction.
            columns: for each pattern, its column in the result; -1 if the pattern is not wanted.
            width: number of wanted patterns.
        """
        row = np.zeros(width, dtype=np.bool_)
        held = columns[np.concatenate([*map(self._known, keys), np.zeros(0, np.int32)])]
        row[held[held >= 0]] = True
        return row

    def _known(self, key: tuple[int, int]) -> NDArray[np.int32]:
        """The numbers of the patterns that a look fits. Patterns without a number are left out.

        Args:
            key: the look and the instruction, as in `_row`.
        """
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
    """A conjunction of conditions. The rows that it hits are marked as goals.

    A row is a pair of a screen and an instruction.

    Attributes:
        columns: sorted indices of the conditions in `Universe.conditions`.
        cost: cost of mistakes in nats, relative to marking no row, plus the prices of the conditions.
        hits: (rows,) whether each row has a place where all conditions hold.
    """

    columns: tuple[int, ...]
    cost: float
    hits: NDArray[np.bool_] = field(compare=False, repr=False)


class Universe:
    """A set of places, and a table of the conditions that hold at each place.

    The set has one of two forms: all whole screens, or all items around nodes with one id. Each place belongs to a row
    of the evidence, which is a pair of a screen and an instruction. A row can have any number of items, or none.

    Args:
        owners: (places,) index of the row to which each place belongs, sorted.
        rows: number of rows of the evidence.
        conditions: the condition of each column.
        prices: (columns,) price of each condition in nats.
        table: (places, columns) whether each condition holds at each place.
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
        self._single = np.array_equal(owners, np.arange(rows))
        self._floats = self.table.astype(np.float32) if self._single else None

    def hits(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each row has a place in `mask`, `(rows,)`.

        Args:
            mask: (places,) True for the places to use.
        """
        hits = np.zeros(self.rows, dtype=np.bool_)
        hits[self.owners[mask]] = True
        return hits

    def best(self, signed: NDArray[np.float64], count: int) -> list[Conjunction]:
        """Find the conjunctions of lowest cost by beam search, best first. No two of them hit the same rows.

        Args:
            signed: (rows,) cost of marking a row as a goal minus the cost of not marking it.
            count: maximum number of conjunctions.
        """
        found: dict[bytes, Conjunction] = {}
        beam: list[tuple[tuple[int, ...], NDArray[np.bool_], float]] = [((), np.ones(len(self.owners), np.bool_), 0.0)]
        for _ in range(MAX_LENGTH):
            grown: dict[bytes, tuple[tuple[int, ...], NDArray[np.bool_], float]] = {}
            for columns, mask, before in beam:
                costs = self._costs(mask, signed) + self.prices + sum(self.prices[list(columns)])
                # Equal costs are common. A stable sort keeps the result reproducible.
                for column in np.argsort(costs, kind="stable")[:GROWN].tolist():
                    cost = float(costs[column])
                    if column in columns or (columns and cost >= before):
                        continue
                    # Of conjunctions that hold at the same places, the beam keeps only the cheapest, to have room for
                    # different ones.
                    narrower = mask & self.table[:, column]
                    key = np.packbits(narrower).tobytes()
                    if key not in grown or cost < grown[key][2] - 1e-9:
                        grown[key] = (tuple(sorted((*columns, column))), narrower, cost)
            beam = sorted(grown.values(), key=lambda one: (one[2], one[0]))[:BEAM]
            for columns, mask, cost in beam:
                # Of conjunctions that hit the same rows, the result keeps the cheapest.
                hits = self.hits(mask)
                key = np.packbits(hits).tobytes()
                if key not in found or cost < found[key].cost - 1e-9:
                    found[key] = Conjunction(columns, cost, hits)
            if not beam:
                break
        return sorted(found.values(), key=lambda one: (one.cost, one.columns))[:count]

    def _costs(self, mask: NDArray[np.bool_], signed: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each condition, the cost of mistakes in nats if the condition extends a conjunction, `(columns,)`.

        Args:
            mask: (places,) whether the conjunction holds at each place.
            signed: costs as in `best`.
        """
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
    """Indices of the useful columns.

    Columns that hold everywhere or nowhere are not useful. Of columns that hold at the same places, only the cheapest
    is useful.
    """
    cheapest: dict[bytes, int] = {}
    holds = table.sum(axis=0)
    packed = np.packbits(table, axis=0).T
    for column in np.lexsort((np.arange(len(prices)), prices)).tolist():
        if 0 < holds[column] < len(table):
            cheapest.setdefault(packed[column].tobytes(), column)
    return sorted(cheapest.values())
