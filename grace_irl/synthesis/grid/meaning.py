"""Interpretations of instructions in a grid world: which event, on which thing, earns the reward.

For example, "pick up the red ball" may mean: the event is "taken", channel 0 of the thing is 6, and channel 1 is 0.
A `Hypothesis` is such an interpretation of all instructions. An `Outline` holds the same contents, sorted by their
place in a program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from grace_irl.synthesis.grid.scene import EVENTS, HALVES, SIDES, Perception

Feature = Literal["event", "channel 0", "channel 1", "channel 2", "side", "half", "shared 0", "shared 1", "count"]
CHANNELS: tuple[Feature, ...] = ("channel 0", "channel 1", "channel 2")
SHARED: dict[Feature, tuple[int, int]] = {"shared 0": (0, 1), "shared 1": (1, 0)}
"""Features of a thing that shares a code with another thing of the first state. For each feature: the channel in which
both things have the same code, and the channel in which their codes differ. The value is the other thing's code in the
latter channel. For example, a door that has the colour (channel 1) of a key (channel 0 = 5) has "shared 1" = 5."""
STATIC: tuple[Feature, ...] = ("channel 0", "channel 1", "side", "shared 0", "shared 1")
"""Features of a thing that seldom change after the first state, so that an instruction can refer to them."""

Novel = Literal["ignore", "guess", "require"]
Arrangement = Literal["then", "after", "both", "beside"]

Words = tuple[str, ...]
Step = tuple[Words, ...]
"""One step of an instruction: the words about the thing of the event, then the words about each thing beside it. For
example, "take the ball next to the box" gives ("take", "the", "ball") and ("the", "box")."""
ENCLOSED = 3
"""Number of parts of a step about a thing between two others. All three things lie in one row or column."""
Stage = tuple[Step, ...]
"""Steps of an instruction that may happen in any order, such as those of "take the key and the ball"."""


@dataclass(frozen=True, order=True)
class Filter:
    """A condition on one feature of a thing.

    Attributes:
        feature: a channel of the thing's cell, the side on which the thing lies, the half of the grid in which it lies,
            a code that it shares with other things (`SHARED`), or the event that happens to it. "count" is the feature
            of `SEVERAL`.
        value: the required code, or an index into `SIDES`, `HALVES` or `EVENTS`.
    """

    feature: Feature
    value: int

    def __str__(self) -> str:
        if self.feature == "event":
            return EVENTS[self.value]
        if self.feature == "side":
            return SIDES[self.value]
        if self.feature == "half":
            return HALVES[self.value]
        if self.feature in SHARED:
            same, other = SHARED[self.feature]
            return f"the channel {same} of a thing with channel {other} = {self.value}"
        return f"{self.feature} = {self.value}"


@dataclass(frozen=True)
class Plan:
    """A plan of instructions: the words at which they are split, called separators.

    Each separator has an arrangement, which is the relation between the parts on its left and right:

    * then: the left part happens first, as in "take the key, then open the door".
    * after: the right part happens first, as in "open the door after you take the key".
    * both: the parts happen in any order, as in "take the key and the ball".
    * beside: the right part describes a neighbour of the left part's thing, as in "the ball next to the box". With two
      such separators, the first part's thing lies between the things of the other two parts, as in "the ball between
      the box and the key".

    Instructions are split first at separators of the arrangements "then" and "after", next at those of "both", and last
    at those of "beside".

    Attributes:
        separators: sorted pairs of a word and its arrangement; () if instructions are not split.
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
    """Split words at separators."""
    places = [-1, *(at for at, word in enumerate(words) if word in separators), len(words)]
    return tuple(words[a + 1 : b] for a, b in pairwise(places))


SEVERAL = Filter("count", 1)
"""The meaning of "a" in contrast to "the": several things match the description. If a word has this meaning, a
description that several things match costs less in the search for an interpretation. The filter excludes no thing, so
programs do not test it."""

Meanings = tuple[tuple[str, tuple[Filter, ...]], ...]
"""Pairs of a word and its filters. A thing fits the word if it passes one of these filters."""


