"""Readings of a grid world's instructions, and their prices.

A reading gives meanings to words. A meaning is a filter: a condition on one feature of a thing, for example its colour
code. The price of a reading is the negative logarithm of its prior probability, in nats: simple readings are likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import get_args

from grace_irl.synthesis.grid.meaning import SHARED, Feature

MEANING = 0.5  # price of each word with a meaning; all prices are in nats
CONSTANT = 0.5
CONSTANT_PLACE = 3.0
"""Prices of a constant, which is a filter that applies under every instruction. `CONSTANT_PLACE` is the price for the
features in `PLACES`, and `CONSTANT` for all other features. The things at all goals are often of one kind. But if they
all lie on one side, this is mostly a coincidence."""
VAGUE = 1.0
"""Price of "changed" as constant event if things at all goals change into one code, and no constant names this code. A
constant for this code has a lower price: experts who only open doors are no evidence that closing one is as good."""
IN_PASSING = 0.001
"""Price of "faced" or "entered" as constant event. These happen wherever the agent walks. So if two readings cost
the same, the one whose event changes the world is better."""
PLACES: frozenset[Feature] = frozenset(["side", *SHARED])
SPOKEN: frozenset[Feature] = frozenset(["half", "count"])
"""Features that words may name, but constants may not. A constant for "count" would mean "one of several" and
exclude no thing. A constant for a half of the grid would only reflect how the worlds were built."""
SYNONYM = 3.0
"""Price of each further word with the same meaning. Words for events, such as "take", are exempt."""
CLASS = {"event": 6.0, "count": 1.0}
CLASS_ELSE = 4.0
"""Prices of a feature that at least one word names: `CLASS` for "event" and "count", `CLASS_ELSE` for all others. A
word for "count" means that several things match. Events cost more, because nouns and adjectives rarely name them."""
COMMON = 30.0
"""Price of a word for one of the features in `SPOKEN` if the word is in every part of every instruction. A part is the
words about one thing. A word in all parts contrasts with no other word."""
ORDER = 1.5
"""Price of an instruction that names two features in the rarer order. Languages keep to one order, as in "red ball"."""
FRAME = 1.5
"""Price of two words that fill the same gap ("a _ ball") but name different features. If one of the words has no
meaning, the price is half."""
MUTE = 1.0
"""Price of a word without a meaning that fills the same gap as another such word. Two words that fill one gap mostly
differ in meaning (Clark 1987, the principle of contrast), so it is unlikely that neither has one."""


Constants = dict[Feature, int]
WordMeanings = dict[str, int]


@dataclass
class GridReading:
    """An interpretation of the instructions, never changed in place.

    A plan, which is not part of the reading, names the words at which instructions are split.

    Attributes:
        constants: map from a feature to the index of the filter that applies under every instruction.
        meanings: map from a word to the index of the filter that the word stands for.
    """

    constants: Constants
    meanings: WordMeanings = field(default_factory=dict)

    def with_meaning(self, word: str, column: int) -> GridReading:
        """The reading in which a word stands for the filter with the index `column`; -1 removes the word's meaning."""
        changed = {known: value for known, value in self.meanings.items() if known != word}
        if column >= 0:
            changed[word] = column
        return GridReading(self.constants, changed)

    def with_constant(self, feature: Feature, column: int) -> GridReading:
        """The reading with the filter `column` (an index) as the constant of a feature; -1 removes the constant."""
        changed = {**self.constants, feature: column}
        if column < 0:
            del changed[feature]
        return GridReading(changed, self.meanings)


NAMES: tuple[Feature, ...] = get_args(Feature)
CLASSES = [0.0, *(CLASS.get(feature, CLASS_ELSE) for feature in NAMES)]
"""The price of each feature that at least one word names, by its number in `ReadingPrices.kinds`."""
FEATURE_BITS = 4
"""Number of bits into which `ReadingPrices` packs the feature that a word names. The bits are 0 for a word without a
meaning, else 1 plus the feature's index in `NAMES`."""


