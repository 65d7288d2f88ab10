"""Readings of instructions: which constants hold, what each word means. Found by annealing, weighed by sampling.

The costs of `Evidence` are negative log-probabilities, so a Metropolis walk at temperature 1 visits readings as often
as the data makes them
likely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from grace_irl.propose.synthesis.grid.evidence import (
    CLASS,
    CLASS_ELSE,
    CONSTANT,
    CONSTANT_SIDE,
    FRAME,
    MEANING,
    ORDER,
    SYNONYM,
    Columns,
    Evidence,
)
from grace_irl.propose.synthesis.grid.meaning import SEVERAL, Feature, Plan

HOT = 4.0
"""Temperature at which a walk starts, nats."""
COLD = 0.3
CHAINS = 3
STEPS_PER_CHOICE = 36
"""Steps of a walk per (word, filter) pair."""
DOUBT = 1.5
"""By how much the costs overstate what is known: correlated evidence (a thing faced twice) counts as independent."""
PROFILE_MARGIN = 8.0
"""Meanings that cost more than this (nats) beyond the best are not looked at twice."""

Constants = dict[Feature, int]
Meanings = dict[str, int]


@dataclass
class Reading:
    """A reading in the making: filter indices for constants (by feature) and for words."""

    constants: Constants
    meanings: Meanings = field(default_factory=dict)


@dataclass
class Posterior:
    """What the walks found.

    Attributes:
        best: the likeliest reading.
        cost: its cost, nats.
        words: word -> filter index -> probability by profile likelihood; -1 stands for no meaning.
    """

    best: Reading
    cost: float
    words: dict[str, dict[int, float]]


class Lexicon:
    """Learns readings from evidence, for one plan."""

    def __init__(self, evidence: Evidence, plan: Plan) -> None:
        self.evidence = evidence
        self.plan = plan
        self.words = sorted({word for scene in evidence.scenes for word in scene.words})
        self._features = [f.feature for f in evidence.filters]
        self._by_feature: dict[Feature, list[int]] = {}
        for column, feature in enumerate(self._features):
            self._by_feature.setdefault(feature, []).append(column)
        self._parts = [plan.steps(scene.words) for scene in evidence.scenes]
        self._instructions = Counter(scene.words for scene in evidence.scenes)
        self._where = {w: [i for i, s in enumerate(evidence.scenes) if w in s.words] for w in self.words}
        self._peers = substitutes(self._instructions)
        self._prices: dict[tuple[tuple[str, Feature], ...], float] = {}

    def learn(self, events: Sequence[int], seed: int) -> Posterior:
        """The likeliest reading, and how sure each of its meanings is."""
        cost, reading = self.anneal(events, seed)
        words = {}
        for word in self.words:
            costs = self._profile(word, reading, cost)
            least = min(costs.values())
            weights = {column: float(np.exp((least - c) / DOUBT)) for column, c in costs.items()}
            total = sum(weights.values())
            words[word] = {column: weight / total for column, weight in weights.items()}
        return Posterior(reading, cost, words)

    def anneal(self, events: Sequence[int], seed: int, effort: float = 1.0) -> tuple[float, Reading]:
        """The best of walks from readings in which each of these events (filter indices) is the usual one."""
        rng = np.random.default_rng(seed)
        steps = round(effort * STEPS_PER_CHOICE * max(20, len(self.words)) * len(self._features))
        best: tuple[float, Reading] | None = None
        for chain in range(CHAINS):
            walk = _Walk(self, Reading({"event": events[chain % len(events)]}), rng)
            walk.run(steps, HOT, COLD)
            found = self.descend(walk.best[1])
            if best is None or found[0] < best[0] - 1e-9:
                best = found
        assert best is not None
        return best

    def _profile(self, word: str, reading: Reading, cost: float) -> dict[int, float]:
        """The least cost with each meaning of a word (-1: none), all other words free to follow."""
        costs = {}
        for column in range(-1, len(self._features)):
            if reading.meanings.get(word, -1) == column:
                costs[column] = cost
                continue
            changed = Reading(reading.constants, _with(reading.meanings, word, column))
            rough = self.total(changed)
            costs[column] = rough
            if rough < cost + PROFILE_MARGIN:
                costs[column] = self.descend(changed, frozen=word)[0]
        return costs

    def descend(self, reading: Reading, frozen: str | None = None) -> tuple[float, Reading]:
        """The nearest reading that no single change improves, and its cost. A frozen word (and with it the constants)
        stays as it is."""
        costs = [self.scene_cost(reading, i) for i in range(len(self._parts))]
        price = self.price(reading)
        improved = True
        while improved:
            improved = False
            for changed, touched in self._neighbours(reading, frozen):
                new = {i: self.scene_cost(changed, i) for i in touched}
                new_price = self.price(changed)
                if sum(c - costs[i] for i, c in new.items()) + new_price - price < -1e-9:
                    reading, price, improved = changed, new_price, True
                    for i, c in new.items():
                        costs[i] = c
                    break
        return sum(costs) + price, reading

    def _neighbours(self, reading: Reading, frozen: str | None) -> Iterator[tuple[Reading, Sequence[int]]]:
        """Readings one change away, with the scenes that the change touches."""
        for word in self.words:
            if word != frozen:
                for column in range(-1, len(self._features)):
                    if reading.meanings.get(word, -1) != column:
                        changed = Reading(reading.constants, _with(reading.meanings, word, column))
                        yield changed, self._where[word]
        if frozen is None:
            everywhere = range(len(self._parts))
            for column, feature in enumerate(self._features):
                if self.evidence.filters[column] == SEVERAL:
                    continue
                if reading.constants.get(feature) != column:
                    yield Reading({**reading.constants, feature: column}, reading.meanings), everywhere
                elif feature != "event":
                    fewer = {k: v for k, v in reading.constants.items() if k != feature}
                    yield Reading(fewer, reading.meanings), everywhere

    def wander(self, reading: Reading, steps: int, rng: np.random.Generator) -> Reading:
        """Where a Metropolis walk gets from a reading: at temperature 1, one as likely as the data makes it.

        The temperature is drawn from 1 to `HOT`, so that variations do not run out where the data leaves few.
        """
        walk = _Walk(self, reading, rng)
        temperature = float(rng.uniform(1.0, HOT))
        walk.run(steps, temperature, temperature)
        return walk.reading

    def total(self, reading: Reading) -> float:
        """The cost of a reading, nats."""
        return sum(self.scene_cost(reading, i) for i in range(len(self._parts))) + self.price(reading)

    def columns(self, reading: Reading, words: Sequence[str], *, described: bool = False) -> Columns:
        """The filters that a step with these words must meet."""
        said = {reading.meanings[word] for word in words if word in reading.meanings}
        if described:  # a neighbour is only described: what happens, and what is always true, is of the thing itself
            return tuple(sorted(said))
        verb = any(self._features[column] == "event" for column in said)
        usual = {c for f, c in reading.constants.items() if not (verb and f == "event")}
        return tuple(sorted(said | usual))

    def steps(self, reading: Reading, scene: int) -> tuple[Columns, ...]:
        """The filters of every step of a scene's instruction."""
        beside = self.plan.arrangement == "beside"
        return tuple(
            self.columns(reading, part, described=beside and i > 0) for i, part in enumerate(self._parts[scene])
        )

    def scene_cost(self, reading: Reading, scene: int) -> float:
        """The cost of one scene under a reading."""
        return self.evidence.cost(scene, self.plan, self.steps(reading, scene))

    def price(self, reading: Reading) -> float:
        """The cost of saying so much: meanings, constants, synonyms, kinds of features, disorder."""
        shared = Counter(column for column in reading.meanings.values() if self._features[column] != "event")
        price = sum(CONSTANT_SIDE if feature == "side" else CONSTANT for feature in reading.constants)
        price += SYNONYM * sum(count - 1 for count in shared.values())
        key = tuple(sorted((word, self._features[column]) for word, column in reading.meanings.items()))
        if key not in self._prices:
            features = dict(key)
            classes = sum(CLASS.get(name, CLASS_ELSE) for name in set(features.values()))
            self._prices[key] = MEANING * len(features) + classes + ORDER * self._disorder(features)
            self._prices[key] += FRAME * self._misfit(features)
        return price + self._prices[key]

    def _disorder(self, feature: dict[str, Feature]) -> int:
        """In how many instructions two features are spoken of in the less usual order."""
        orders: Counter[tuple[Feature, Feature]] = Counter()
        for words, count in self._instructions.items():
            spoken = list(dict.fromkeys(feature[word] for word in words if word in feature))
            for i, one in enumerate(spoken):
                for other in spoken[i + 1 :]:
                    orders[(one, other)] += count
        return sum(min(count, orders[(b, a)]) for (a, b), count in orders.items() if a < b)

    def _misfit(self, feature: dict[str, Feature]) -> float:
        """How many pairs of words fill the same gap but speak of different features; half for one that is silent."""
        pairs = ((feature.get(one), feature.get(other)) for one, other in self._peers)
        return sum((1.0 if a and b else 0.5) for a, b in pairs if a != b)


