"""The price of a reading by what it says, whatever the demonstrations show: every meaning has one, in nats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from grace_irl.synthesis.grid.meaning import Feature
from grace_irl.synthesis.grid.reading import Reading

MEANING = 0.5
CONSTANT = 0.5
CONSTANT_SIDE = 3.0
"""A constant that all goals share by what they are comes cheap; that all lie on one side is a coincidence."""
SYNONYM = 3.0
"""Two words with the same meaning."""
CLASS = {"event": 6.0, "count": 1.0}
CLASS_ELSE = 4.0
"""The first word that speaks of a feature at all; what happens is rarely left to a noun or an adjective."""
ORDER = 1.5
"""Words of two features in one order here and in the other there: languages keep to an order."""
FRAME = 1.5
"""Two words that fill the same gap ("a _ ball") and speak of different features, or of one and of nothing (half)."""


class Parsimony:
    """The prices of readings of these instructions.

    Args:
        instructions: the words of each, with how often they were given.
        features: what each filter is about.
    """

    def __init__(self, instructions: Counter[tuple[str, ...]], features: Sequence[Feature]) -> None:
        self._instructions = instructions
        self._features = features
        self._peers = substitutes(instructions)
        self._prices: dict[tuple[tuple[str, Feature], ...], float] = {}

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
