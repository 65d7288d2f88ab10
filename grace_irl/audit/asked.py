"""Reasons why a reward may ignore the text of instructions, found in the states of demonstrations.

The audit warns about rewards that ignore the text. Such a reward is not always wrong. If no simulator can judge which
instructions an episode fulfils, each of three observations prevents the warning:

- The goals of experts look alike under all instructions. Either the instructions are wordings of one task, or the
  states describe places relative to the thing that the instruction names.
- Some negatives are near misses: they end close to an expert's goal. This goal belongs to the negative's own
  instruction significantly less often than after random permutations of the instructions. The reward pays at most a
  tenth of these near misses, so it tells near misses from goals without the text.
- Fields of the first state contain the information of the instruction, such as the place or the colour of the goal. If
  these fields are shuffled, the reward pays at most half of the goals. So the reward reads the fields, not the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.shuffling import shuffled
from grace_irl.audit.subject import Subject
from grace_irl.demos.fields import NAMES, varies
from grace_irl.demos.labels import Labelled
from grace_irl.evaluate.ranks import average_ranks
from grace_irl.states.kind import WORD

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]

LEAST = 16
"""Minimum number of different expert episodes. With fewer, nothing excuses a reward (`StatedGoals.excused`)."""
MOST = 500
"""Maximum number of experts, and of negatives. Further episodes are ignored."""
OCCURRENCES = 3
"""A word is examined if the instructions of at least this many experts contain the word, and the instructions of at
least this many experts lack the word."""
PAIRED = 40
"""If a state has at most this many numbers, absolute differences of two numbers are also features."""
DRAWS = 400
"""Number of random permutations of the instructions, for estimates of what chance alone gives."""
CHANCE = 0.01
"""Significance level: share of the permutations that may give a result as extreme as the observed one."""
USED = 12
"""Maximum number of features that distinguish goals of different instructions (`StatedGoals._shown`)."""
TOLD = 0.75
"""A field contains the information of the instruction if words explain at least this share of the field's variance.

Goals distinguish instructions if, for at least this share of the goals, the nearest other goal has the same
instruction."""
EXACT = 1e-6
"""Other fields explain a field exactly if at most this share of the field's variance remains."""
WRONG = 0.1
"""Maximum share of paid near misses. With a larger share, near misses do not excuse a reward (`_tested`)."""


def words_of(text: str) -> frozenset[str]:
    """The words of an instruction, in lower case and without punctuation."""
    return frozenset(WORD.findall(text.casefold()))


PUNCTUATION = ".,;:!?…'\"“”„‘’«»()[]{}/\\–—-"
SPOKEN = re.compile(rf"(?<!\w)[-+](?=[\d.])[\d.]*\d|{WORD.pattern}|[^\w\s{re.escape(PUNCTUATION)}]")
"""Pattern of a word, of a number with its sign, or of a symbol, such as the plus signs of "C++"."""


def spoken(text: str) -> tuple[str, ...]:
    """The words, signed numbers and symbols of an instruction in their order, in lower case, without punctuation."""
    return tuple(SPOKEN.findall(text.casefold()))


