"""The words of a grid world's instructions under one plan, and the cost of a reading, which `learn.Seeker` minimises.

A plan names the words at which instructions are split, for example "then". A reading gives meanings to words. A meaning
is a filter: a condition on one feature of a thing, for example its colour code. A reading also has constants, which are
filters that apply under every instruction. A scene is one trajectory with its instruction.

Costs are negative log-probabilities in nats. So at temperature 1, a walk by Metropolis' rule accepts a less likely
reading with a chance equal to the ratio of the two readings' probabilities.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from grace_irl.synthesis.grid.evidence import Columns, GridEvidence, Stages
from grace_irl.synthesis.grid.meaning import ENCLOSED, Filter, Plan
from grace_irl.synthesis.grid.reading import GridReading, ReadingPrices
from grace_irl.synthesis.grid.scene import EVENTS


@dataclass
class Posterior:
    """The result of a search for readings under one plan.

    Attributes:
        best: the most likely reading.
        cost: cost of this reading in nats.
        words: map from a word to the probability of each meaning. The probability comes from the lowest cost of a
            reading with this meaning (the profile likelihood). A meaning is the index of a filter, or -1 for none.
    """

    best: GridReading
    cost: float
    words: dict[str, dict[int, float]]


class Lexicon:
    """The words of the instructions and the filters that they may stand for, with the cost of readings.

    A walk through readings weighs millions of changes. So the meanings of an instruction's words are packed into one
    integer, the instruction's key. A part of an instruction is the words about one thing. For each part and each
    filter, the key counts the words of the part that stand for the filter. A change of a word's meaning adds a number
    to the key. The key and the constants determine the cost of all scenes with this instruction.

    Attributes:
        evidence: the demonstrations.
        plan: the words at which instructions are split.
        words: all words of the instructions, sorted.
        features: the feature of each filter.
        prices: the prices of readings.
        units: for each filter, the key of a part in which one word stands for this filter. A last entry of 0 is for
            words without a meaning.
        shares: for each word, pairs of an instruction's index and a factor: the word adds the unit of its meaning,
            times the factor, to the instruction's key.
        count: number of different instructions.
        between: whether an instruction describes a thing between two others.
        minima: readings that no single change improves, as keys of `Walk`. Descents add them, and later descents stop
            at them (`Walk.descend`).
    """

    def __init__(self, evidence: GridEvidence, plan: Plan) -> None:
        self.evidence = evidence
        self.plan = plan
        self.words = sorted({word for scene in evidence.scenes for word in scene.words})
        self.features = [f.feature for f in evidence.filters]
        self._stages = [plan.stages(scene.words) for scene in evidence.scenes]
        scenes: dict[tuple[str, ...], list[int]] = {}
        for i, scene in enumerate(evidence.scenes):
            scenes.setdefault(scene.words, []).append(i)
        self._scenes = list(scenes.values())
        # For each instruction, whether constants apply to each part, by stage and step.
        self._shapes = [
            tuple(tuple(tuple(i == 0 for i in range(len(step))) for step in stage) for stage in self._stages[some[0]])
            for some in self._scenes
        ]
        self._order = [list(range(len(some))) for some in self._scenes]
        self.count = len(scenes)
        parts = [[part for stage in plan.stages(said) for step in stage for part in step] for said in scenes]
        common = set(self.words).intersection(*(part for some in parts for part in some))
        counts = {said: len(some) for said, some in scenes.items()}
        change, *passing = (
            evidence.index.get(Filter("event", EVENTS.index(event)), -1) for event in ("changed", "faced", "entered")
        )
        self.prices = ReadingPrices(
            counts, self.words, self.features, common, change, frozenset(passing), evidence.turns
        )
        self.between = any(len(step) == ENCLOSED for found in self._stages for stage in found for step in stage)
        # The number of bits of a count. No count exceeds the number of words in a part.
        self._digit = max((len(set(part)) for some in parts for part in some), default=0).bit_length() or 1
        self._size = self._digit * len(self.features)
        self.units = [*(1 << self._digit * column for column in range(len(self.features))), 0]
        self.shares: dict[str, list[tuple[int, int]]] = {word: [] for word in self.words}
        for instruction, some in enumerate(parts):
            factors: Counter[str] = Counter()
            for place, part in enumerate(some):
                factors.update(dict.fromkeys(part, 1 << self._size * place))
            for word, factor in factors.items():
                self.shares[word].append((instruction, factor))
        self.minima: set[Hashable] = set()
        self._costs: dict[tuple[int, ...], list[dict[int, float]]] = {}
        self._parts: dict[tuple[int, tuple[int, ...]], Columns] = {}

    def columns(self, reading: GridReading, words: Sequence[str], *, described: bool = False) -> Columns:
        """Indices of the filters that a thing must pass if these words describe the thing.

        Args:
            reading: the reading.
            words: the words.
            described: True if the event happens to another thing, so that constants do not apply. For example, the
                box in "put the ball next to the box" only describes the place of the ball.
        """
        said = {reading.meanings[word] for word in words if word in reading.meanings}
        return self._required(said, () if described else reading.constants.values())

    def stages(self, reading: GridReading, scene: int) -> Stages:
        """Indices of the filters for each thing in a scene's instruction, by stage and step (`Stages`)."""
        return tuple(
            tuple(tuple(self.columns(reading, part, described=i > 0) for i, part in enumerate(step)) for step in stage)
            for stage in self._stages[scene]
        )

    def price(self, reading: GridReading) -> float:
        """Price of a reading, in nats."""
        return self.prices.price(reading)

    def total(self, reading: GridReading) -> float:
        """Total cost of a reading, in nats."""
        scenes = range(len(self._stages))
        return sum(self.evidence.cost(i, self.stages(reading, i)) for i in scenes) + self.price(reading)

    def costs(self, constants: Iterable[int]) -> list[dict[int, float]]:
        """For each instruction, a cache of results of `cost` under these constants, by key. Callers fill the cache."""
        return self._costs.setdefault(tuple(sorted(constants)), [{} for _ in self._scenes])

    def cost(self, instruction: int, key: int, constants: Iterable[int], limit: float = math.inf) -> float:
        """Cost in nats of the scenes with one instruction, given its index, its key and the indices of constants.

        If the first scenes alone cost more than `limit`, the others are left out, and the result is minus the cost of
        these first scenes. A limit below 0 counts as 0.
        """
        scenes, stages = self._scenes[instruction], self._unpacked(instruction, key, tuple(constants))
        order, costs, total = self._order[instruction], [0.0] * len(scenes), 0.0
        for rank, place in enumerate(order):
            costs[place] = cost = self.evidence.cost(scenes[place], stages)
            total += cost
            if total > max(limit, 0.0):
                # A scene that refutes one reading often refutes the next one, so it comes first from now on.
                order.insert(0, order.pop(rank))
                return -total
        return sum(costs)

    def _unpacked(self, instruction: int, key: int, constants: tuple[int, ...]) -> Stages:
        """The filters for each thing of an instruction, given its key and the indices of constants."""
        whole, size, parts = (1 << self._size) - 1, self._size, self._parts
        stages = []
        for stage in self._shapes[instruction]:
            steps = []
            for step in stage:
                columns = []
                for usual in step:
                    part = key & whole, constants if usual else ()
                    found = parts.get(part)
                    columns.append(self._unpacked_part(*part) if found is None else found)
                    key >>= size
                steps.append(tuple(columns))
            stages.append(tuple(steps))
        return tuple(stages)

    def _unpacked_part(self, part: int, constants: tuple[int, ...]) -> Columns:
        """The filters that a thing must pass, given the bits of one part in a key, and the constants."""
        said, digit = set(), (1 << self._digit) - 1
        rest = part
        while rest:
            # The lowest bit belongs to the count of the next filter that a word stands for.
            column = ((rest & -rest).bit_length() - 1) // self._digit
            said.add(column)
            rest &= ~(digit << self._digit * column)
        found = self._parts[part, constants] = self._required(said, constants)
        return found

    def _required(self, said: set[int], constants: Iterable[int]) -> Columns:
        """The filters that a thing must pass: those that words stand for, and the constants.

        A word that stands for an event replaces the constant for the event.
        """
        verb = any(self.features[column] == "event" for column in said)
        usual = {column for column in constants if not (verb and self.features[column] == "event")}
        return tuple(sorted(said | usual))


WORD = r"[^\W_]+"
MIN_COUNT = 3
"""Minimum number of occurrences of a phrase, because two words may occur together once or twice by chance."""


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
