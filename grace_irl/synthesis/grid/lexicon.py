"""Readings of a grid world's instructions under one plan, and the cost of a reading, which `learn` minimises.

A plan names the words at which instructions are split, for example "then". A reading gives meanings to words. A meaning
is a filter: a condition on one feature of a thing, for example its colour code.

Costs are negative log-probabilities in nats, so a Metropolis walk at temperature 1 visits readings in proportion to
their probability.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise

from grace_irl.synthesis.grid.evidence import Columns, GridEvidence, Stages
from grace_irl.synthesis.grid.meaning import SEVERAL, Feature, Plan

MEANING = 0.5  # price of each word with a meaning; all prices are in nats
CONSTANT = 0.5
CONSTANT_SIDE = 3.0
"""Prices of a constant, which is a filter that applies under every instruction. `CONSTANT_SIDE` is the price if the
feature is the side on which a thing lies, for example "left"; `CONSTANT` is the price of all others. The things at all
goals are often of one kind. That they all lie on one side is mostly a coincidence."""
SYNONYM = 3.0
"""Price of each further word with the same meaning. Words for events, such as "take", are exempt."""
CLASS = {"event": 6.0, "count": 1.0}
CLASS_ELSE = 4.0
"""Prices of a feature that at least one word names: `CLASS` for "event" and "count", `CLASS_ELSE` for all others. A
word for "count" means that several things match. Events cost more, because nouns and adjectives rarely name them."""
ORDER = 1.5
"""Price of an instruction that names two features in the rarer order. Languages keep to one order, as in "red ball"."""
FRAME = 1.5
"""Price of two words that fill the same gap ("a _ ball") but name different features. If one of the words has no
meaning, the price is half."""


class ReadingPrices:
    """Prices of readings of these instructions: the simpler a reading, the lower its price.

    Args:
        instructions: the words of each instruction, with the number of its occurrences.
        features: the feature of each filter.
    """

    def __init__(self, instructions: Counter[tuple[str, ...]], features: Sequence[Feature]) -> None:
        self._instructions = instructions
        self._features = features
        self._peers = substitutes(instructions)
        self._prices: dict[tuple[tuple[str, Feature], ...], float] = {}

    def price(self, reading: GridReading) -> float:
        """Price of a reading in nats. It is the sum of all prices that this module defines."""
        # Several verbs for one event are common ("go to", "reach"), but two nouns for one kind of thing are not.
        shared = Counter(column for column in reading.meanings.values() if self._features[column] != "event")
        price = sum(CONSTANT_SIDE if feature == "side" else CONSTANT for feature in reading.constants)
        price += SYNONYM * sum(count - 1 for count in shared.values())
        # The rest depends only on the features that words name. A walk mostly keeps these and changes the required
        # values, so the rest is cached.
        key = tuple(sorted((word, self._features[column]) for word, column in reading.meanings.items()))
        if key not in self._prices:
            features = dict(key)
            classes = sum(CLASS.get(name, CLASS_ELSE) for name in set(features.values()))
            self._prices[key] = MEANING * len(features) + classes + ORDER * self._disorder(features)
            self._prices[key] += FRAME * self._misfit(features)
        return price + self._prices[key]

    def _disorder(self, feature: dict[str, Feature]) -> int:
        """Number of instructions that name two features in the rarer order."""
        orders: Counter[tuple[Feature, Feature]] = Counter()
        for words, count in self._instructions.items():
            spoken = list(dict.fromkeys(feature[word] for word in words if word in feature))
            for i, one in enumerate(spoken):
                for other in spoken[i + 1 :]:
                    orders[(one, other)] += count
        return sum(min(count, orders[(b, a)]) for (a, b), count in orders.items() if a < b)

    def _misfit(self, feature: dict[str, Feature]) -> float:
        """Number of pairs of words that fill one gap but name different features; half a pair if one names nothing."""
        pairs = ((feature.get(one), feature.get(other)) for one, other in self._peers)
        return sum((1.0 if a and b else 0.5) for a, b in pairs if a != b)


def substitutes(instructions: Counter[tuple[str, ...]]) -> list[tuple[str, str]]:
    """Pairs of words that occur between the same words, as "red" and "blue" in "the red ball" and "the blue ball"."""
    frames: dict[tuple[str, str], set[str]] = {}
    for words in instructions:
        for before, word, after in zip(("", *words), words, (*words[1:], ""), strict=False):
            frames.setdefault((before, after), set()).add(word)
    return sorted({pair for fillers in frames.values() for pair in combinations(sorted(fillers), 2)})


Constants = dict[Feature, int]
WordMeanings = dict[str, int]


@dataclass
class GridReading:
    """An interpretation of the instructions under a plan. It is never changed in place.

    Attributes:
        constants: map from a feature to the index of the filter that applies under every instruction.
        meanings: map from a word to the index of the filter that the word stands for.
    """

    constants: Constants
    meanings: WordMeanings = field(default_factory=dict)

    @cached_property
    def always(self) -> tuple[int, ...]:
        """Sorted indices of the constants' filters."""
        return tuple(sorted(self.constants.values()))

    def with_meaning(self, word: str, column: int) -> GridReading:
        """The reading with another meaning of one word; -1 removes the meaning."""
        changed = {known: value for known, value in self.meanings.items() if known != word}
        if column >= 0:
            changed[word] = column
        return GridReading(self.constants, changed)

    def with_constant(self, feature: Feature, column: int) -> GridReading:
        """The reading with another constant of this feature; -1 removes the constant."""
        changed = {**self.constants, feature: column}
        if column < 0:
            del changed[feature]
        return GridReading(changed, self.meanings)