@dataclass(frozen=True, eq=False)
class StatedGoals:
    """A comparison of the states of demonstrations with the instructions.

    Attributes:
        subject: the program under audit, with its data.
        experts, negatives: episodes with positive states, and episodes without. No two episodes are equal.
    """

    subject: Subject
    experts: tuple[Labelled, ...]
    negatives: tuple[Labelled, ...]

    @classmethod
    def of(cls, subject: Subject) -> StatedGoals:
        """The comparison for the data of `subject`: each different episode once, at most `MOST` of each side."""
        items = list({item.trajectory.digest: item for item in subject.problem.items}.values())
        sides = (tuple(item for item in items if item.positive.any() == side)[:MOST] for side in (True, False))
        return cls(subject, *sides)

    @property
    def known(self) -> bool:
        """Whether the states can be compared with the instructions.

        States must be vectors or records with a feature that varies. There must be at least `LEAST` experts, and a word
        that only some of their instructions contain (`OCCURRENCES`). No two instructions may have the same words in
        another order, because only the presence of words is compared.
        """
        kind = self.subject.problem.metadata.kind
        texts = {spoken(item.trajectory.extra_info) for item in self.experts}
        if kind not in NAMES or len(self.experts) < LEAST or len({tuple(sorted(each)) for each in texts}) < len(texts):
            return False
        return bool(self._words) and bool(self._features[1])

    @cached_property
    def telling(self) -> frozenset[str]:
        """The words that correlate with features of the experts' goals more than by chance. Requires `known`."""
        return frozenset(self._words[n] for n in np.flatnonzero((self._links > self._by_chance).any(axis=1)))

    def excused(self) -> bool:
        """Whether an observation of the list at the top of this module holds, so that the reward may ignore the text.

        Raises:
            ProgramFailedError: the program fails on shuffled states.
        """
        return self.known and (not self.telling or self._tested() or self._told())

    @cached_property
    def _words(self) -> list[str]:
        """Words that only some instructions of experts contain (`OCCURRENCES`).

        Of words that always occur together, the list holds the first by the alphabet.
        """
        texts = [words_of(item.trajectory.extra_info) for item in self.experts]
        columns: dict[tuple[bool, ...], str] = {}
        for word in sorted(frozenset().union(*texts)):
            column = tuple(word in text for text in texts)
            if OCCURRENCES <= sum(column) <= len(texts) - OCCURRENCES:
                columns.setdefault(column, word)
        return list(columns.values())

    @cached_property
    def _features(self) -> tuple[Floats, list[tuple[int, ...]]]:
        """Features of the goals of experts and of the ends of negatives, and the columns that make up each feature.

        A feature is a column of `_numbers`, or the absolute difference of two such columns. Features that are constant
        over the experts are left out. The first rows are the last goal states of the experts, one row per expert. The
        other rows are the last states of the negatives. With label rule "all", a row is the mean over an episode's
        states.
        """
        items = (*self.experts, *self.negatives)
        if self.subject.problem.rule == "all":
            ends = np.stack([_numbers(item, self._texts).mean(axis=0) for item in items])
        else:
            places = [int(np.flatnonzero(item.positive)[-1]) for item in self.experts]
            places += [len(item.positive) - 1 for item in self.negatives]
            states = [slice(place, place + 1) for place in places]
            ends = np.concatenate([_numbers(item, self._texts, one) for item, one in zip(items, states, strict=True)])
        owners: list[tuple[int, ...]] = [(number,) for number in range(ends.shape[1])]
        if ends.shape[1] <= PAIRED:
            pairs = list(combinations(range(ends.shape[1]), 2))
            ends = np.column_stack([ends, *(np.abs(ends[:, one] - ends[:, other]) for one, other in pairs)])
            owners += pairs
        experts = ends[: len(self.experts)]
        varied = np.flatnonzero(varies(experts))
        return ends[:, varied], [owners[number] for number in varied]

    @cached_property
    def _texts(self) -> dict[str, list[bytes]]:
        """The different texts of each text part of a record. A part with more than 20 texts is left out."""
        found: dict[str, set[bytes]] = {}
        for item in (*self.experts, *self.negatives):
            for name, array in item.trajectory.state_kind.parts(item.trajectory.states).items():
                if array.dtype.kind == "S":
                    found.setdefault(name, set()).update(array.tolist())
        return {name: sorted(texts) for name, texts in found.items() if len(texts) <= 20}

    @cached_property
    def _marks(self) -> Floats:
        """Whether the instruction of an expert contains a word, standardised; `(words, experts)`."""
        texts = [words_of(item.trajectory.extra_info) for item in self.experts]
        marks = np.array([[word in text for text in texts] for word in self._words], dtype=np.float64)
        return _standard(marks.T).T

    @cached_property
    def _ranks(self) -> Floats:
        goals = self._features[0][: len(self.experts)].T
        return _standard(np.array([average_ranks(each) for each in goals]).reshape(goals.shape).T)

    @cached_property
    def _links(self) -> Floats:
        """Absolute rank correlation of each word with each feature of the goals."""
        return np.asarray(np.abs(self._marks @ self._ranks) / len(self.experts))

    @cached_property
    def _by_chance(self) -> float:
        """The limit that the largest correlation exceeds with probability `CHANCE` if instructions are permuted."""
        rng = np.random.default_rng(0)
        order = range(DRAWS)
        drawn = [np.abs(self._marks[:, rng.permutation(len(self.experts))] @ self._ranks).max() for _ in order]
        return float(np.quantile(drawn, 1 - CHANCE) / len(self.experts))

    def _group(self, item: Labelled) -> frozenset[str]:
        return words_of(item.trajectory.extra_info) & self.telling

    @property
    def _shown(self) -> list[int]:
        """At most `USED` features that distinguish goals of different instructions.

        A feature qualifies if a word correlates with it more than by chance, and if none of its columns is in
        `_saying`. If any feature of one column qualifies, differences of two columns are left out.
        """
        links, owners = self._links.max(axis=0), self._features[1]
        strongest = np.argsort(-links, kind="stable")
        linked = [n for n in strongest if links[n] > self._by_chance and not self._saying & {*owners[n]}]
        return [n for n in linked if len(owners[n]) == 1][:USED] or linked[:USED]

    @cached_property
    def _saying(self) -> set[int]:
        """The columns of `_numbers` that contain, in the first state, the information of the instruction."""
        items = (*self.experts, *self.negatives)
        rows = np.concatenate([_numbers(item, self._texts, slice(1)) for item in items])
        texts = [words_of(item.trajectory.extra_info) for item in items]
        marks = np.array([[word in text for word in sorted(self.telling)] for text in texts], dtype=np.float64)
        return _explained(rows, marks)

    def _tested(self) -> bool:
        """Whether there are near misses that the reward hardly ever pays.

        Near misses are negatives that end close to an expert's goal. The goal must belong to the negative's own
        instruction significantly less often than after random permutations of the negatives' instructions.
        """
        groups = [self._group(item) for item in self.experts]
        negatives = [n for n, item in enumerate(self.negatives) if self._group(item) in groups]
        if not negatives:
            return False
        goals, ends = np.split(self._features[0][:, self._shown], [len(self.experts)])
        if not goals.size:
            return False
        spread = goals.std(axis=0)
        between = np.linalg.norm((goals[:, None] - goals[None]) / spread, axis=2)
        np.fill_diagonal(between, np.inf)
        same = np.mean([groups[n] == groups[m] for n, m in enumerate(between.argmin(axis=1))])
        away = np.linalg.norm((ends[negatives][:, None] - goals[None]) / spread, axis=2)
        near = away.min(axis=1) <= 2 * np.quantile(between.min(axis=1), 0.9) + 1e-9
        if same < TOLD or near.sum() < LEAST // 3:
            return False
        reached = [groups[n] for n in away.argmin(axis=1)[near]]
        close = [self.negatives[negatives[n]] for n in np.flatnonzero(near)]
        asked = [self._group(item) for item in close]
        hits = _agreement(reached, asked)
        rng = np.random.default_rng(0)
        drawn = [_agreement(reached, [asked[n] for n in rng.permutation(len(asked))]) for _ in range(DRAWS)]
        rare = float(np.mean(np.array(drawn) <= hits))
        return rare <= CHANCE and float(np.mean([self._pays(item) for item in close])) <= WRONG

    def _pays(self, item: Labelled) -> bool:
        paid = np.nan_to_num(self.subject.values(item), nan=-np.inf) > self.subject.threshold
        return bool(paid.mean() > 0.5) if self.subject.problem.rule == "all" else bool(paid.any())

    def _told(self) -> bool:
        """Whether the reward needs fields that contain, in the first state, the information of the instruction."""
        told = self._saying
        if not told:
            return False
        items = (*self.experts, *self.negatives)
        columns = _numbers(items[0], self._texts, slice(1)).shape[1]
        count = columns - sum(map(len, self._texts.values()))
        owners = [name for name, texts in self._texts.items() for _ in texts]
        names = {owners[number - count] for number in told if number >= count}
        kept = [number for number in range(count) if number not in told]
        changed = self.subject.run(shuffled(items, 0, kept, [name for name in self._texts if name not in names]))
        paid = [(values[item.positive] > self.subject.threshold).mean() for item, values in zip(items, changed,
                strict=True) if item.positive.any() and self.subject.pays(item)]  # fmt: skip
        return bool(paid) and float(np.mean(paid)) <= 0.5