@dataclass(frozen=True)
class WordSlots:
    """Slots, which are places directly before or after certain words. The words in a slot name only one feature.

    So programs assume that an unknown word in the slot names this feature, too. For example, if "red" and "blue" stand
    before "ball", then an unknown word before "ball" names a colour. Words without a meaning, such as "the", may also
    stand in the slot.

    Attributes:
        before: sorted pairs of a word and a feature. The slot directly before the word is for names of the feature.
        after: the same for slots directly after words.
        unnamed: pairs of a word and a feature. The word is known but has no meaning, and stands only in slots of this
            feature. A program treats it like an unknown word.
        unshown: pairs of a word and features. The word is known but has no meaning, no instruction with a goal has it,
            and it describes no thing together with a name of one of these features. In their slots, a program treats it
            like an unknown word. For example, only a negative's instruction says "the purple ball".
    """

    before: tuple[tuple[str, Feature], ...] = ()
    after: tuple[tuple[str, Feature], ...] = ()
    unnamed: tuple[tuple[str, Feature], ...] = ()
    unshown: tuple[tuple[str, tuple[Feature, ...]], ...] = ()

    @classmethod
    def of(cls, instructions: Iterable[Words], named: Mapping[str, Feature]) -> WordSlots:
        """Find the slots. In a slot, several words name one feature, and no word names another feature.

        The feature must be channel 0 or channel 1.

        Args:
            instructions: the words of each instruction.
            named: the feature that each word with a meaning names.
        """
        before: dict[str, set[str]] = {}
        after: dict[str, set[str]] = {}
        said = [("", *words, "") for words in instructions]
        for one, other in (pair for words in said for pair in pairwise(words)):
            before.setdefault(other, set()).update({one} & named.keys())
            after.setdefault(one, set()).update({other} & named.keys())
        # The start and the end of an instruction are no slots: other instructions may have more words there.
        before.pop("", None)
        after.pop("", None)
        found = cls(_of_one_feature(before, named), _of_one_feature(after, named))
        places: dict[str, set[Feature | None]] = {}
        for words in said:
            for left, word, right in zip(words, words[1:], words[2:], strict=False):
                places.setdefault(word, set()).add(dict(found.after).get(left) or dict(found.before).get(right))
        silent = ((word, one) for word, (one, *more) in sorted(places.items()) if not more and word not in named)
        return replace(found, unnamed=tuple((word, one) for word, one in silent if one is not None))

    def without_phrases(self, kept: Collection[str]) -> WordSlots:
        """These slots for a program that reads the words of a phrase one by one, unless the phrase is in `kept`.

        The slot after "go to the" is then the slot after "the", which stands nowhere else in the instructions.
        """
        before = tuple(sorted((word if word in kept else word.split()[0], one) for word, one in self.before))
        after = tuple(sorted((word if word in kept else word.split()[-1], one) for word, one in self.after))
        words = [(word, features) for phrase, features in self.unshown for word in phrase.split()]
        return replace(self, before=before, after=after, unshown=tuple(words))

    def __bool__(self) -> bool:
        return bool(self.before or self.after)


def _of_one_feature(fillers: Mapping[str, set[str]], named: Mapping[str, Feature]) -> tuple[tuple[str, Feature], ...]:
    features = {word: {named[one] for one in some} for word, some in fillers.items() if len(some) > 1}
    return tuple((word, one) for word, (one, *more) in sorted(features.items()) if not more and one in CHANNELS[:2])


@dataclass(frozen=True)
class Hypothesis:
    """An interpretation of all instructions, from which a program is written.

    Attributes:
        plan: the words at which instructions are split.
        constants: filters that apply under every instruction. One of them is the usual event. If a word of the
            instruction names an event, that event replaces the usual one.
        meanings: sure meanings of words. An event that does not fit the instruction's words earns no reward.
        guesses: possible meanings of words. An event that fits the meanings but not the guesses earns half the reward.
        novel: treatment of an instruction with a word that no training instruction has. With "ignore" the word has no
            effect. Otherwise the program assumes that the word names a new value, such as channel 1 = 3 for "purple".
            (A value is new if no known word names it.) Events on things without a new value earn half the reward
            ("guess") or none ("require"). If no slot shows which feature the word names, the program assumes this only
            if a thing at the start has a new value.
        between: whether a training instruction describes a thing between two others.
        slots: words next to which an unknown word names one feature.
    """

    plan: Plan
    constants: tuple[Filter, ...] = ()
    meanings: Meanings = ()
    guesses: Meanings = ()
    novel: Novel = "ignore"
    between: bool = False
    slots: WordSlots = WordSlots()