@dataclass
class Posterior:
    """The result of a search for readings under one plan.

    Attributes:
        best: the most likely reading.
        cost: cost of this reading in nats.
        words: map from a word to the probability of each meaning, from the profile likelihood. A meaning is the index
            of a filter, or -1 for none.
    """

    best: GridReading
    cost: float
    words: dict[str, dict[int, float]]


class Lexicon:
    """The words of the instructions and the filters that they may stand for, with the cost of readings.

    Attributes:
        evidence: the demonstrations.
        plan: the words at which instructions are split.
        words: all words of the instructions, sorted.
        features: the feature of each filter.
        where: for each word, indices of the scenes (trajectories) whose instruction contains it.
    """

    def __init__(self, evidence: GridEvidence, plan: Plan) -> None:
        self.evidence = evidence
        self.plan = plan
        self.words = sorted({word for scene in evidence.scenes for word in scene.words})
        self.features = [f.feature for f in evidence.filters]
        self.where = {w: [i for i, s in enumerate(evidence.scenes) if w in s.words] for w in self.words}
        self._stages = [plan.stages(scene.words) for scene in evidence.scenes]
        self._spoken = [tuple(dict.fromkeys(scene.words)) for scene in evidence.scenes]
        self._costs: list[dict[tuple[object, ...], float]] = [{} for _ in evidence.scenes]
        self._parsimony = ReadingPrices(Counter(scene.words for scene in evidence.scenes), self.features)

    @property
    def everywhere(self) -> Sequence[int]:
        """Indices of all scenes."""
        return range(len(self._stages))

    def columns(self, reading: GridReading, words: Sequence[str], *, described: bool = False) -> Columns:
        """Indices of the filters that a thing must pass if these words describe the thing.

        Args:
            reading: the reading.
            words: the words.
            described: whether the event happens to another thing. For example, the box in "put the ball next to the
                box" only says where the ball is.
        """
        said = {reading.meanings[word] for word in words if word in reading.meanings}
        if described:  # constants apply only to the thing of the event
            return tuple(sorted(said))
        verb = any(self.features[column] == "event" for column in said)
        usual = {c for f, c in reading.constants.items() if not (verb and f == "event")}
        return tuple(sorted(said | usual))

    def stages(self, reading: GridReading, scene: int) -> Stages:
        """Indices of the filters for each thing in a scene's instruction, by stage and step (`Stages`)."""
        return tuple(
            tuple(tuple(self.columns(reading, part, described=i > 0) for i, part in enumerate(step)) for step in stage)
            for stage in self._stages[scene]
        )

    def scene_cost(self, reading: GridReading, scene: int) -> float:
        """Cost of one scene under a reading, in nats."""
        # Walks call this millions of times. So the key of the cache holds only meanings, which are looked up quickly.
        key = (reading.always, *map(reading.meanings.get, self._spoken[scene]))
        known = self._costs[scene]
        cost = known.get(key)
        if cost is None:
            cost = known[key] = self.evidence.cost(scene, self.stages(reading, scene))
        return cost

    def price(self, reading: GridReading) -> float:
        """Price of a reading, in nats."""
        return self._parsimony.price(reading)

    def total(self, reading: GridReading) -> float:
        """Total cost of a reading, in nats."""
        return sum(self.scene_cost(reading, i) for i in self.everywhere) + self.price(reading)

    def neighbours(
        self, reading: GridReading, frozen: str | None = None
    ) -> Iterator[tuple[GridReading, Sequence[int]]]:
        """Generate the readings that differ from a reading in one meaning or constant.

        Each comes with the indices of the scenes whose cost the change affects.

        Args:
            reading: the reading to change.
            frozen: a word whose meaning does not change; the constants do not change either. None: all may change.
        """
        for word in self.words:
            if word != frozen:
                for column in range(-1, len(self.features)):
                    if reading.meanings.get(word, -1) != column:
                        yield reading.with_meaning(word, column), self.where[word]
        if frozen is None:
            for column, feature in enumerate(self.features):
                if self.evidence.filters[column] == SEVERAL:
                    continue
                if reading.constants.get(feature) != column:
                    yield reading.with_constant(feature, column), self.everywhere
                elif feature != "event":
                    yield reading.with_constant(feature, -1), self.everywhere


WORD = r"[^\W_]+"
MIN_COUNT = 2
"""Minimum number of occurrences of a phrase: that words occur together once could be chance."""


def split_words(text: str, phrases: Sequence[str] = ()) -> tuple[str, ...]:
    """Split an instruction into words in lower case, without punctuation. A known phrase counts as one word."""
    words = tuple(re.findall(WORD, text.lower()))
    if not phrases:
        return words
    pattern = "|".join([*(rf"\b{re.escape(phrase)}\b" for phrase in phrases), WORD])
    return tuple(re.findall(pattern, " ".join(words)))


def find_phrases(texts: Sequence[str]) -> tuple[str, ...]:
    """Find sequences of words that only occur together and in this order ("in front of you"), longest first."""
    split = [split_words(text) for text in texts]
    counts = Counter(word for words in split for word in words)
    follow = Counter(pair for words in split for pair in pairwise(words))
    glued = {
        (one, other)
        for (one, other), count in follow.items()
        if count == counts[one] == counts[other] and count >= MIN_COUNT and one != other
    }
    phrases: set[str] = set()
    for words in split:
        run = list(words[:1])
        for one, other in pairwise(words):
            if (one, other) not in glued:
                phrases.add(" ".join(run))
                run = []
            run.append(other)
        phrases.add(" ".join(run))
    return tuple(sorted((phrase for phrase in phrases if " " in phrase), key=lambda p: (-len(p), p)))
