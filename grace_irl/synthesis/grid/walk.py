"""A walk through readings (interpretations of the instructions), which changes one part of a reading at a time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import NamedTuple

import numpy as np

from grace_irl.synthesis.grid.lexicon import Lexicon
from grace_irl.synthesis.grid.meaning import Feature
from grace_irl.synthesis.grid.reading import FEATURE_BITS, SPOKEN, SYNONYM, GridReading

LEAST = 1e-9
"""A change counts as an improvement if it lowers the cost by more than this number of nats. Sums are rounded, so
smaller differences mean nothing."""


class Change(NamedTuple):
    """A change of a reading: new meanings of one or two words, or a new constant.

    Attributes:
        meanings: pairs of a word's index and a filter's index; -1 removes the meaning.
        constant: a feature and a filter's index, if `meanings` is empty; -1 removes the constant.
    """

    meanings: tuple[tuple[int, int], ...] = ()
    constant: tuple[Feature, int] = ("event", -1)


class Walk:
    """A walk through readings. Each step changes a meaning or a constant, or exchanges the meanings of two words.

    Attributes:
        lexicon: the words and filters, and the cost of readings.
        cost: cost of the current reading, in nats.
    """

    def __init__(self, lexicon: Lexicon, reading: GridReading) -> None:
        self.lexicon = lexicon
        self._shares = [lexicon.shares[word] for word in lexicon.words]
        self._kinds = [feature != "event" for feature in lexicon.features] + [False]
        self._constants = dict(reading.constants)
        self._meanings = [reading.meanings.get(word, -1) for word in lexicon.words]
        # The number of words with each meaning. The last entry counts words without a meaning.
        self._users = [self._meanings.count(column) for column in [*range(len(lexicon.features)), -1]]
        self._features = lexicon.prices.pack(reading.meanings)
        self._named = lexicon.prices.of_features(self._features)
        self._keys = [0] * lexicon.count
        for shares, column in zip(self._shares, self._meanings, strict=True):
            for instruction, factor in shares:
                self._keys[instruction] += lexicon.units[column] * factor
        self._known = lexicon.costs(self._constants.values())
        self._costs = [self._cost(i, key) for i, key in enumerate(self._keys)]
        self._loads: dict[int, float] = {}  # by word: the sum of the costs of its instructions, if it was needed
        self.cost = sum(self._costs) + lexicon.price(reading)

    @property
    def reading(self) -> GridReading:
        """The current reading."""
        named = zip(self.lexicon.words, self._meanings, strict=True)
        return GridReading(dict(self._constants), {word: column for word, column in named if column >= 0})

    def weigh(self, change: Change, limit: float = math.inf) -> float:
        """The cost that a change adds, in nats; infinity if it is above `limit` by more than `LEAST`.

        Most changes of a good reading miss a goal in one of the first scenes. No scene costs less than 0. So the sum
        stops as soon as it is above the limit, whatever the other scenes cost.
        """
        if not change.meanings:
            return self._weigh_constant(*change.constant, limit)
        prices, keys, costs, known = self.lexicon.prices, self._keys, self._costs, self._known
        features = self._features + self._renamed(change.meanings)
        least = prices.at_least(features)
        synonyms = SYNONYM * self._synonyms(change.meanings)
        left = limit - (least - self._named) - synonyms + LEAST
        if len(change.meanings) == 1:
            ((word, column),) = change.meanings
            shares, step = self._shares[word], self.lexicon.units[column] - self.lexicon.units[self._meanings[word]]
            load = self._loads.get(word)
            if load is None:
                load = self._loads[word] = sum([costs[i] for i, _ in shares])
            left += load
        else:
            shares, step = self._moves(change.meanings), 1
            left += sum([costs[i] for i, _ in shares])
        if left < 0.0:
            return math.inf
        delta = 0.0
        for i, factor in shares:
            # This loop takes most of the search's time, so it looks known costs up without a call.
            key = keys[i] + step * factor
            cost = known[i].get(key)
            if cost is None or cost < 0.0:
                cost = self._cost(i, key, left)
            left -= cost
            if left < 0.0:
                return math.inf
            delta += cost - costs[i]
        price = prices.of_features(features)
        return delta + (price - self._named) + synonyms if left >= price - least else math.inf

    def _weigh_constant(self, feature: Feature, column: int, limit: float) -> float:
        """The cost that a change of a constant adds; infinity if it is above `limit`."""
        changed = self._with(feature, column)
        constants, known = tuple(changed.values()), self.lexicon.costs(changed.values())
        price = self.lexicon.prices.of_constants(changed) - self.lexicon.prices.of_constants(self._constants)
        left = limit - price + sum(self._costs) + LEAST
        delta = 0.0
        for i, key in enumerate(self._keys):
            if left < 0.0:
                return math.inf
            cost = self._found(known[i], i, key, constants, left)
            left -= cost
            delta += cost - self._costs[i]
        return delta + price if left >= 0.0 else math.inf

    def make(self, change: Change, delta: float) -> None:
        """Make a change that adds `delta` to the cost."""
        self.cost += delta
        self._loads.clear()
        if not change.meanings:
            self._constants = self._with(*change.constant)
            self._known = self.lexicon.costs(self._constants.values())
            self._costs = [self._cost(i, key) for i, key in enumerate(self._keys)]
            return
        self._features += self._renamed(change.meanings)
        self._named = self.lexicon.prices.of_features(self._features)
        for i, more in self._moves(change.meanings):
            self._keys[i] += more
            self._costs[i] = self._cost(i, self._keys[i])
        for word, column in change.meanings:
            self._users[self._meanings[word]] -= 1
            self._users[column] += 1
            self._meanings[word] = column

    def run(self, steps: int, start: float, end: float, rng: np.random.Generator) -> GridReading:
        """Walk by Metropolis' rule while the temperature falls from `start` to `end`.

        A change that raises the cost by d is made with the probability exp(-d / temperature). A draw (`_draw`) removes
        a word's meaning more often than it gives the word one particular meaning. So the walk prefers readings in which
        few words have meanings.

        Returns:
            The visited reading of lowest cost.
        """
        best, reading = self.cost, self.reading
        # Four random numbers per step are drawn in advance, so that a step's numbers depend only on the step's index.
        for step, (kind, one, two, luck) in enumerate(rng.random((steps, 4)).tolist()):
            change = self._draw(kind, one, two)
            if change is None:
                continue
            # Metropolis' rule accepts a change that adds at most this cost.
            limit = -math.log(luck) * start * (end / start) ** (step / steps) if luck else math.inf
            delta = self.weigh(change, limit)
            if delta <= limit:
                self.make(change, delta)
                if self.cost < best - LEAST:
                    best, reading = self.cost, self.reading
        return reading

    def kick(self, changes: int, rng: np.random.Generator) -> None:
        """Draw this number of random changes, and make them whatever they cost. A draw may give no change (`_draw`)."""
        for kind, one, two in rng.random((changes, 3)).tolist():
            if change := self._draw(kind, one, two):
                self.make(change, self.weigh(change))

    def transfer(self, rng: np.random.Generator) -> None:
        """Turn a random constant into the meaning of a random word, and descend while this meaning is fixed.

        A constant holds under every instruction. A reading with a constant may be a local minimum: in a better reading,
        words have the meaning instead, but each single change on the way to this reading raises the cost. The constant
        for the event is never removed.
        """
        features = sorted(feature for feature in self._constants if feature != "event")
        if features and self._meanings:
            feature, word = features[rng.integers(len(features))], int(rng.integers(len(self._meanings)))
            column = self._constants[feature]
            for change in (Change(constant=(feature, -1)), Change(((word, column),))):
                self.make(change, self.weigh(change))
            self.descend(word, steepest=True)

    def descend(self, frozen: int = -1, *, steepest: bool = False) -> None:
        """Make single changes until none lowers the cost.

        Most descents after a kick end where an earlier one did. So a descent also stops at a minimum that an earlier
        descent found.

        Args:
            frozen: index of a word. The meaning of this word and the constants do not change. With -1, all may change.
            steepest: True to make the change that lowers the cost most, False to make every change that lowers it.
        """
        minima = self.lexicon.minima
        # The place of the last change in the previous pass. Beyond this place, that pass found no change to make. So a
        # pass that makes no change up to this place need not go on.
        since = math.inf
        while self._state(frozen) not in minima:
            made = math.inf
            if steepest:
                least, best = -LEAST, None
                for _, change in self._neighbours(frozen):
                    delta = self.weigh(change, least)
                    if delta < least:
                        least, best = delta, change
                if best is not None:
                    self.make(best, least)
                    made = -1
            else:
                for place, change in self._neighbours(frozen):
                    if made == math.inf and place > since:
                        break
                    delta = self.weigh(change, -LEAST)
                    if delta < -LEAST:
                        self.make(change, delta)
                        made = place
                        if self._state(frozen) in minima:
                            return
            if made == math.inf:
                minima.add(self._state(frozen))
            since = made

    def _state(self, frozen: int) -> Hashable:
        """The current reading, and the word whose meaning must not change, as a key of `Lexicon.minima`."""
        return frozen, tuple(self._meanings), frozenset(self._constants.values())

    def _neighbours(self, frozen: int) -> Iterator[tuple[int, Change]]:
        """Generate the changes of one meaning or constant of the current reading, each with its place in a fixed order.

        The place depends on the word and the column alone, so it is the same for all readings.
        """
        columns = len(self.lexicon.features)
        for word in range(len(self._meanings)):
            if word != frozen:
                for column in range(-1, columns):
                    if self._meanings[word] != column:
                        yield word * (columns + 1) + column + 1, Change(((word, column),))
        if frozen < 0:
            for column, feature in enumerate(self.lexicon.features):
                if feature not in SPOKEN:
                    taken = self._constants.get(feature) == column
                    # A reading needs an event, so the event is never removed.
                    if not (taken and feature == "event"):
                        place = len(self._meanings) * (columns + 1) + column
                        yield place, Change(constant=(feature, -1 if taken else column))

    def _draw(self, kind: float, one: float, two: float) -> Change | None:
        """Choose a change of the current reading by three random numbers in [0, 1); None for no change."""
        words, columns = len(self._meanings), len(self.lexicon.features)
        if kind < 0.15 or not words:
            column = int(one * columns)
            feature = self.lexicon.features[column]
            taken = self._constants.get(feature) == column
            if feature in SPOKEN or (taken and feature == "event"):
                return None
            return Change(constant=(feature, -1 if taken else column))
        word = int(one * words)
        meaning = self._meanings[word]
        if kind < 0.3:
            # Exchange the meanings of two words. Two single changes would pass through a costly reading in between.
            other = int(two * words)
            theirs = self._meanings[other]
            return None if meaning == theirs else Change(((word, theirs), (other, meaning)))
        # About a quarter of these draws removes the meaning, because most words do not describe a thing.
        drawn = int(two * (columns + columns // 3 + 1))
        column = drawn if drawn < columns else -1
        return None if column == meaning else Change(((word, column),))

    def _with(self, feature: Feature, column: int) -> dict[Feature, int]:
        """The constants after a change of one of them."""
        changed = {**self._constants, feature: column}
        if column < 0:
            del changed[feature]
        return changed

    def _moves(self, meanings: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
        """Changes of keys by these new meanings: pairs of an instruction's index and the number to add to its key.

        The key of an instruction encodes the meanings of its words.
        """
        units = self.lexicon.units
        word, column = meanings[0]
        step = units[column] - units[self._meanings[word]]
        if len(meanings) == 1:
            return [(i, step * factor) for i, factor in self._shares[word]]
        moves = {i: step * factor for i, factor in self._shares[word]}
        word, column = meanings[1]
        step = units[column] - units[self._meanings[word]]
        for i, factor in self._shares[word]:
            moves[i] = moves.get(i, 0) + step * factor
        return list(moves.items())

    def _renamed(self, meanings: tuple[tuple[int, int], ...]) -> int:
        """The number that these new meanings add to the packed features of the words."""
        kinds, added = self.lexicon.prices.kinds, 0
        for word, column in meanings:
            added += kinds[column] - kinds[self._meanings[word]] << FEATURE_BITS * word
        return added

    def _synonyms(self, meanings: tuple[tuple[int, int], ...]) -> int:
        """The number of synonyms (words with a meaning that another word already has) that these new meanings add."""
        added, users = 0, self._users
        for word, column in meanings:
            before = self._meanings[word]
            users[before] -= 1
            added += (users[column] > 0 and self._kinds[column]) - (users[before] > 0 and self._kinds[before])
            users[column] += 1
        for word, column in meanings:
            users[column] -= 1
            users[self._meanings[word]] += 1
        return added

    def _cost(self, instruction: int, key: int, limit: float = math.inf) -> float:
        """Cost in nats of the scenes of one instruction with this key, under the current constants (see `_found`)."""
        return self._found(self._known[instruction], instruction, key, tuple(self._constants.values()), limit)

    def _found(
        self, known: dict[int, float], instruction: int, key: int, constants: tuple[int, ...], limit: float
    ) -> float:
        """Cost in nats of the scenes of one instruction with this key.

        The cost is looked up in `known`, or computed and kept there. The result is infinity if only a lower bound of
        the cost is known, and this bound is above `limit`.
        """
        cost = known.get(key)
        if cost is None or (cost < 0.0 and -cost <= limit):
            cost = known[key] = self.lexicon.cost(instruction, key, constants, limit)
        return cost if cost >= 0.0 else math.inf
