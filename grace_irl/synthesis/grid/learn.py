"""Search for the most likely reading of the instructions under one plan, and the probabilities of words' meanings.

A reading gives meanings to words. A meaning is the index of a filter, a condition on one feature of a thing. A reading
also has constants, which are filters that apply under every instruction. All costs are in nats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from grace_irl.synthesis.grid.lexicon import Lexicon, Posterior
from grace_irl.synthesis.grid.reading import GridReading
from grace_irl.synthesis.grid.walk import Walk

HOT = 4.0
"""Temperature at the start of an annealed walk through readings."""
COLD = 0.3  # temperature at the end of an annealed walk
STEPS_PER_CHOICE = 12
"""Number of steps of an annealed walk per pair of a word and a filter. Fewer than 20 words count as 20."""
KICKS = 12
"""Number of kicks after an annealed walk. A kick tries to leave the reading at which the walk ends. The kick makes
a few random changes, whatever they cost, and then descends (`Walk.descend`). Every second kick exchanges a constant for
a meaning instead (`Walk.transfer`), if the reading has a constant for another feature than the event."""
KICK = (2, 6)
"""Range of the number of random changes of a kick; the second number is excluded."""
UNSEEN = 0.1
"""A search (`Seeker`) ends if at most this share of further rounds is expected to end at a new cost."""
AGAIN = 6
"""A search also ends if this number of its rounds ended at the lowest cost."""
MOST_ROUNDS = 20
"""Maximum number of rounds of a search."""
SAME = 1e-6  # costs that differ by less, in nats, are equal
DOUBT = 1.5
"""Divisor of costs before they become probabilities. Costs are too large, because correlated evidence is added up."""
PROFILE_MARGIN = 12.0
"""`_profile` changes the meaning of one word in the best reading. If the change raises the cost by less than this
number of nats, the meanings of the other words are optimised, too."""
FREE_MARGIN = 4.0
"""`_profile` optimises the meanings of all words but one (see `PROFILE_MARGIN`). If the cost is then less than this
number of nats above the cost of the best reading, all meanings and constants are optimised next."""


class Seeker:
    """A search for the most likely reading under one plan, in independent rounds.

    A round is an annealed walk, and kicks from the reading at which the walk ends. A single round often misses the best
    reading. If all rounds end at one cost, a few rounds are enough. If rounds end at many different costs, a better
    reading is likely to exist, so the search goes on (`settled`).

    Attributes:
        lexicon: the words and filters, and the cost of readings.
        cost: cost of the best reading so far, in nats.
        reading: the best reading so far.
    """

    def __init__(self, lexicon: Lexicon, events: Sequence[int], seed: int, known: Sequence[GridReading] = ()) -> None:
        """Begin a search.

        Args:
            lexicon: the words and filters, and the cost of readings.
            events: indices of the filters on events. A round starts from a reading with one of them and no meanings.
            seed: seed of the rounds.
            known: more readings to start from, such as the best ones under other plans.
        """
        self.lexicon = lexicon
        self.cost, self.reading = math.inf, GridReading({"event": events[0]})
        self._events = events
        self._seed = seed
        self._ends: list[float] = []  # the cost at which each round ended
        for reading in known:
            self._keep(*descend(lexicon, reading))

    def round(self) -> None:
        """Search once more, independently of the rounds before."""
        rng = np.random.default_rng([self._seed, len(self._ends)])
        self._ends.append(self._kicked(self._walked(rng), rng))

    def glance(self) -> None:
        """Search once without kicks.

        A glance takes a fourth of the time of a round, and does not count as a round. Its random numbers are those of
        the next round.
        """
        walk = self._walked(np.random.default_rng([self._seed, len(self._ends)]))
        walk.descend()
        self._keep(walk.cost, walk.reading)

    def _walked(self, rng: np.random.Generator) -> Walk:
        """Make an annealed walk. Return a new walk that starts at the best reading of the annealed walk."""
        start = GridReading({"event": self._events[len(self._ends) % len(self._events)]})
        return Walk(self.lexicon, Walk(self.lexicon, start).run(self.steps, HOT, COLD, rng))

    def settled(self, effort: float = 1.0) -> bool:
        """Whether more rounds are unlikely to find a better reading.

        If n rounds ended at w different costs, the expected share of further rounds that would end at a new cost is
        w (w + 1) / (n (n - 1)) (Boender and Rinnooy Kan, 1987).

        Args:
            effort: factor by which to multiply the number of rounds that are needed.
        """
        rounds, ends = len(self._ends) / effort, Counter(round(cost / SAME) for cost in self._ends)
        if rounds <= 1:
            return False
        unseen = len(ends) * (len(ends) + 1) / (rounds * (rounds - 1))
        agree = ends[round(self.cost / SAME)] / effort
        return unseen <= UNSEEN or agree >= AGAIN or rounds >= MOST_ROUNDS

    @property
    def steps(self) -> int:
        """Number of steps of an annealed walk. Each round and each glance makes one."""
        return STEPS_PER_CHOICE * max(20, len(self.lexicon.words)) * len(self.lexicon.features)

    def rounds(self, effort: float = 1.0) -> Iterator[Seeker]:
        """Do rounds until the search is settled. Yield the search after each round."""
        while not self.settled(effort):
            self.round()
            yield self

    def posterior(self) -> Posterior:
        """Compute the probability of each meaning of each word. This may also find a better reading."""
        lexicon = self.lexicon
        costs: dict[str, dict[int, float]] = {}
        while len(costs) < len(lexicon.words):
            word = lexicon.words[len(costs)]
            costs[word], found = _profile(lexicon, word, self.reading, self.cost)
            if found[0] < self.cost - SAME:
                # Another meaning of this word led to the best reading so far, so all words are tried again.
                (self.cost, self.reading), costs = found, {}
        self.cost = lexicon.total(self.reading)  # without the rounding errors of a walk
        return Posterior(self.reading, self.cost, {word: _chances(costs[word]) for word in lexicon.words})

    def _kicked(self, walk: Walk, rng: np.random.Generator) -> float:
        """Descend, then do `KICKS` kicks, and undo those that raise the cost. Return the cost of the final reading."""
        walk.descend()
        cost, reading = walk.cost, walk.reading
        for number in range(KICKS):
            if number % 2 and len(reading.constants) > 1:
                walk.transfer(rng)
            else:
                walk.kick(int(rng.integers(*KICK)), rng)
            walk.descend()
            if walk.cost <= cost + SAME:
                cost, reading = walk.cost, walk.reading
            else:
                walk = Walk(self.lexicon, reading)
        self._keep(cost, reading)
        return cost

    def _keep(self, cost: float, reading: GridReading) -> None:
        """Keep a reading if it is the best so far."""
        if cost < self.cost - SAME:
            self.cost, self.reading = cost, reading


def _chances(costs: dict[int, float]) -> dict[int, float]:
    """Probability of each meaning of a word, from the lowest cost of a reading with this meaning."""
    least = min(costs.values())
    weights = {column: float(np.exp((least - cost) / DOUBT)) for column, cost in costs.items()}
    total = sum(weights.values())
    return {column: weight / total for column, weight in weights.items()}


def descend(lexicon: Lexicon, reading: GridReading, frozen: str | None = None) -> tuple[float, GridReading]:
    """Improve a reading by single changes until none lowers the cost. Return the lowest cost and the final reading.

    Args:
        lexicon: the words and filters, and the cost of readings.
        reading: the reading.
        frozen: a word. The meaning of this word and the constants do not change. With None, all may change.
    """
    walk = Walk(lexicon, reading)
    walk.descend(-1 if frozen is None else lexicon.words.index(frozen))
    return walk.cost, walk.reading


def wander(lexicon: Lexicon, reading: GridReading, steps: int, rng: np.random.Generator) -> GridReading:
    """Walk from a reading by Metropolis' rule, and return the last reading.

    The temperature is constant, a random value from 1 to `HOT`. Above 1, the walk also reaches unlikely readings.
    Therefore repeated calls give different readings, even if few readings are likely.
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
            # The other words may now have new meanings. With these, `word` may have a better meaning than `column`.
            found = descend(lexicon, followed) if costs[column] < cost + FREE_MARGIN else (costs[column], followed)
            best = min(best, found, key=lambda one: one[0])
    return costs, best
