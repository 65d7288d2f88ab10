"""Predicates, which are conjunctions of limits on quantities, and the search for predicates that hold only in goals.

Goal states are few. So among a thousand quantities, some may be extreme in all goals by chance. Therefore mistakes are
counted in whole episodes: a predicate is wrong about an episode if it holds in a state of the episode that is no goal.
Episodes of experts and negative episodes count in the same way.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.vector.quantities import Quantity

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Side = Literal["<=", ">="]


@dataclass(frozen=True)
class Limit:
    """The condition that a quantity is at most, or at least, a limit.

    Attributes:
        quantity: index of the quantity.
        side: "<=" or ">=".
        limit: the limit, in the quantity's unit.
        scale: typical distance from the limit in states that violate the condition, in the quantity's unit.
    """

    quantity: int
    side: Side
    limit: float
    scale: float = 1.0

    @property
    def sign(self) -> int:
        """1 for "at most", -1 for "at least"."""
        return 1 if self.side == "<=" else -1

    def lacking(self, values: Floats) -> Floats:
        """Distance of each state from the limit, divided by `scale`; 0 if the condition holds. `values` is `(N, q)`."""
        return np.maximum(self.sign * (values[:, self.quantity] - self.limit), 0.0) / self.scale


@dataclass(frozen=True)
class Predicate:
    """A conjunction of limits. All limits must hold in `held` states in a row."""

    limits: tuple[Limit, ...]
    held: int = 1

    def lacking(self, values: Floats) -> Floats:
        """For each state, the sum of the distances from all limits (`Limit.lacking`)."""
        return np.asarray(sum((limit.lacking(values) for limit in self.limits), np.zeros(len(values))))

    def rewards(self, values: Floats) -> Floats:
        """The rewards along an episode: 1 in states that fulfil the predicate, else minus `lacking`.

        If `held` is above 1, each reward other than 1 is also lower by 1 - k / `held`. Here k is the number of states
        in a row, up to this state, in which all limits hold.
        """
        return self.rewards_of_episodes(values, np.zeros(1, dtype=np.int64))

    def rewards_of_episodes(self, values: Floats, starts: NDArray[np.int64]) -> Floats:
        """The rewards of several episodes, one after the other. The episodes begin at the rows `starts`."""
        lacking = self.lacking(values)
        if self.held == 1:
            return np.where(lacking > 0, -lacking, 1.0)
        runs = run_lengths(lacking == 0, starts)
        return np.where(runs >= self.held, 1.0, runs / self.held - 1.0 - lacking)


def run_lengths(holds: Mask, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each state, the length of the run of states, ending with this state, in which a condition holds.

    Args:
        holds: `(N, ...)` whether each of several conditions holds in each state. Episodes lie one after the other.
        starts: the first row of each episode.
    """
    count = np.arange(1, len(holds) + 1).reshape(-1, *(1,) * (holds.ndim - 1))
    broken = np.where(holds, 0, count)
    broken[starts] = np.maximum(broken[starts], starts.reshape(-1, *(1,) * (holds.ndim - 1)))
    return np.asarray(count - np.maximum.accumulate(broken, axis=0))


