"""The proposer of drafts over grids. A draft is a reading of the instructions that is drawn or varied, not learnt.

The program of a draft has the same form as the programs of the module `sketcher`, but the proposer does not read
labels. So a search must find a good reading by the scores of programs alone, and searches can be compared.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.errors import InputError
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request
from grace_irl.synthesis.grid.meaning import SHARED, Feature, Filter, Hypothesis, Plan, summary
from grace_irl.synthesis.grid.reading import SPOKEN
from grace_irl.synthesis.grid.scene import HALVES
from grace_irl.synthesis.grid.search import ARRANGEMENTS, separators, view
from grace_irl.synthesis.grid.source import write_source

SPLIT = 0.5
"""Chance that a new draft splits instructions at one or two words, if `separators` finds words for this."""
MEANT = 0.3
"""Chance that a word of a new draft has a meaning."""
NARROWED = 0.3
"""Chance that a new draft has a second constant (`DraftReading.constants`), besides the event."""
PATIENCE = 20
"""Number of attempts to find a draft that differs from all parents and ancestors."""


@dataclass(frozen=True)
class DraftReading:
    """A reading of the instructions, in the form that the proposer varies.

    Attributes:
        plan: the words at which instructions are split.
        constants: by feature, the value that applies under every instruction. The feature "event" is always there.
        words: the filter that each word with a meaning stands for.
    """

    plan: Plan
    constants: Mapping[Feature, int]
    words: Mapping[str, Filter] = field(default_factory=dict)

    def text(self) -> str:
        """The draft as JSON, for `Proposal.sketch`."""
        words = {word: [each.feature, each.value] for word, each in sorted(self.words.items())}
        return json.dumps([self.plan.separators, dict(sorted(self.constants.items())), words], ensure_ascii=False)

    @classmethod
    def of(cls, text: str) -> DraftReading:
        """Read a draft from the JSON that `text` returns.

        Raises:
            InputError: the text is no draft.
        """
        try:
            plan, constants, words = json.loads(text)
            separated = tuple((str(word), ARRANGEMENTS[ARRANGEMENTS.index(kind)]) for word, kind in plan)
            said = {word: Filter(feature, int(value)) for word, (feature, value) in words.items()}
            return cls(Plan(separated), {feature: int(constants[feature]) for feature in ("event", *constants)}, said)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InputError(f"{text[:80]!a} is no draft of a reading; expected a run that drafts began") from None


class GridDrafter:
    """A proposer that draws and varies readings of instructions over grids.

    The answer depends on the operator of the request:

    - "initialise": a new draft.
    - "plan": a draft in which no word has a meaning. It differs from all ancestors.
    - "structure": another plan, event or constant; the words keep their meanings.
    - "weights": another value of one constant, or of the filter of one word; all features stay.
    - "mutate", "reflect": like "structure" or "weights", or one word gets, loses or changes its meaning.
    - "crossover": plan, constants and meanings, each taken from one of the parents.
    - "path": like "mutate", but the plan, constants and meanings that the parent shares with all ancestors stay.
    - "different": a new draft. If possible, its event differs from the events of all parents and ancestors. Words get
      no meaning that they have in a parent or an ancestor.

    Equal requests with equal parents have equal answers.

    Args:
        items: the labelled demonstrations. Labels are not read.

    Raises:
        InputError: no event happens to a thing in the demonstrations.
    """

    def __init__(self, items: Sequence[Labelled]) -> None:
        self._view = view([replace(item, positive=np.zeros_like(item.positive)) for item in items])
        values: dict[Feature, set[int]] = {"half": set(range(len(HALVES)))}
        for each in self._view.evidence.filters:
            values.setdefault(each.feature, set()).add(each.value)
        for feature, (_, other) in SHARED.items():
            values[feature] = {
                int(code) for scene in self._view.evidence.scenes for code in scene.things.codes[:, other]
            }
        self._values = {feature: tuple(sorted(found)) for feature, found in sorted(values.items()) if found}
        if "event" not in self._values:
            raise InputError("nothing happens to a thing in these grids; expected demonstrations of changes")
        self._splits = separators([scene.words for scene in self._view.evidence.scenes])
        self._steps: Mapping[str, Callable[[np.random.Generator, DraftReading], DraftReading]] = {
            "structure": self._structure,
            "weights": self._weights,
            "word": self._word,
        }

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        """Return one program.

        Raises:
            InputError: the sketch of a parent is no draft.
        """
        start = time.perf_counter()
        rng = np.random.default_rng(request.seed)
        shown = [DraftReading.of(parent.sketch) for parent in parents if parent.sketch]
        known = {each.text() for each in shown}
        for _ in range(PATIENCE):
            found = self._drawn(rng, request, shown)
            if found.text() not in known:
                return Proposal(
                    source=self.source(found),
                    reasoning=f"The goal is reached where {summary(self._hypothesis(found))}.",
                    sketch=found.text(),
                    seconds=time.perf_counter() - start,
                )
        return Proposal("", failure="no other draft was drawn", seconds=time.perf_counter() - start)

    def source(self, draft: DraftReading) -> str:
        """The program of a draft."""
        return write_source(self._hypothesis(draft), self._view.perception, self._view.vocabulary, self._view.phrases)

    def _hypothesis(self, draft: DraftReading) -> Hypothesis:
        constants = tuple(sorted(Filter(feature, value) for feature, value in draft.constants.items()))
        meanings = tuple((word, (each,)) for word, each in sorted(draft.words.items()))
        between = any(
            len(step) > 2
            for scene in self._view.evidence.scenes
            for stage in draft.plan.stages(scene.words)
            for step in stage
        )
        return Hypothesis(draft.plan, constants, meanings, between=between)

    def _drawn(self, rng: np.random.Generator, request: Request, shown: Sequence[DraftReading]) -> DraftReading:
        operator = request.operator
        if operator == "plan":
            return self._new(rng, words=False)
        if operator == "different":
            return self._different(rng, shown)
        if operator == "initialise" or not shown:
            return self._new(rng)
        if operator == "crossover":
            return self._crossover(rng, shown[: max(len(request.parents), 1)])
        if operator in self._steps:
            return self._steps[operator](rng, shown[0])
        found = self._steps[str(rng.choice(list(self._steps)))](rng, shown[0])
        return _with_shared(found, shown) if operator == "path" else found

    def _new(self, rng: np.random.Generator, *, words: bool = True) -> DraftReading:
        constants: dict[Feature, int] = {"event": self._value(rng, "event")}
        if rng.random() < NARROWED:
            constants |= self._constant(rng)
        said = [word for word in self._view.vocabulary if words and rng.random() < MEANT]
        return self._tidy(DraftReading(self._plan(rng), constants, {word: self._filter(rng) for word in said}))

    def _plan(self, rng: np.random.Generator) -> Plan:
        if not self._splits or rng.random() >= SPLIT:
            return Plan()
        count = int(rng.integers(1, min(len(self._splits), 2) + 1))
        chosen = sorted(str(word) for word in rng.choice(self._splits, count, replace=False))
        return Plan(tuple((word, ARRANGEMENTS[int(rng.integers(len(ARRANGEMENTS)))]) for word in chosen))

    def _different(self, rng: np.random.Generator, shown: Sequence[DraftReading]) -> DraftReading:
        found = self._new(rng)
        events = [e for e in self._values["event"] if e not in {each.constants["event"] for each in shown}]
        event = events[int(rng.integers(len(events)))] if events else found.constants["event"]
        taken = {(word, each) for draft in shown for word, each in draft.words.items()}
        words = {word: each for word, each in found.words.items() if (word, each) not in taken}
        return DraftReading(found.plan, {**found.constants, "event": event}, words)

    def _structure(self, rng: np.random.Generator, draft: DraftReading) -> DraftReading:
        """Change the plan or the event, or add, change or remove one constant."""
        step = int(rng.integers(3))
        if step == 0 and self._splits:
            return self._tidy(DraftReading(self._plan(rng), draft.constants, draft.words))
        if step == 1:
            return DraftReading(draft.plan, {**draft.constants, "event": self._value(rng, "event")}, draft.words)
        rest = [feature for feature in draft.constants if feature != "event"]
        if rest and rng.random() < 0.5:
            out = rest[int(rng.integers(len(rest)))]
            kept = {feature: value for feature, value in draft.constants.items() if feature != out}
            return DraftReading(draft.plan, kept, draft.words)
        return DraftReading(draft.plan, {**draft.constants, **self._constant(rng)}, draft.words)

    def _weights(self, rng: np.random.Generator, draft: DraftReading) -> DraftReading:
        """Change the value of a constant or of a word's filter. The feature stays."""
        places: list[Feature | str] = [*draft.constants, *draft.words]
        number = int(rng.integers(len(places)))
        if number < len(draft.constants):
            feature = list(draft.constants)[number]
            return DraftReading(draft.plan, {**draft.constants, feature: self._value(rng, feature)}, draft.words)
        word = list(draft.words)[number - len(draft.constants)]
        feature = draft.words[word].feature
        changed = Filter(feature, self._value(rng, feature))
        return DraftReading(draft.plan, draft.constants, {**draft.words, word: changed})

    def _word(self, rng: np.random.Generator, draft: DraftReading) -> DraftReading:
        """Give a word another meaning, or remove its meaning."""
        free = [word for word in self._view.vocabulary if word not in dict(draft.plan.separators)]
        if not free:
            return self._weights(rng, draft)
        word = free[int(rng.integers(len(free)))]
        rest = {each: found for each, found in draft.words.items() if each != word}
        lost = word in draft.words and rng.random() < 0.5
        return DraftReading(draft.plan, draft.constants, rest if lost else {**rest, word: self._filter(rng)})

    def _crossover(self, rng: np.random.Generator, drafts: Sequence[DraftReading]) -> DraftReading:
        """Combine plan, constants and meanings, each from a parent that is drawn at random."""

        def one() -> DraftReading:
            return drafts[int(rng.integers(len(drafts)))]

        plan = one().plan
        constants: dict[Feature, int] = {"event": one().constants["event"]}
        for feature in sorted({feature for each in drafts for feature in each.constants} - {"event"}):
            if feature in (found := one().constants):
                constants[feature] = found[feature]
        words = {}
        for word in sorted({word for each in drafts for word in each.words}):
            if word in (said := one().words):
                words[word] = said[word]
        return self._tidy(DraftReading(plan, constants, words))

    @staticmethod
    def _tidy(draft: DraftReading) -> DraftReading:
        """Remove the meanings of words at which the draft splits instructions."""
        split = dict(draft.plan.separators)
        return DraftReading(draft.plan, draft.constants, {w: each for w, each in draft.words.items() if w not in split})

    def _constant(self, rng: np.random.Generator) -> dict[Feature, int]:
        features = [feature for feature in self._values if feature != "event" and feature not in SPOKEN]
        if not features:
            return {}
        feature = features[int(rng.integers(len(features)))]
        return {feature: self._value(rng, feature)}

    def _filter(self, rng: np.random.Generator) -> Filter:
        """Draw a filter for a word. Features have equal chances, and so have the values of a feature."""
        features = [feature for feature in self._values if feature != "count"]
        feature = features[int(rng.integers(len(features)))]
        return Filter(feature, self._value(rng, feature))

    def _value(self, rng: np.random.Generator, feature: Feature) -> int:
        return self._values[feature][int(rng.integers(len(self._values[feature])))]


def _with_shared(found: DraftReading, shown: Sequence[DraftReading]) -> DraftReading:
    """Give a draft the plan, constants and meanings that the parent (the first of `shown`) shares with the rest."""
    parent, *above = shown
    if not above:
        return found
    plan = parent.plan if all(each.plan == parent.plan for each in above) else found.plan
    stay = {f: v for f, v in parent.constants.items() if all(each.constants.get(f) == v for each in above)}
    said = {w: f for w, f in parent.words.items() if all(each.words.get(w) == f for each in above)}
    return GridDrafter._tidy(DraftReading(plan, {**found.constants, **stay}, {**found.words, **said}))
