"""Readings found by annealing, and how sure each of their meanings is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from grace_irl.synthesis.grid.lexicon import GridReading, Lexicon, Posterior
from grace_irl.synthesis.grid.meaning import SEVERAL


class Walk:
    """A place among readings, with what it costs, and steps from there.

    Attributes:
        reading: its present one.
    """

    def __init__(self, lexicon: Lexicon, reading: GridReading) -> None:
        self.lexicon = lexicon
        self.reading = reading
        # By scene: a change of one word costs anew only the scenes whose instruction has it.
        self._costs = [lexicon.scene_cost(reading, i) for i in lexicon.everywhere]
        self._price = lexicon.price(reading)

    @property
    def cost(self) -> float:
        """The cost of the present reading, nats."""
        return sum(self._costs) + self._price

    def step(self, changed: GridReading, touched: Sequence[int], accept: Callable[[float], bool]) -> float | None:
        """The nats that a change costs, if they are accepted and the change is made; else None.

        Args:
            changed: the reading after it.
            touched: scenes that may cost something else then.
            accept: whether to make a change, by what it costs.
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
        """Walks by Metropolis' rule while the temperature falls from start to end.

        Returns:
            The reading of least cost that it came by.
        """
        best = (self.cost, self.reading)
        # Drawn at once, four a step whatever becomes of it: so a step's numbers depend on its place alone.
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
        """A reading one change away, drawn by three numbers, and the scenes that the change touches."""
        lexicon, reading = self.lexicon, self.reading
        words, columns = lexicon.words, len(lexicon.features)
        if kind < 0.15 or not words:
            column = int(one * columns)
            feature = lexicon.features[column]
            taken = reading.constants.get(feature) == column
            # A reading without an event says nothing, and "one of several" holds for no single thing.
            if lexicon.evidence.filters[column] == SEVERAL or (taken and feature == "event"):
                return None, ()
            return reading.with_constant(feature, -1 if taken else column), lexicon.everywhere
        word = words[int(one * len(words))]
        meaning = reading.meanings.get(word, -1)
        if kind < 0.3:
            # Two words change places: by single changes that would lead over a reading in which both are wrong.
            other = words[int(two * len(words))]
            theirs = reading.meanings.get(other, -1)
            if meaning == theirs:
                return None, ()
            changed = reading.with_meaning(word, theirs).with_meaning(other, meaning)
            return changed, sorted({*lexicon.where[word], *lexicon.where[other]})
        # A quarter of the draws takes the meaning away: most words of an instruction say nothing about a thing.
        drawn = int(two * (columns + columns // 3 + 1))
        column = drawn if drawn < columns else -1
        if column == meaning:
            return None, ()
        return reading.with_meaning(word, column), lexicon.where[word]


def _metropolis(temperature: float, luck: float, delta: float) -> bool:
    """Whether a walk makes a change that costs `delta` nats: so at temperature 1 it is at a reading as often as the
    data makes it likely."""
    return delta <= 0 or luck < np.exp(-delta / temperature)


HOT = 4.0
"""Temperature at which a walk starts, nats."""
COLD = 0.3
CHAINS = 3
STEPS_PER_CHOICE = 36
"""Steps of a walk per (word, filter) pair."""
DOUBT = 1.5
"""By how much the costs overstate what is known: correlated evidence (a thing faced twice) counts as independent."""
PROFILE_MARGIN = 12.0
"""Meanings that cost more than this (nats) beyond the best are not looked at twice."""
FREE_MARGIN = 4.0
"""… and beyond this, once all other words have followed, the word itself is not set free."""


def learn(lexicon: Lexicon, events: Sequence[int], seed: int, known: Sequence[GridReading] = ()) -> Posterior:
    """The likeliest reading, and how sure each of its meanings is.

    Args:
        known: readings to begin from as well, such as those under other plans.
    """
    starts = [anneal(lexicon, events, seed), *(descend(lexicon, one) for one in known)]
    cost, reading = min(starts, key=lambda one: one[0])
    costs: dict[str, dict[int, float]] = {}
    while len(costs) < len(lexicon.words):
        word = lexicon.words[len(costs)]
        costs[word], found = _profile(lexicon, word, reading, cost)
        if found[0] < cost - 1e-6:
            # Another meaning of one word leads to a better reading than all that were known: try the other words again.
            (cost, reading), costs = found, {}
    return Posterior(reading, cost, {word: _chances(costs[word]) for word in lexicon.words})


def _chances(costs: dict[int, float]) -> dict[int, float]:
    """The chances of meanings by what they cost."""
    least = min(costs.values())
    weights = {column: float(np.exp((least - cost) / DOUBT)) for column, cost in costs.items()}
    total = sum(weights.values())
    return {column: weight / total for column, weight in weights.items()}


def anneal(lexicon: Lexicon, events: Sequence[int], seed: int, effort: float = 1.0) -> tuple[float, GridReading]:
    """The best of walks from readings in which each of these events (filter indices) is the usual one, and its cost."""
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
    """The cost of the nearest reading that no single change improves, and the reading. A frozen word (and with it the
    constants) stays as it is."""
    walk = Walk(lexicon, reading)
    # The first change that improves is made, and all are looked at again: so the order of words and filters decides.
    while any(
        walk.step(changed, touched, lambda delta: delta < -1e-9) is not None
        for changed, touched in lexicon.neighbours(walk.reading, frozen)
    ):
        pass
    return walk.cost, walk.reading


def wander(lexicon: Lexicon, reading: GridReading, steps: int, rng: np.random.Generator) -> GridReading:
    """The end of a Metropolis walk from a reading: at temperature 1, one as likely as the data makes it.

    The temperature is drawn from 1 to `HOT`, so that variations do not run out if the data leaves few.
    """
    walk = Walk(lexicon, reading)
    temperature = float(rng.uniform(1.0, HOT))
    walk.run(steps, temperature, temperature, rng)
    return walk.reading


def _profile(
    lexicon: Lexicon, word: str, reading: GridReading, cost: float
) -> tuple[dict[int, float], tuple[float, GridReading]]:
    """The least cost with each meaning of a word (-1: none), all other words free to follow; and the best of what it
    comes by, its cost first."""
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
            # Once the others have followed, the word may do better by yet another meaning.
            found = descend(lexicon, followed) if costs[column] < cost + FREE_MARGIN else (costs[column], followed)
            best = min(best, found, key=lambda one: one[0])
    return costs, best