class ReadingPrices:
    """Prices of readings of these instructions: the simpler a reading, the lower its price.

    Most of the price depends only on the features that words name. Most changes of a reading keep these features, so
    this part is cached. The features of all words are packed into one integer, `FEATURE_BITS` for each word.

    Attributes:
        kinds: for each filter, 1 plus the index of its feature in `NAMES`. A last entry of 0 is for words without a
            meaning.

    Args:
        instructions: the words of each instruction, with the number of its occurrences.
        words: all words, in the order of the packed features.
        features: the feature of each filter.
        common: the words that are in every part of every instruction.
        change: index of the filter for the event "changed"; -1 if nothing changes.
        passing: indices of the filters for the events "faced" and "entered".
        turns: indices of the filters on codes into which things change at all goals (`GridEvidence.turns`).
    """

    def __init__(
        self,
        instructions: Mapping[tuple[str, ...], int],
        words: Sequence[str],
        features: Sequence[Feature],
        common: Iterable[str] = (),
        change: int = -1,
        passing: frozenset[int] = frozenset(),
        turns: frozenset[int] = frozenset(),
    ) -> None:
        self._change, self._passing, self._turns = change, passing, turns
        self._features = features
        self.kinds = [*(NAMES.index(feature) + 1 for feature in features), 0]
        self._places = {word: place for place, word in enumerate(words)}
        self._peers = [(self._places[one], self._places[other]) for one, other in substitutes(instructions)]
        # For each instruction: its words, the mask of their packed features, its count, and a cache of feature orders.
        self._orders: list[tuple[list[int], int, int, dict[int, list[tuple[int, int]]]]] = []
        for spoken, count in instructions.items():
            places = list(dict.fromkeys(self._places[word] for word in spoken))
            mask = sum((1 << FEATURE_BITS) - 1 << FEATURE_BITS * place for place in places)
            self._orders.append((places, mask, count, {}))
        self._common = [self._places[word] for word in common]
        self._spoken = {self.kinds[column] for column, feature in enumerate(features) if feature in SPOKEN}
        self._shifts = range(0, FEATURE_BITS * len(words), FEATURE_BITS)
        self._known: dict[int, float] = {}
        self._least: dict[int, float] = {}

    def price(self, reading: GridReading) -> float:
        """Price of a reading in nats: the sum of all prices of this module that apply."""
        packed = self.pack(reading.meanings)
        synonyms = self.synonyms(reading.meanings.values())
        return self.of_constants(reading.constants) + SYNONYM * synonyms + self.of_features(packed)

    def pack(self, meanings: WordMeanings) -> int:
        """The features that words name, as one integer."""
        return sum(self.kinds[column] << FEATURE_BITS * self._places[word] for word, column in meanings.items())

    def synonyms(self, columns: Iterable[int]) -> int:
        """Number of words whose meaning another word already has, given the meanings of all words.

        Several verbs for one event are common ("go to", "reach"), but two nouns for one kind of thing are not.
        """
        shared = Counter(column for column in columns if self._features[column] != "event")
        return sum(count - 1 for count in shared.values())

    def of_constants(self, constants: Constants) -> float:
        """Price of constants, in nats."""
        vague = constants.get("event") == self._change and self._turns and self._turns.isdisjoint(constants.values())
        price = VAGUE * bool(vague) + IN_PASSING * (constants.get("event") in self._passing)
        return price + sum(CONSTANT_PLACE if feature in PLACES else CONSTANT for feature in constants)

    def of_features(self, packed: int) -> float:
        """Price of the features that words name, in nats."""
        price = self._known.get(packed)
        if price is None:
            price = self._known[packed] = self._least[packed] = self._of_features(packed)
        return price

    def at_least(self, packed: int) -> float:
        """The price of `of_features` if it is known, else a lower bound of this price, which is quick to compute."""
        price = self._least.get(packed)
        if price is None:
            price = self._least[packed] = self._of_words(self._unpacked(packed))
        return price

    def _of_features(self, packed: int) -> float:
        named = self._unpacked(packed)
        price = self._of_words(named) + ORDER * self._disorder(packed, named)
        return price + FRAME * self._misfit(named) + MUTE * self._mute(named)

    def _unpacked(self, packed: int) -> list[int]:
        """The feature that each word names (`kinds`), or 0."""
        mask = (1 << FEATURE_BITS) - 1
        return [packed >> shift & mask for shift in self._shifts]

    def _of_words(self, named: Sequence[int]) -> float:
        """Price of the features that words name, without the prices of pairs (`ORDER`, `FRAME`, `MUTE`)."""
        names = set(named)
        names.discard(0)
        common = sum([named[place] in self._spoken for place in self._common])
        return MEANING * (len(named) - named.count(0)) + sum([CLASSES[name] for name in names]) + COMMON * common

    def _disorder(self, packed: int, named: Sequence[int]) -> int:
        """Number of instructions that name two features in the rarer order, added up over all pairs of features."""
        orders: dict[tuple[int, int], int] = {}
        for places, mask, count, known in self._orders:
            key = packed & mask
            if key not in known:
                known[key] = list(combinations(dict.fromkeys(named[place] for place in places if named[place]), 2))
            for pair in known[key]:
                orders[pair] = orders.get(pair, 0) + count
        return sum(min(count, orders.get((b, a), 0)) for (a, b), count in orders.items() if a < b)

    def _misfit(self, named: Sequence[int]) -> float:
        """Number of pairs of words that fill one gap but name different features.

        If one of the words has no meaning, the pair counts half.
        """
        pairs = ((named[one], named[other]) for one, other in self._peers)
        return sum((1.0 if a and b else 0.5) for a, b in pairs if a != b)

    def _mute(self, named: Sequence[int]) -> int:
        """Number of words without a meaning that fill one gap with another word without a meaning."""
        return len({place for pair in self._peers if not any(named[place] for place in pair) for place in pair})


def substitutes(instructions: Iterable[tuple[str, ...]]) -> list[tuple[str, str]]:
    """Pairs of words that occur between the same words, as "red" and "blue" in "the red ball" and "the blue ball"."""
    frames: dict[tuple[str, str], set[str]] = {}
    for words in instructions:
        for before, word, after in zip(("", *words), words, (*words[1:], ""), strict=False):
            frames.setdefault((before, after), set()).add(word)
    return sorted({pair for fillers in frames.values() for pair in combinations(sorted(fillers), 2)})