def _numbers(item: Labelled, texts: dict[str, list[bytes]], chosen: slice = slice(None)) -> Floats:
    """One row per chosen state: its numbers, then one column per known text, with 1 if the state has it, else 0."""
    kind, states = item.trajectory.state_kind, item.trajectory.states[chosen]
    numbers = kind.numbers(states)
    columns = [np.zeros((len(states), 0)) if numbers is None else numbers]
    for name, known in texts.items():
        columns.append((kind.parts(states)[name][:, None] == np.array(known)[None]).astype(np.float64))
    return np.concatenate(columns, axis=1)


def _standard(columns: Floats) -> Floats:
    return np.asarray((columns - columns.mean(axis=0)) / columns.std(axis=0))


def _agreement(one: Sequence[object], other: Sequence[object]) -> int:
    return sum(first == second for first, second in zip(one, other, strict=True))


def _explained(rows: Floats, marks: Floats) -> set[int]:
    """Columns that the words of the instructions explain, alone or together with the other columns.

    A column does not count if the other columns explain it exactly without the words.

    Args:
        rows: `(m, n)` columns of m first states.
        marks: `(m, k)` 1 if an episode's instruction has a word, else 0.
    """
    spreads = rows.var(axis=0)
    varied = np.flatnonzero(varies(rows)).tolist()
    alone = {number for number in varied if _error(marks, rows[:, number]) <= (1 - TOLD) * spreads[number]}
    rest = [number for number in varied if number not in alone]
    if len(rest) + marks.shape[1] > len(rows) // 3:
        return alone
    together = set()
    for number in rest:
        others = rows[:, [each for each in rest if each != number]]
        without = _error(others, rows[:, number])
        both = _error(np.concatenate([others, marks], axis=1), rows[:, number])
        if without > EXACT * spreads[number] and both <= (1 - TOLD) * without:
            together.add(number)
    return alone | together


def _error(columns: Floats, wanted: Floats) -> float:
    """Mean square error of a linear regression of `wanted` on `columns`. All other rows predict each row."""
    design = np.column_stack([np.ones(len(wanted)), columns])
    inverse = np.linalg.pinv(design)
    leverage = np.minimum(np.einsum("rc,cr->r", design, inverse), 1 - 1e-6)
    return float(np.mean(((wanted - design @ (inverse @ wanted)) / (1 - leverage)) ** 2))