ByFeature = dict[Feature, dict[str, tuple[Filter, ...]]]


@dataclass(frozen=True)
class Outline:
    """The contents of a hypothesis, sorted by their place in a program.

    Attributes:
        perception: the agent and the background, which all trajectories share.
        plan: the words at which instructions are split.
        sure, guessed: filters of `Hypothesis.meanings` and `Hypothesis.guesses`, by feature and word. A thing fits a
            word if it passes one of the word's filters.
        always: filters that apply under every instruction.
        events: names of the events that the program recognises.
        novel: treatment of unknown words, as in `Hypothesis`; "ignore" if no known word has a meaning.
        phrases: groups of words with one common meaning, such as "pick up".
        plain: separators, and known words without a meaning. Words in `slots.unnamed` are left out.
        between: whether an instruction may describe a thing between two others.
        slots: as in `Hypothesis`; none if `novel` is "ignore".
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
    between: bool = False
    slots: WordSlots = WordSlots()

    @classmethod
    def of(
        cls, hypothesis: Hypothesis, perception: Perception, vocabulary: Sequence[str], phrases: Sequence[str]
    ) -> Outline:
        """Build the outline of a hypothesis.

        Args:
            hypothesis: the interpretation of the instructions.
            perception: the agent and the background, which all trajectories share.
            vocabulary: all words and phrases of the training instructions.
            phrases: groups of words that are read as one word.
        """
        plan = hypothesis.plan
        sure, guessed = _by_feature(hypothesis.meanings), _by_feature(hypothesis.guesses)
        parting = [word for word, _ in plan.separators]
        slotted = hypothesis.novel != "ignore" and bool(sure or guessed)
        spoken = {*dict(hypothesis.meanings), *dict(hypothesis.guesses), *parting}
        silent = spoken.union(dict(hypothesis.slots.unnamed) if slotted else ())
        plain = [w for word in vocabulary if word not in silent for w in word.split()] + parting
        # A phrase without a meaning is not needed: its words are plain.
        kept = tuple(phrase for phrase in phrases if phrase in spoken)
        usual = next(f for f in hypothesis.constants if f.feature == "event")
        verbs = [f for words in (sure, guessed) for fs in words.get("event", {}).values() for f in fs]
        events = tuple(sorted({EVENTS[f.value] for f in [usual, *verbs]}, key=EVENTS.index))
        return cls(
            perception=perception,
            plan=plan,
            sure=sure,
            guessed=guessed,
            # A program that recognises only one event need not check which event happened.
            always=tuple(f for f in hypothesis.constants if f.feature != "event" or len(events) > 1),
            events=events,
            novel=hypothesis.novel if sure or guessed else "ignore",
            phrases=kept,
            plain=tuple(dict.fromkeys(word for word in plain if word)),
            between=hypothesis.between,
            slots=hypothesis.slots.without_phrases(kept) if slotted else WordSlots(),
        )

    @property
    def words(self) -> bool:
        """Whether a word has a meaning, sure or guessed."""
        return bool(self.sure or self.guessed)

    @property
    def instructed(self) -> bool:
        """Whether the program reads the instruction."""
        return self.words or bool(self.plan.separators)

    @property
    def described(self) -> bool:
        """Whether words of the instruction describe things."""
        return self.words or self.plan.beside

    @property
    def sides(self) -> bool:
        """Whether a filter tests the side on which a thing lies."""
        return "side" in self._features

    @property
    def halves(self) -> bool:
        """Whether a filter tests the half of the grid in which a thing lies."""
        return "half" in self._features

    @property
    def shared(self) -> tuple[Feature, ...]:
        """The features of `SHARED` that filters test."""
        return tuple(feature for feature in SHARED if feature in self._features)

    @property
    def first(self) -> bool:
        """Whether the program must remember the first state."""
        return self.sides or bool(self.shared) or "entered" in self.events or self.novel != "ignore"

    @property
    def _features(self) -> set[Feature]:
        return {*self.sure, *self.guessed, *(f.feature for f in self.always)}


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
    """Describe the event that the program waits for, for example "the agent faces a thing"."""
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
        text += ", between" if hypothesis.between else ", beside"
        text += " the two others that it describes" if hypothesis.between else " the other thing that it describes"
    if hypothesis.plan.steps:
        text += ", as the last step of the instruction"
    return text
