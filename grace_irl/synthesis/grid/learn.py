"""Search for the most likely reading of the instructions by annealing, and compute probabilities of words' meanings.

A reading gives meanings to words. A meaning is the index of a filter, a condition on one feature of a thing. A reading
also has constants, which are filters that apply under every instruction. All costs are in nats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from grace_irl.synthesis.grid.lexicon import GridReading, Lexicon, Posterior
from grace_irl.synthesis.grid.meaning import SEVERAL


class Walk:
    """A walk through readings. Each step changes a meaning or a constant, or exchanges the meanings of two words.

    Attributes:
        reading: the current reading.
    """

    def __init__(self, lexicon: Lexicon, reading: GridReading) -> None:
        self.lexicon = lexicon
        self.reading = reading
        # Costs are stored by scene (trajectory): a changed word affects only scenes whose instruction contains it.
        self._costs = [lexicon.scene_cost(reading, i) for i in lexicon.everywhere]
        self._price = lexicon.price(reading)

    @property
    def cost(self) -> float:
        """Cost of the current reading, in nats."""
        return sum(self._costs) + self._price

    def step(self, changed: GridReading, touched: Sequence[int], accept: Callable[[float], bool]) -> float | None:
        """Make a change if `accept` allows it. Return the additional cost, or None if the change is rejected.

        Args:
            changed: the reading after the change.
            touched: indices of the scenes whose cost may change.
            accept: function from the additional cost to whether the change is made.
        """
        new = {i: self.lexicon.scene_cost(changed, i) for i in touched}
        price = self.lexicon.price(changed)
        delta = sum(c - self._costs[i] for i, c in new.items()) + price - self._price
        if not accept(delta):
            return None
        self.reading, self._price = changed, price
        for i, c in new.items():
            self._costs[i] = c
        return delta

    def run(self, steps: int, start: float, end: float, rng: np.random.Generator) -> GridReading:
        """Walk by Metropolis' rule while the temperature falls from `start` to `end`.

        Returns:
            The visited reading of lowest cost.
        """
        best = (self.cost, self.reading)
        # Four random numbers per step are drawn in advance, so that a step's numbers depend only on the step's index.
        for step, draw in enumerate(rng.random((steps, 4)).tolist()):
            temperature = start * (end / start) ** (step / steps)
            changed, touched = self._change(*draw[:3])
            if changed is None:
                continue
            delta = self.step(changed, touched, partial(_metropolis, temperature, draw[3]))
            if delta is not None and delta < 0 and self.cost < best[0] - 1e-9:
                best = (self.cost, changed)
        return best[1]

    def _change(self, kind: float, one: float, two: float) -> tuple[GridReading | None, Sequence[int]]:
        """Choose a change of the current reading by three random numbers in [0, 1).

        Returns:
            The changed reading and the indices of the scenes that the change affects; None and () for no change.
        """
        lexicon, reading = self.lexicon, self.reading
        words, columns = lexicon.words, len(lexicon.features)
        if kind < 0.15 or not words:
            column = int(one * columns)
            feature = lexicon.features[column]
            taken = reading.constants.get(feature) == column
            # The constant for the event is never removed. "One of several" is no constant, because every thing passes
            # this filter.
            if lexicon.evidence.filters[column] == SEVERAL or (taken and feature == "event"):
                return None, ()
            return reading.with_constant(feature, -1 if taken else column), lexicon.everywhere
        word = words[int(one * len(words))]
        meaning = reading.meanings.get(word, -1)
        if kind < 0.3:
            # Exchange the meanings of two words. Two single changes would pass through a costly reading in between.
            other = words[int(two * len(words))]
            theirs = reading.meanings.get(other, -1)
            if meaning == theirs:
                return None, ()
            changed = reading.with_meaning(word, theirs).with_meaning(other, meaning)
            return changed, sorted({*lexicon.where[word], *lexicon.where[other]})
        # A quarter of the draws removes the meaning, because most words do not describe a thing.
        drawn = int(two * (columns + columns // 3 + 1))
        column = drawn if drawn < columns else -1
        if column == meaning:
            return None, ()
        return reading.with_meaning(word, column), lexicon.where[word]


def _metropolis(temperature: float, luck: float, delta: float) -> bool:
    """Whether a walk makes a change with additional cost `delta`, given a random number `luck` in [0, 1).

    At temperature 1 the walk visits readings in proportion to their probability.
    """
    return delta <= 0 or luck < np.exp(-delta / temperature)


HOT = 4.0
"""Temperature at the start of a walk."""
COLD = 0.3  # temperature at the end of a walk
CHAINS = 3  # number of walks of a search
STEPS_PER_CHOICE = 36
"""Number of steps of a walk per pair of a word and a filter."""
DOUBT = 1.5
"""Divisor of costs before they become probabilities. Costs are too large, as they add up correlated evidence."""
PROFILE_MARGIN = 12.0
"""In nats. In the best reading, one word is given another meaning. If that raises the cost by at most this much, the
meanings of the other words are optimised while this one stays fixed."""
FREE_MARGIN = 4.0
"""In nats. If the result costs at most this much more than the best reading, the meanings of all words are optimised
next, including the fixed one."""


def learn(lexicon: Lexicon, events: Sequence[int], seed: int, known: Sequence[GridReading] = ()) -> Posterior:
    """Find the most likely reading, and the probability of each meaning of a word.

    Args:
        lexicon: the words and filters, and the cost of readings.
        events: indices of the filters on events.
        seed: seed of the walks.
        known: more readings to start from, such as the best ones under other plans. A plan is a choice of the words at
            which instructions are split.
    """
    starts = [anneal(lexicon, events, seed), *(descend(lexicon, one) for one in known)]
    cost, reading = min(starts, key=lambda one: one[0])
    costs: dict[str, dict[int, float]] = {}
    while len(costs) < len(lexicon.words):
        word = lexicon.words[len(costs)]
        costs[word], found = _profile(lexicon, word, reading, cost)
        if found[0] < cost - 1e-6:
            # Another meaning of this word led to the best reading so far, so all words are tried again.
            (cost, reading), costs = found, {}
    return Posterior(reading, cost, {word: _chances(costs[word]) for word in lexicon.words})


def _chances(costs: dict[int, float]) -> dict[int, float]:
    """Probability of each meaning of a word, from the lowest cost of a reading with this meaning."""
    least = min(costs.values())
    weights = {column: float(np.exp((least - cost) / DOUBT)) for column, cost in costs.items()}
    total = sum(weights.values())
    return {column: weight / total for column, weight in weights.items()}


def anneal(lexicon: Lexicon, events: Sequence[int], seed: int, effort: float = 1.0) -> tuple[float, GridReading]:
    """Find a reading of low cost by several walks. Return its cost and the reading.

    Args:
        lexicon: the words and filters, and the cost of readings.
        events: indices of the filters on events. A walk starts from a reading with one of them and no meanings.
        seed: seed of the walks.
        effort: factor of the number of steps.
    """
    rng = np.random.default_rng(seed)
    steps = round(effort * STEPS_PER_CHOICE * max(20, len(lexicon.words)) * len(lexicon.features))
    best: tuple[float, GridReading] | None = None
    for chain in range(CHAINS):
        walk = Walk(lexicon, GridReading({"event": events[chain % len(events)]}))
        found = descend(lexicon, walk.run(steps, HOT, COLD, rng))
        if best is None or found[0] < best[0] - 1e-9:
            best = found
    assert best is not None
    return best


def descend(lexicon: Lexicon, reading: GridReading, frozen: str | None = None) -> tuple[float, GridReading]:
    """Improve a reading by single changes until none lowers the cost. Return its cost and the reading.

    Args:
        lexicon: the words and filters, and the cost of readings.
        reading: the reading.
        frozen: a word whose meaning does not change; the constants do not change either. None: all may change.
    """
    walk = Walk(lexicon, reading)
    # After each change that helps, all changes are tried again from the first one on.
    while any(
        walk.step(changed, touched, lambda delta: delta < -1e-9) is not None
        for changed, touched in lexicon.neighbours(walk.reading, frozen)
    ):
        pass
    return walk.cost, walk.reading


def wander(lexicon: Lexicon, reading: GridReading, steps: int, rng: np.random.Generator) -> GridReading:
    """Walk from a reading by Metropolis' rule, and return the last reading.

    The temperature is constant, a random value from 1 to `HOT`. Above 1, the walk also reaches unlikely readings. So
    many calls give many different readings, even if few are likely.
    """
    walk = Walk(lexicon, reading)
    temperature = float(rng.uniform(1.0, HOT))
    walk.run(steps, temperature, temperature, rng)
    return walk.reading


def _profile(
    lexicon: Lexicon, word: str, reading: GridReading, cost: float
) -> tuple[dict[int, float], tuple[float, GridReading]]:
    """Compute for each meaning of a word the lowest cost of a reading with this meaning.

    Args:
        lexicon: the words and filters, and the cost of readings.
        word: the word.
        reading: the best reading so far.
        cost: cost of this reading.

    Returns:
        The costs by meaning (-1 for none), and a pair: the lowest cost and the best reading that occurred.
    """
    costs: dict[int, float] = {}
    best = (cost, reading)
    for column in range(-1, len(lexicon.features)):
        if reading.meanings.get(word, -1) == column:
            costs[column] = cost
            continue
        changed = reading.with_meaning(word, column)
        costs[column] = lexicon.total(changed)
        if costs[column] < cost + PROFILE_MARGIN:
            costs[column], followed = descend(lexicon, changed, frozen=word)
            # With the new meanings of the other words, a third meaning of this word may be better.
            found = descend(lexicon, followed) if costs[column] < cost + FREE_MARGIN else (costs[column], followed)
            best = min(best, found, key=lambda one: one[0])
    return costs, best
