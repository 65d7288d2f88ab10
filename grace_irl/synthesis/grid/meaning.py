"""The parts of a reward over events: filters on features of a thing, meanings of words, and steps of an instruction.

An `Outline` combines these parts into one program, with only what the program needs.
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
"""Features that a thing has from the start, by which an instruction can refer to it."""

Novel = Literal["ignore", "guess", "require"]
Arrangement = Literal["then", "after", "both", "beside"]

Words = tuple[str, ...]
Step = tuple[Words, ...]
"""Words of a step: first those that describe the thing, then those that describe each thing beside it."""
Stage = tuple[Step, ...]
"""Steps in any order."""


@dataclass(frozen=True, order=True)
class Filter:
    """A condition on one feature of a thing: feature == value. For sides: the thing lies on this side."""

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
    """The separators at which instructions are split, from the loosest to the tightest arrangement.

    * then, after: the part before the word is a step that comes before ("then") or after ("after") the part behind it.
    * both: the steps on both sides come in any order.
    * beside: the words behind it describe a neighbour of the thing that the words before it describe.

    Attributes:
        separators: sorted words with their arrangements; () if every instruction is one step.
    """

    separators: tuple[tuple[str, Arrangement], ...] = ()

    def of(self, *arrangements: Arrangement) -> tuple[str, ...]:
        """The separators with one of these arrangements."""
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
        """Whether a step may describe more than one thing."""
        return bool(self.of("beside"))

    def stages(self, words: Words) -> tuple[Stage, ...]:
        """The stages of an instruction, in the order in which they have to happen."""
        for at, word in enumerate(words):
            if word in self.of("then", "after"):
                before, after = self.stages(words[:at]), self.stages(words[at + 1 :])
                return before + after if word in self.of("then") else after + before
        return (tuple(_cut(step, self.of("beside")) for step in _cut(words, self.of("both"))),)


def _cut(words: Words, separators: Sequence[str]) -> tuple[Words, ...]:
    """The parts of words between separators."""
    places = [-1, *(at for at, word in enumerate(words) if word in separators), len(words)]
    return tuple(words[a + 1 : b] for a, b in pairwise(places))


SEVERAL = Filter("count", 1)
"""The meaning of "a" in contrast to "the": several things match. It constrains no thing, so no program uses it."""

Meanings = tuple[tuple[str, tuple[Filter, ...]], ...]
"""Pairs of a word and its filters; a thing must pass one of them."""


@dataclass(frozen=True)
class Hypothesis:
    """A complete interpretation of the data: the event that must happen to the thing in the instruction.

    Attributes:
        plan: the separators of instructions.
        constants: filters that always apply; a word that names an event replaces the constant event.
        meanings: sure meanings of words.
        guesses: possible meanings of words. An event that fits the meanings but not the guesses earns half the reward.
        novel: treatment of a word that is not in training. "ignore" ignores it. "guess" and "require" assume that it
            names a value that no known word names; otherwise the reward is half ("guess") or 0 ("require").
    """

    plan: Plan
    constants: tuple[Filter, ...] = ()
    meanings: Meanings = ()
    guesses: Meanings = ()
    novel: Novel = "ignore"


ByFeature = dict[Feature, dict[str, tuple[Filter, ...]]]


@dataclass(frozen=True)
class Outline:
    """The contents of a hypothesis, sorted by their place in a program.

    Attributes:
        perception: facts that all trajectories share.
        plan: the separators of instructions.
        sure, guessed: filters by feature and word; a thing must pass one of a word's filters.
        always: filters that apply with any instruction.
        events: names of the events that the program recognises.
        novel: treatment of unknown words; "ignore" if no known word has a meaning.
        phrases: groups of words that are read as one because they have a meaning.
        plain: words that do not describe a thing.
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
        """Build the outline of a hypothesis; the arguments are those of `write_source`."""
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
            # If there is only one event, nothing has to tell it from others.
            always=tuple(f for f in hypothesis.constants if f.feature != "event" or len(events) > 1),
            events=events,
            novel=hypothesis.novel if sure or guessed else "ignore",
            # A phrase without a meaning may as well be split into words.
            phrases=tuple(phrase for phrase in phrases if phrase in spoken),
            plain=tuple(dict.fromkeys(word for word in plain if word)),
        )

    @property
    def words(self) -> bool:
        """Whether any word has a meaning."""
        return bool(self.sure or self.guessed)

    @property
    def instructed(self) -> bool:
        """Whether the program reads the instruction."""
        return self.words or bool(self.plan.separators)

    @property
    def described(self) -> bool:
        """Whether words describe things."""
        return self.words or self.plan.beside

    @property
    def sides(self) -> bool:
        """Whether the side of a thing matters."""
        return "side" in {*self.sure, *self.guessed, *(f.feature for f in self.always)}

    @property
    def first(self) -> bool:
        """Whether the program must remember the first state."""
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
    """The event that the program waits for, as half a sentence."""
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
