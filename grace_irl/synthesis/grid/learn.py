"""Readings found by annealing, and how sure each of their meanings is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grace_irl.synthesis.grid.lexicon import GridReading, Lexicon, Posterior
from grace_irl.synthesis.grid.meaning import SEVERAL


class Walk:
    """A Metropolis walk.

    Attributes:
        reading: its present one.
        best: the least cost it came by, and the reading there.
    """

    def __init__(self, lexicon: Lexicon, reading: GridReading, rng: np.random.Generator) -> None:
        self.lexicon = lexicon
        self.reading = reading
        self.rng = rng
        self.costs = [lexicon.scene_cost(reading, i) for i in lexicon.everywhere]
        self.price = lexicon.price(reading)
        self.best = (self.cost, reading)

    @property
    def cost(self) -> float:
        return sum(self.costs) + self.price

    def run(self, steps: int, start: float, end: float) -> None:
        """Walks while the temperature falls from start to end."""
        draws = self.rng.random((steps, 4))
        for step in range(steps):
            temperature = start * (end / start) ** (step / steps)
            changed, touched = self._change(draws[step])
            if changed is None:
                continue
            new = {i: self.lexicon.scene_cost(changed, i) for i in touched}
            price = self.lexicon.price(changed)
            delta = sum(c - self.costs[i] for i, c in new.items()) + price - self.price
            if delta <= 0 or draws[step, 3] < np.exp(-delta / temperature):
                self.reading, self.price = changed, price
                for i, c in new.items():
                    self.costs[i] = c
                if delta < 0 and self.cost < self.best[0] - 1e-9:
                    self.best = (self.cost, changed)

    def _change(self, draw: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[GridReading | None, Sequence[int]]:
        """A reading one change away, and the scenes that the change touches."""
        lexicon, reading = self.lexicon, self.reading
        kind, one, two = float(draw[0]), float(draw[1]), float(draw[2])
        words, columns = lexicon.words, len(lexicon.features)
        if kind < 0.15 or not words:
            column = int(one * columns)
            if lexicon.evidence.filters[column] == SEVERAL:
                return None, ()
            feature = lexicon.features[column]
            constants = dict(reading.constants)
            if constants.get(feature) == column:
                if feature == "event":
                    return None, ()
                del constants[feature]
            else:
                constants[feature] = column
            return GridReading(constants, reading.meanings), lexicon.everywhere
        word = words[int(one * len(words))]
        meanings = dict(reading.meanings)
        if kind < 0.3:
            other = words[int(two * len(words))]
            first, second = meanings.pop(word, None), meanings.pop(other, None)
            if first == second:
                return None, ()
            if second is not None:
                meanings[word] = second
            if first is not None:
                meanings[other] = first
            touched = sorted({*lexicon.where[word], *lexicon.where[other]})
            return GridReading(reading.constants, meanings), touched
        column = int(two * (columns + columns // 3 + 1))
        if meanings.get(word, -1) == (column if column < columns else -1):
            return None, ()
        meanings.pop(word, None)
        if column < columns:
            meanings[word] = column
        return GridReading(reading.constants, meanings), lexicon.where[word]


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
        walk = Walk(lexicon, GridReading({"event": events[chain % len(events)]}), rng)
        walk.run(steps, HOT, COLD)
        found = descend(lexicon, walk.best[1])
        if best is None or found[0] < best[0] - 1e-9:
            best = found
    assert best is not None
    return best


def descend(lexicon: Lexicon, reading: GridReading, frozen: str | None = None) -> tuple[float, GridReading]:
    """The cost of the nearest reading that no single change improves, and the reading. A frozen word (and with it the
    constants) stays as it is."""
    costs = [lexicon.scene_cost(reading, i) for i in lexicon.everywhere]
    price = lexicon.price(reading)
    improved = True
    while improved:
        improved = False
        for changed, touched in lexicon.neighbours(reading, frozen):
            new = {i: lexicon.scene_cost(changed, i) for i in touched}
            new_price = lexicon.price(changed)
            if sum(c - costs[i] for i, c in new.items()) + new_price - price < -1e-9:
                reading, price, improved = changed, new_price, True
                for i, c in new.items():
                    costs[i] = c
                break
    return sum(costs) + price, reading


def wander(lexicon: Lexicon, reading: GridReading, steps: int, rng: np.random.Generator) -> GridReading:
    """The end of a Metropolis walk from a reading: at temperature 1, one as likely as the data makes it.

    The temperature is drawn from 1 to `HOT`, so that variations do not run out if the data leaves few.
    """
    walk = Walk(lexicon, reading, rng)
    temperature = float(rng.uniform(1.0, HOT))
    walk.run(steps, temperature, temperature)
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
