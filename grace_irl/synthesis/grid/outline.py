"""The outline of a hypothesis as a reward program: nothing is written that it does not need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.synthesis.grid.meaning import Feature, Filter, Hypothesis, Meanings, Novel, Plan
from grace_irl.synthesis.grid.perception import Perception
from grace_irl.synthesis.grid.scene import EVENTS

ByFeature = dict[Feature, dict[str, tuple[Filter, ...]]]


@dataclass(frozen=True)
class Outline:
    """A hypothesis, sorted by where it stands in a program.

    Attributes:
        perception: what all grids show.
        plan: how instructions are taken apart.
        sure, guessed: feature -> word -> filters of which a thing must meet one.
        always: filters that hold whatever the instruction says.
        events: names of the events that count.
        novel: how to take unknown words; "ignore" where no known word means anything.
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
            # A phrase is read as one where it means something: else its words may as well stand alone.
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
        """Whether it matters where a thing lies."""
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
    """What the program watches for, as half a sentence."""
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