def substitutes(instructions: Counter[tuple[str, ...]]) -> list[tuple[str, str]]:
    """Pairs of words that occur between the same two neighbours."""
    frames: dict[tuple[str, str], set[str]] = {}
    for words in instructions:
        for before, word, after in zip(("", *words), words, (*words[1:], ""), strict=False):
            frames.setdefault((before, after), set()).add(word)
    return sorted({pair for fillers in frames.values() for pair in combinations(sorted(fillers), 2)})


class _Walk:
    """A Metropolis walk over readings."""

    def __init__(self, lexicon: Lexicon, reading: Reading, rng: np.random.Generator) -> None:
        self.lexicon = lexicon
        self.reading = reading
        self.rng = rng
        self.costs = [lexicon.scene_cost(reading, i) for i in range(len(lexicon._parts))]
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

    def _change(self, draw: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[Reading | None, Sequence[int]]:
        """A reading one change away, and the scenes that the change touches."""
        lexicon, reading = self.lexicon, self.reading
        kind, one, two = float(draw[0]), float(draw[1]), float(draw[2])
        words, columns = lexicon.words, len(lexicon._features)
        if kind < 0.15 or not words:
            column = int(one * columns)
            if lexicon.evidence.filters[column] == SEVERAL:
                return None, ()
            feature = lexicon._features[column]
            constants = dict(reading.constants)
            if constants.get(feature) == column:
                if feature == "event":
                    return None, ()
                del constants[feature]
            else:
                constants[feature] = column
            return Reading(constants, reading.meanings), range(len(lexicon._parts))
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
            touched = sorted({*lexicon._where[word], *lexicon._where[other]})
            return Reading(reading.constants, meanings), touched
        column = int(two * (columns + columns // 3 + 1))
        if meanings.get(word, -1) == (column if column < columns else -1):
            return None, ()
        meanings.pop(word, None)
        if column < columns:
            meanings[word] = column
        return Reading(reading.constants, meanings), lexicon._where[word]


def _with(meanings: Meanings, word: str, column: int) -> Meanings:
    """The meanings with one changed; -1 takes it away."""
    changed = {known: value for known, value in meanings.items() if known != word}
    if column >= 0:
        changed[word] = column
    return changed
