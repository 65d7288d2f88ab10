"""Rewards that pay at goals, for states that are vectors or records.

These rewards are predicates, or sums of terms if predicates do not suffice. A predicate is a conjunction of limits on
quantities, such as distances.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.fields import fixed_fields, source_fields
from grace_irl.demos.labels import Labelled
from grace_irl.evaluate.sizes import Rung, ladder
from grace_irl.propose.templates import written
from grace_irl.synthesis.vector.folds import Rewards, assign, barred, judged
from grace_irl.synthesis.vector.numbers import WIDTH, PlainNumbers
from grace_irl.synthesis.vector.predicate import WRONG, Evidence, Limit, Predicate, found_in
from grace_irl.synthesis.vector.quantities import Measures, Quantity, distinct, helpers, quantities, unique
from grace_irl.synthesis.vector.sketcher import AdditiveSketcher
from grace_irl.text import quoted

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LISTED = 24
"""Number of predicates of lowest cost to propose. The best one of each number of limits is proposed, too."""
MOST_STATES = 10_000
"""Approximate maximum number of states in the search. If there are more, goals and evenly spaced others are used."""
FOLDED = 6
"""The number that replaces `LISTED` in the search of a fold."""
ENOUGH = 0.99
"""If the best predicate reaches this mean AUC in folds, sums of terms are not tried."""
SURELY = 2.0
"""Sums of terms replace predicates if the best predicate is worse than the best sum by more than this number of
standard errors."""


def write_predicate(predicate: Predicate, chosen: Sequence[Quantity], numbers: PlainNumbers) -> str:
    """Write the program of a predicate. Its limits refer to the quantities `chosen` by index."""
    changes = list(dict.fromkeys(q for limit in predicate.limits if (q := chosen[limit.quantity]).form == "change"))
    rows, labels = (
        [],
        unique([f"{chosen[each.quantity].name(numbers)} {each.side} {each.limit:.12g}" for each in predicate.limits]),
    )
    for limit, label in zip(predicate.limits, labels, strict=True):
        quantity = chosen[limit.quantity]
        value = f"change_{changes.index(quantity)}" if quantity in changes else quantity.python(numbers)
        shown = f"{limit.limit:.12g}"
        lacks = f"{value} - {shown}" if limit.side == "<=" else f"{shown} - {_bracketed(value, quantity)}"
        row = f"            {quoted(label)}: max({lacks}, 0.0) / {limit.scale:.3g},"
        if len(row) > WIDTH:
            row = f"            {quoted(label)}:\n                max({lacks}, 0.0) / {limit.scale:.3g},"
        rows.append(row)
    measured = [f"        change_{i} = self.change({i}, {numbers.lookup(q.first)})" for i, q in enumerate(changes)]
    head = helpers({chosen[limit.quantity].form for limit in predicate.limits})
    values = {
        "limits": predicate.limits,
        "held": predicate.held,
        "rows": "\n".join(rows),
        "changes": "\n".join(measured),
        "helpers": head or ("import numpy as np\n\n" if changes else ""),
    }
    return written("grace_irl.synthesis", "predicate.py.j2", values)


@dataclass(frozen=True)
class Found:
    """The predicates for some episodes, best first, with their costs.

    The limits of predicates refer to `quantities` by index. For each episode, `values` has the values of the quantities
    in some states, `(states, quantities)`.
    """

    quantities: list[Quantity]
    values: list[Floats]
    predicates: list[Predicate]
    costs: list[float]

    @classmethod
    def of(
        cls,
        numbers: PlainNumbers,
        episodes: Sequence[Floats],
        goals: Sequence[Mask],
        expert: Sequence[bool],
        kept: int = LISTED,
    ) -> Found:
        """Search for predicates in episodes, each given by the plain numbers `(T+1, n)` of its states."""
        ends = np.concatenate([each[mask] for each, mask in zip(episodes, goals, strict=True)])
        if not len(ends):
            return cls([], [], [], [])
        chosen = quantities(numbers, episodes, ends, source_fields(episodes, expert))
        if not chosen:
            return cls([], [], [], [])
        rows = [_kept(mask, sum(map(len, goals))) for mask in goals]
        values = [
            np.stack([one.value(each)[kept] for one in chosen], axis=1)
            for each, kept in zip(episodes, rows, strict=True)
        ]
        thinned = tuple(mask[kept] for mask, kept in zip(goals, rows, strict=True))
        evidence = Evidence(tuple(values), thinned, whole=sum(map(len, thinned)) == sum(map(len, goals)))
        nats = np.array([one.nats(numbers) for one in chosen])
        found = found_in(chosen, evidence, np.where(fixed_fields(values, expert), np.inf, nats), kept)
        return cls(chosen, values, list(found), list(found.values()))


def _kept(goals: Mask, total: int) -> NDArray[np.int64]:
    """Indices of the states of one episode that the search uses: goals and evenly spaced others.

    Args:
        goals: whether each state of the episode is a goal.
        total: number of states of all episodes together.
    """
    stride = -(-total // MOST_STATES)
    return np.flatnonzero(goals | (np.arange(len(goals)) % stride == 0))


class GoalSketcher:
    """Sketcher of rewards that pay at goals, for vectors and records.

    The sketch of a predicate is a JSON object with the limits. Sketches of sums come from `AdditiveSketcher`. Folds
    decide whether the best predicate suffices.

    Args:
        items: the labelled training demonstrations.
        numbers: the plain numbers of the states.
    """

    def __init__(self, items: Sequence[Labelled], numbers: PlainNumbers) -> None:
        self._numbers = numbers
        self._episodes = [numbers.values(item.trajectory.states) for item in items]
        self._goals = [np.asarray(item.positive, dtype=np.bool_) for item in items]
        self._expert = [item.demonstration.role == "expert" for item in items]
        self._items = items
        self._folds = assign(self._expert)
        self._found = Found.of(numbers, self._episodes, self._goals, self._expert)

    @cached_property
    def _sums(self) -> AdditiveSketcher:
        return AdditiveSketcher(self._items, measures(self._numbers, self._episodes, self._goals, self._expert))

    @cached_property
    def rungs(self) -> list[Rung]:
        """The results of folds for each number of limits. Size 0 is the best predicate with any number of limits."""
        return [] if self._folds is None else ladder(self._judged)

    @cached_property
    def _judged(self) -> dict[int, Floats]:
        assert self._folds is not None
        return judged(self._folds, self._goals, self._of_sizes)

    def _of_sizes(self, inside: list[int]) -> dict[int, Rewards]:
        episodes, goals = [self._episodes[i] for i in inside], [self._goals[i] for i in inside]
        found = Found.of(self._numbers, episodes, goals, [self._expert[i] for i in inside], FOLDED)
        programs: dict[int, Rewards] = {}
        for predicate in found.predicates:
            programs.setdefault(len(predicate.limits), partial(self._rewards, predicate, found.quantities))
            programs.setdefault(0, programs[len(predicate.limits)])
        return programs

    def _rewards(self, predicate: Predicate, chosen: Sequence[Quantity], episode: int) -> Floats:
        numbers = self._episodes[episode]
        limits = tuple(_moved(limit, i) for i, limit in enumerate(predicate.limits))
        values = np.stack([chosen[limit.quantity].value(numbers) for limit in predicate.limits], axis=1)
        return Predicate(limits, predicate.held).rewards(values)

    @cached_property
    def suffices(self) -> bool:
        """Whether the best predicate suffices, so that no sum of terms is needed.

        By folds, it suffices if its mean AUC is at least `ENOUGH`, or if it is not surely worse than the best sum.
        Without results of folds, it suffices if its cost is less than half of `WRONG` per episode.
        """
        if not self._found.predicates:
            return False
        own = None if self._folds is None else self._judged.get(0)
        if own is None or self._folds is None:
            return self._found.costs[0] < WRONG * len(self._goals) / 2
        if own.mean() >= ENOUGH:
            return True
        sums = judged(self._folds, self._goals, self._sums.of_sizes)
        self._sums.rungs = ladder(sums)
        first = next(rung for rung in ladder({0: own, **sums}) if rung.size == 0)
        return first.worse <= SURELY * first.error

    @cached_property
    def _smallest(self) -> dict[int, Predicate]:
        """The best predicate of each number of limits."""
        return {len(each.limits): each for each in reversed(self._found.predicates)}

    def initial(self) -> list[str]:
        listed = self._found.predicates
        # The best predicate of each size comes early, so that every run scores it.
        predicates = [self._text(each) for each in dict.fromkeys([*listed[:1], *self._smallest.values(), *listed])]
        return predicates if self.suffices else [*self._sums.initial(), *predicates]

    def mutate(self, sketch: str, seed: int) -> str:
        """Draw a predicate, preferably one of low cost. For a sum, see `AdditiveSketcher`."""
        if _is_sum(sketch):
            return self._sums.mutate(sketch, seed)
        place = int(np.random.default_rng(seed).exponential(LISTED / 4))
        return self._text(self._found.predicates[min(place, len(self._found.predicates) - 1)])

    def source(self, sketch: str) -> str:
        if _is_sum(sketch):
            return self._sums.source(sketch)
        return write_predicate(*self._read(sketch), self._numbers)

    def prior(self, sketch: str) -> float:
        """For a predicate, the lowest cost minus the predicate's cost. For a sum, see `AdditiveSketcher`.

        If predicates suffice, sums are barred. Otherwise, predicates are barred.
        """
        if _is_sum(sketch):
            return barred(self._goals) if self.suffices else self._sums.prior(sketch)
        if not self.suffices:
            return barred(self._goals)
        costs = {self._text(each): cost for each, cost in zip(self._found.predicates, self._found.costs, strict=True)}
        return min(0.0, min(costs.values()) - costs[sketch])

    def reasoning(self, sketch: str) -> str:
        if _is_sum(sketch):
            return self._sums.reasoning(sketch)
        predicate, chosen = self._read(sketch)
        limits = (
            f"{chosen[each.quantity].name(self._numbers)} {each.side} {each.limit:g}" for each in predicate.limits
        )
        held = f" for {predicate.held} states" if predicate.held > 1 else ""
        return f"In goal states {' and '.join(limits)}{held}."

    def sizes(self) -> list[tuple[str, str, Rung, bool]] | None:
        """See `AdditiveSketcher.sizes`. The size of a predicate is its number of limits, here called conditions."""
        if not self.suffices:
            return self._sums.sizes()
        if self._folds is not None and not self.rungs:
            return None
        best = self._smallest
        chosen = len(self._found.predicates[0].limits)
        return [
            (f"{size} condition{'s' if size > 1 else ''}", self._text(best[size]), rung, size == chosen)
            for rung in self.rungs
            if (size := rung.size) in best
        ]

    def _text(self, predicate: Predicate) -> str:
        chosen = self._found.quantities
        limits = [
            [
                chosen[each.quantity].form,
                chosen[each.quantity].first,
                chosen[each.quantity].second,
                each.side,
                each.limit,
                each.scale,
            ]
            for each in predicate.limits
        ]
        return json.dumps({"limits": limits, "held": predicate.held})

    def _read(self, sketch: str) -> tuple[Predicate, list[Quantity]]:
        """The predicate of a sketch, and the quantities that it limits."""
        found = json.loads(sketch)
        chosen = [Quantity(form, tuple(first), tuple(second)) for form, first, second, *_ in found["limits"]]
        limits = tuple(Limit(i, *row[3:]) for i, row in enumerate(found["limits"]))
        return Predicate(limits, found["held"]), chosen


def _bracketed(value: str, quantity: Quantity) -> str:
    return f"({value})" if quantity.form == "difference" else value


def _moved(limit: Limit, index: int) -> Limit:
    return Limit(index, limit.side, limit.limit, limit.scale)


def _is_sum(sketch: str) -> bool:
    return sketch.startswith("[")


IN_SUMS = ("number", "difference", "distance", "norm", "angle", "turn")
"""Forms of quantities that terms of sums read. "change" is missing, because it needs the previous state."""


def measures(
    numbers: PlainNumbers, episodes: Sequence[Floats], positive: Sequence[Mask], expert: Sequence[bool]
) -> Measures:
    """The quantities that terms of sums read. `episodes` are plain numbers `(T+1, n)`.

    If all states of an episode are positive, only the last state counts as a goal. With too few episodes for folds,
    nothing shows whether further quantities help. Then terms read only plain numbers and distances between named
    groups of numbers.
    """
    ends = [each[mask][-1:] if mask.all() else each[mask] for each, mask in zip(episodes, positive, strict=True)]
    chosen = quantities(numbers, episodes, np.concatenate(ends), source_fields(episodes, expert))
    single = [Quantity("number", (i,)) for i in range(len(numbers.names))]
    others = [
        one
        for one in chosen
        if one.form in IN_SUMS and one not in single and not (one.form in ("norm", "distance") and len(one.first) == 1)
    ]
    if assign(expert) is None:
        named = numbers.groups()
        others = [one for one in others if one.form == "distance" and one.first in named and one.second in named]
    return Measures(numbers, tuple(distinct((*single, *others), np.concatenate(episodes))))