@dataclass(frozen=True)
class Evidence:
    """Values of the quantities along labelled episodes.

    Attributes:
        values: the values `(T+1, q)` of each episode.
        goals: for each episode, whether each of its states is a goal.
        whole: whether the episodes are complete. If False, some states are left out.
    """

    values: tuple[Floats, ...]
    goals: tuple[Mask, ...]
    whole: bool = True

    @property
    def rows(self) -> Floats:
        """The values of all episodes, one after the other."""
        return np.concatenate(self.values)

    @property
    def positive(self) -> Mask:
        """`(N,)` whether each row is a goal."""
        return np.concatenate(self.goals)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each episode."""
        return np.cumsum([0, *map(len, self.goals)])[:-1]


WRONG = 5.0
"""Cost in nats of an episode in which a state that is no goal fulfils the predicate."""
RISING = 3.0
"""Cost in nats of an expert episode along which `Predicate.lacking` always rises. The cost is 0 if `lacking` always
falls, and half of `RISING` if its values are in random order."""
RISING_EXPERTS = 12
"""Maximum number of expert episodes for which `RISING` is charged. With more, their mean cost is charged this number of
times. Experts come to the goal in similar ways, so further experts are hardly more evidence, and should not lead to
more limits."""
NUMBER = 3.0
"""Cost in nats of the number in a limit."""
HELD = 8.0
"""Additional cost in nats of a predicate that must hold for several states."""
SAME = 1e-4
"""`PredicateSearch.rounded` counts the values of a quantity in goals as equal if their range is below about this number
of scales (`Limit.scale`)."""
ENOUGH = 8
"""`PredicateSearch.rounded` moves a limit beyond the values in goals, by at most twice the range of these values. With
more goals than `ENOUGH`, the maximum is smaller."""
BEAM = 30
"""Number of predicates that each step of the search extends."""
MOST_LIMITS = 4
"""Maximum number of limits of a predicate."""
MOST_HELD = 8
"""Maximum number of states in a row in which a predicate must hold."""
MOST_HELD_LIMITS = 2
"""Maximum number of limits of a predicate that must hold for several states."""


class PredicateSearch:
    """A beam search for the predicates of lowest cost.

    The cost of a predicate in nats is a sum:

    * `WRONG` for each episode with a state that is no goal and fulfils the predicate.
    * Up to `RISING` for each expert episode along which `lacking` rises, up to `RISING_EXPERTS` times.
    * The description length of the limits.
    * 6 times `WRONG` for each episode, times the share of its goals that violate the predicate. In `search`, no goal
      violates a predicate, because each limit is the extreme value in goals. Later, `rounded` moves limits away from
      the values in goals, so that new goals may fulfil the predicate, too.

    Args:
        quantities: the quantities.
        evidence: values of the quantities along labelled episodes.
        nats: `(q,)` description length of each quantity, without the nats of choosing the quantity and its limit;
            infinite if predicates must not use the quantity.
        held: number of states in a row in which predicates must hold. The last of these states is the goal.
    """

    def __init__(self, quantities: Sequence[Quantity], evidence: Evidence, nats: Floats, held: int = 1) -> None:
        self._held = held
        self._nats = nats
        self._quantities = quantities
        self._evidence = evidence
        rows, positive = evidence.rows, evidence.positive
        self._rows, self._positive, self._starts = rows, positive, evidence.starts
        self._fulfilled = _before(evidence.goals, held)
        goals, others = rows[self._fulfilled], rows[~self._fulfilled]
        candidates: list[Limit] = []
        sides: tuple[tuple[Side, int], ...] = (("<=", 1), (">=", -1))
        for i in np.flatnonzero(np.isfinite(nats)).tolist():
            for side, sign in sides:
                tight = sign * float((sign * goals[:, i]).max())
                beyond = sign * (others[:, i] - tight)
                if (beyond > 0).any() and self._allowed(i, side):
                    candidates.append(Limit(i, side, tight, float(beyond[beyond > 0].mean())))
        self.candidates = candidates
        self._choice = NUMBER + math.log(max(len(candidates), 2))
        columns = [limit.sign * (rows[:, limit.quantity] - limit.limit) <= 0 for limit in candidates]
        self._holds = np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), dtype=bool)
        self._goals = np.add.reduceat(positive, self._starts, dtype=np.int64)
        self._costs: dict[Predicate, float] = {}
        # Rows of some states of each expert episode, up to the first goal of the episode. For each of these episodes
        # except the first, `_ends` has the index in `_places` at which its rows begin.
        experts = [i for i, goals in enumerate(evidence.goals) if goals.any() and len(goals) > 1]
        sampled = [self._starts[i] + _until(evidence.goals[i]) for i in experts]
        self._places = np.concatenate([np.zeros(0, dtype=np.int64), *sampled])
        self._rising_price = RISING * min(1.0, RISING_EXPERTS / max(len(experts), 1))
        self._ends = np.cumsum([len(each) for each in sampled])[:-1]
        every = rows[self._places]
        lacking = [limit.lacking(every) for limit in candidates]
        self._lacking = np.stack(lacking, axis=1) if lacking else every

    def _allowed(self, index: int, side: Side) -> bool:
        """Whether limits may have this side. Distances and turns are small at goals, so ">=" is excluded."""
        return side == "<=" or self._quantities[index].form not in ("distance", "turn")

    def description(self, predicate: Predicate) -> float:
        """Description length of a predicate in nats."""
        quantities = float(sum(self._nats[limit.quantity] for limit in predicate.limits))
        return quantities + self._choice * len(predicate.limits) + HELD * (predicate.held > 1)

    def cost(self, predicate: Predicate) -> float:
        """The cost of a predicate in nats."""
        if predicate not in self._costs:
            rewards = predicate.rewards_of_episodes(self._rows, self._starts)
            parts = np.split(-rewards[self._places][:, None], self._ends)
            rising = sum(float(_rises(part)[0]) for part in parts)
            self._costs[predicate] = self._mistakes(rewards) + self._rising_price * rising + self.description(predicate)
        return self._costs[predicate]

    def mistakes(self, predicate: Predicate) -> float:
        """The part of `cost` for wrong episodes and violated goals, in nats."""
        return self._mistakes(predicate.rewards_of_episodes(self._rows, self._starts))

    def _mistakes(self, rewards: Floats) -> float:
        fails = np.add.reduceat((rewards < 1.0) & self._positive, self._starts, dtype=np.float64)
        missed = sum((fails / np.maximum(self._goals, 1)).tolist())
        return WRONG * (self._wrong_under(rewards) + 6 * float(missed))

    def _wrong_under(self, rewards: Floats) -> int:
        """Number of episodes with a state that is no goal and has the reward 1."""
        return int(np.logical_or.reduceat((rewards == 1.0) & ~self._positive, self._starts).sum())

    def search(self) -> dict[Predicate, float]:
        """The best predicates of each number of limits, with their costs."""
        found: dict[Predicate, float] = {}
        beam: list[tuple[int, ...]] = [()]
        most = MOST_LIMITS if self._held == 1 else MOST_HELD_LIMITS
        for size in range(1, most + 1):
            wrong: dict[tuple[int, ...], float] = {}
            for chosen in beam:
                counts = self._wrong(chosen)
                for i in np.argsort(counts, kind="stable")[: 4 * BEAM].tolist():
                    if i not in chosen:
                        wrong.setdefault(tuple(sorted((*chosen, i))), float(counts[i]))
            shortlist = sorted(wrong, key=lambda each: (wrong[each] * WRONG + self._price(each), each))[: 4 * BEAM]
            if not shortlist:
                break
            scored: dict[tuple[int, ...], float] = {}
            for each, rising in zip(shortlist, self._rising(shortlist), strict=True):
                predicate = Predicate(tuple(self.candidates[i] for i in each), self._held)
                cost = WRONG * wrong[each] + self._rising_price * float(rising) + self.description(predicate)
                found[predicate] = scored[each] = cost
            beam = sorted(scored, key=lambda each: (scored[each], each))[:BEAM]
            if min(found.values()) < self._choice * (size + 1):
                break
        return found

    def _price(self, chosen: tuple[int, ...]) -> float:
        return float(sum(self._nats[self.candidates[i].quantity] for i in chosen))

    def _rising(self, shortlist: Sequence[tuple[int, ...]]) -> Floats:
        """For each conjunction of candidates, the sum of `_rises` over experts."""
        lacking = np.stack([self._lacking[:, list(each)].sum(axis=1) for each in shortlist], axis=1)
        return np.asarray(sum((_rises(each) for each in np.split(lacking, self._ends)), np.zeros(len(shortlist))))

    def _wrong(self, chosen: tuple[int, ...]) -> NDArray[np.int64]:
        """For each candidate, the number of wrong episodes if the candidate is added to the chosen ones."""
        holds = np.asarray(self._holds[:, list(chosen)].all(axis=1))
        if self._held > 1:
            return self._wrong_held(holds)
        here = np.flatnonzero(holds & ~self._positive)
        counts = np.zeros((len(self._starts), len(self.candidates)), dtype=bool)
        episodes = np.searchsorted(self._starts, here, side="right") - 1
        for episode in np.unique(episodes).tolist():
            counts[episode] = self._holds[here[episodes == episode]].any(axis=0)
        return np.asarray(counts.sum(axis=0))

    def _wrong_held(self, chosen: Mask) -> NDArray[np.int64]:
        """Like `_wrong`, for several states in a row. `chosen` is whether all chosen candidates hold in each row."""
        holds = self._holds & chosen[:, None]
        others = np.where(self._positive[:, None], 0, run_lengths(holds, self._starts))
        return np.asarray((np.maximum.reduceat(others, self._starts, axis=0) >= self._held).sum(axis=0))

    def best(self, kept: int) -> dict[Predicate, float]:
        """Find the `kept` best predicates and the best one of each number of limits, and round their limits.

        The result maps predicates to their costs, lowest cost first.
        """
        found = self.search()
        order = sorted(found, key=lambda each: (found[each], len(each.limits)))
        first = {len(each.limits): each for each in reversed(order)}
        rounded: dict[Predicate, float] = {}
        for each in dict.fromkeys([*order[:kept], *first.values()]):
            one = self.rounded(each)
            rounded.setdefault(one, self.cost(one))
        return dict(sorted(rounded.items(), key=lambda each: (each[1], len(each[0].limits))))

    def rounded(self, predicate: Predicate) -> Predicate:
        """Drop superfluous limits, and move the others to round numbers between goals and the nearest other states."""
        limits = list(predicate.limits)
        for limit in predicate.limits:
            if len(limits) > 1:
                fewer = replace(predicate, limits=tuple(each for each in limits if each != limit))
                if self.cost(fewer) <= self.cost(replace(predicate, limits=tuple(limits))):
                    limits.remove(limit)
        whole = [Predicate(tuple(limits), predicate.held)]
        for i, limit in enumerate(limits):
            others = [each for each in whole[-1].limits if each != limit]
            near = np.ones(len(self._rows), dtype=bool)
            for each in others:
                near &= each.lacking(self._rows) == 0
            values = limit.sign * self._rows[:, limit.quantity]
            tight = limit.sign * limit.limit
            beyond = np.unique(values[near & ~self._fulfilled & (values > tight)])
            if self._held > 1:
                beyond = self._completing(whole[-1], i, beyond)
            gap = float(beyond[0]) - tight if len(beyond) else limit.scale / 2
            # The data do not show where in the gap the true limit is. New goals may lie beyond those of training, but
            # hardly far beyond, compared with the range of goals.
            spread = 2 * float(np.ptp(values[self._fulfilled])) * min(1.0, ENOUGH / self._positive.sum())
            gap = min(gap, spread) if spread > SAME * limit.scale else min(gap, limit.scale) / 2
            moved = roundest(tight + 1e-3 * gap, tight + (1 - 1e-3) * gap) * limit.sign + 0.0
            changed = list(whole[-1].limits)
            changed[i] = replace(limit, limit=moved)
            whole.append(replace(whole[-1], limits=tuple(changed)))
        return whole[-1]

    def _completing(self, predicate: Predicate, place: int, values: Floats) -> Floats:
        """Drop the first values: those to which a limit can move before one more episode becomes wrong.

        If limits must hold for several states in a row, a single state that a moved limit admits does no harm. An
        episode becomes wrong only if the state completes a run.

        Args:
            predicate: the predicate.
            place: index of the limit.
            values: values of the limit's quantity, times the limit's sign, in ascending order.
        """

        def wrong(limit: Limit) -> int:
            limits = (*predicate.limits[:place], limit, *predicate.limits[place + 1 :])
            return self._wrong_under(replace(predicate, limits=limits).rewards_of_episodes(self._rows, self._starts))

        limit = predicate.limits[place]
        before = wrong(limit)
        return values[
            bisect.bisect_left(values, True, key=lambda each: wrong(replace(limit, limit=limit.sign * each)) > before) :
        ]


def found_in(quantities: Sequence[Quantity], evidence: Evidence, nats: Floats, kept: int) -> dict[Predicate, float]:
    """Find the `kept` best predicates and the best one of each number of limits, all with round limits.

    The result maps predicates to their costs in nats, lowest cost first.

    If no predicate exists, or the mistakes of the best one cost `WRONG` or more, the search also tries predicates that
    must hold for several states. This requires complete episodes (`Evidence.whole`).
    """
    search = PredicateSearch(quantities, evidence, nats)
    rounded = search.best(kept)
    first = next(iter(rounded), None)
    if evidence.whole and (first is None or search.mistakes(first) >= WRONG):
        lengths = [int(np.argmax(goals)) + 1 for goals in evidence.goals if goals.any()]
        for held in range(2, min(MOST_HELD, *lengths) + 1):
            rounded |= PredicateSearch(quantities, evidence, nats, held).best(kept)
    order = sorted(rounded, key=lambda each: (rounded[each], each.held, len(each.limits)))
    of_sizes = {len(each.limits): each for each in reversed(order)}
    return {each: rounded[each] for each in order if each in order[:kept] or each in of_sizes.values()}


def _before(goals: Sequence[Mask], held: int) -> Mask:
    """`(N,)` whether each row is a goal, or one of the `held` - 1 states before a goal."""
    found = []
    for each in goals:
        wide = each.copy()
        for back in range(1, min(held, len(each))):
            wide[: len(each) - back] |= each[back:]
        found.append(wide)
    return np.concatenate(found)


SAMPLED = 30
"""Maximum number of states of an expert episode in which values of `lacking` are compared (`RISING`)."""


def _until(goals: Mask) -> NDArray[np.int64]:
    """Indices of evenly spaced states of an episode, up to its first goal."""
    return np.unique(np.linspace(0, int(np.argmax(goals)), SAMPLED).astype(np.int64))


def _rises(lacking: Floats) -> Floats:
    """For each column, the share of pairs of rows with a larger value in the later row. Equal values count half."""
    if len(lacking) < 2:
        return np.zeros(lacking.shape[1])
    first, second = _pairs(len(lacking))
    return np.asarray(np.add.reduce(np.sign(lacking[second] - lacking[first]) + 1, axis=0) / len(first) / 2)


@functools.cache
def _pairs(length: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the first and the second row of all pairs of `length` rows."""
    return np.triu_indices(length, 1)


def roundest(low: float, high: float) -> float:
    """The number in [low, high] with the fewest digits, near the middle. A last digit of 5 is preferred."""
    if low <= 0 <= high:
        return 0.0
    middle = (low + high) / 2
    for exponent in range(math.floor(math.log10(max(abs(low), abs(high)))), -16, -1):
        for steps in (5, 1):
            unit = steps * 10.0**exponent
            nearest = round(middle / unit) * unit
            if low <= nearest <= high:
                return float(f"{nearest:.12g}")
    return middle
