"""The words of a reward over happenings: filters on a thing's features, meanings of words, steps of an instruction.

An `Outline` is all of them together as one program: nothing is written that it does not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from grace_irl.synthesis.grid.scene import EVENTS, SIDES, Perception

Feature = Literal["event", "channel 0", "channel 1", "channel 2", "side", "count"]
CHANNELS: tuple[Feature, ...] = ("channel 0", "channel 1", "channel 2")
STATIC: tuple[Feature, ...] = ("channel 0", "channel 1", "side")
"""Features that a thing has from the start, so that an instruction can refer to it by them."""

Novel = Literal["ignore", "guess", "require"]
Arrangement = Literal["then", "after", "both", "beside"]

Words = tuple[str, ...]
Step = tuple[Words, ...]
"""The words that describe the thing, and those that describe each thing beside it."""
Stage = tuple[Step, ...]
"""Steps that may be done in any order."""


@dataclass(frozen=True, order=True)
class Filter:
    """A condition on one feature of a thing: feature == value (for sides: it lies on that side)."""

    feature: Feature
    value: int

    def __str__(self) -> str:
        if self.feature == "event":
            return EVENTS[self.value]
        if self.feature == "side":
            return SIDES[self.value]
        return f"{self.feature} = {self.value}"


@dataclass(frozen=True)
class Plan:
    """The way to take instructions apart: at separating words, which bind in this order, the loosest first.

    * then, after: what stands before the word is a step to be done before, or after, what stands behind it.
    * both: the steps on both sides are done in any order.
    * beside: the words behind it describe a thing in a neighbouring cell of the one that the words before it describe.

    Attributes:
        separators: words and what each does, sorted; () if every instruction is one step.
    """

    separators: tuple[tuple[str, Arrangement], ...] = ()

    def of(self, *arrangements: Arrangement) -> tuple[str, ...]:
        """The words that do this."""
        return tuple(word for word, arrangement in self.separators if arrangement in arrangements)

    def and_at(self, separator: str, arrangement: Arrangement) -> Plan:
        """The plan with one more separator."""
        return Plan(tuple(sorted([*self.separators, (separator, arrangement)])))

    @property
    def steps(self) -> bool:
        """Whether an instruction may have several steps."""
        return bool(self.of("then", "after", "both"))

    @property
    def beside(self) -> bool:
        """Whether a step may speak of more than one thing."""
        return bool(self.of("beside"))

    def stages(self, words: Words) -> tuple[Stage, ...]:
        """The steps of an instruction: stages in the order in which they are to be done."""
        for at, word in enumerate(words):
            if word in self.of("then", "after"):
                before, after = self.stages(words[:at]), self.stages(words[at + 1 :])
                return before + after if word in self.of("then") else after + before
        return (tuple(_cut(step, self.of("beside")) for step in _cut(words, self.of("both"))),)


def _cut(words: Words, separators: Sequence[str]) -> tuple[Words, ...]:
    """The words between separators."""
    places = [-1, *(at for at, word in enumerate(words) if word in separators), len(words)]
    return tuple(words[a + 1 : b] for a, b in pairwise(places))


SEVERAL = Filter("count", 1)
"""The meaning of "a" beside "the": more than one thing fits. It constrains no thing, so no program uses it."""

Meanings = tuple[tuple[str, tuple[Filter, ...]], ...]
"""Word -> filters of which a thing must meet one."""


@dataclass(frozen=True)
class Hypothesis:
    """A whole reading of the data: what has to happen to a thing that the instruction describes.

    Attributes:
        plan: how instructions are taken apart.
        constants: filters that always hold; a word that says what happens replaces the usual event.
        meanings: what words surely mean.
        guesses: what words may mean: a happening that fits the meanings but not the guesses earns half the reward.
        novel: how to take a word that training never showed: "ignore" it; "guess" that it names what no known word
            names (half the reward otherwise); or "require" so.
    """

    plan: Plan
    constants: tuple[Filter, ...] = ()
    meanings: Meanings = ()
    guesses: Meanings = ()
    novel: Novel = "ignore"


ByFeature = dict[Feature, dict[str, tuple[Filter, ...]]]


@dataclass(frozen=True)
class Outline:
    """A hypothesis, sorted by its place in a program.

    Attributes:
        perception: what all grids show.
        plan: how instructions are taken apart.
        sure, guessed: feature -> word -> filters of which a thing must meet one.
        always: filters that hold whatever the instruction says.
        events: names of the events that count.
        novel: how to take unknown words; "ignore" if no known word means anything.
        phrases: runs of words that are read as one, because they mean something.
        plain: words that say nothing about a thing.
    """

    perception: Perception
    plan: Plan
    sure: ByFeature
    guessed: ByFeature
    always: tuple[Filter, ...]
    events: tuple[str, ...]
    novel: Novel
    phrases: tuple[str, ...]
    plain: tuple[str, ...]

    @classmethod
    def of(
        cls, hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str]
    ) -> Outline:
        """The outline of a hypothesis; arguments as for `write_source`."""
        plan = hypothesis.plan
        sure, guessed = _by_feature(hypothesis.meanings), _by_feature(hypothesis.guesses)
        parting = [word for word, _ in plan.separators]
        spoken = {*dict(hypothesis.meanings), *dict(hypothesis.guesses), *parting}
        plain = [w for word in vocabulary if word not in spoken for w in word.split()] + parting
        usual = next(f for f in hypothesis.constants if f.feature == "event")
        verbs = [f for words in (sure, guessed) for fs in words.get("event", {}).values() for f in fs]
        events = tuple(sorted({EVENTS[f.value] for f in [usual, *verbs]}, key=EVENTS.index))
        return cls(
            perception=perception,
            plan=plan,
            sure=sure,
            guessed=guessed,
            # With a single kind of happening there is no other event to tell it from.
            always=tuple(f for f in hypothesis.constants if f.feature != "event" or len(events) > 1),
            events=events,
            novel=hypothesis.novel if sure or guessed else "ignore",
            # A phrase is read as one if it means something: else its words may as well stand alone.
            phrases=tuple(phrase for phrase in phrases if phrase in spoken),
            plain=tuple(dict.fromkeys(word for word in plain if word)),
        )

    @property
    def words(self) -> bool:
        """Whether any word means anything."""
        return bool(self.sure or self.guessed)

    @property
    def instructed(self) -> bool:
        """Whether the program looks at the instruction at all."""
        return self.words or bool(self.plan.separators)

    @property
    def described(self) -> bool:
        """Whether words describe things."""
        return self.words or self.plan.beside

    @property
    def sides(self) -> bool:
        """Whether the place of a thing matters."""
        return "side" in {*self.sure, *self.guessed, *(f.feature for f in self.always)}

    @property
    def first(self) -> bool:
        """Whether the first state must be remembered."""
        return self.sides or "entered" in self.events or self.novel != "ignore"


def _by_feature(meanings: Meanings) -> ByFeature:
    grouped: ByFeature = {}
    for word, filters in meanings:
        grouped.setdefault(filters[0].feature, {})[word] = filters
    return grouped


HAPPENS = {
    "faced": "the agent faces {thing}",
    "taken": "{thing} has just gone from its cell",
    "changed": "{thing} has just changed in its cell",
    "placed": "{thing} has just come to a cell",
    "entered": "the agent stands where {thing} was at the start",
}


def summary(hypothesis: Hypothesis) -> str:
    """The happening that the program watches for, as half a sentence."""
    usual = {f.feature: f for f in hypothesis.constants}
    verbs = [f for _, filters in (*hypothesis.meanings, *hypothesis.guesses) for f in filters if f.feature == "event"]
    events = {EVENTS[f.value] for f in [usual["event"], *verbs]}
    if hypothesis.meanings or hypothesis.guesses:
        thing = "the thing that the instruction describes"
    else:
        kinds = [str(f) for name, f in sorted(usual.items()) if name != "event"]
        thing = f"a thing with {' and '.join(kinds)}" if kinds else "a thing"
    if len(events) > 1:
        text = f"what the instruction says has just happened to {thing}"
    else:
        text = HAPPENS[events.pop()].format(thing=thing)
    if hypothesis.plan.beside:
        text += ", beside the other thing that it describes"
    if hypothesis.plan.steps:
        text += ", as the last step of the instruction"
    return text
