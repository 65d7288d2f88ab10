"""Programs that wait for the event that an instruction describes, for grids where expert trajectories end at the goal.

A reading gives meanings to words of the instructions. The demonstrations leave several meanings of a word possible,
each with a probability. A program requires those meanings for which the expected loss is lowest. There are two losses:
a required meaning that is wrong leaves expert states without reward, and a meaning that is not required lets more
negative states earn reward. The second loss depends on how often the event occurs in negative states
(`negative_pressure`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.grid.evidence import GridEvidence
from grace_irl.synthesis.grid.learn import wander
from grace_irl.synthesis.grid.lexicon import Lexicon, Posterior
from grace_irl.synthesis.grid.meaning import (
    SEVERAL,
    Feature,
    Filter,
    Hypothesis,
    Meanings,
    Novel,
    Plan,
    WordSlots,
    summary,
)
from grace_irl.synthesis.grid.reading import SPOKEN, GridReading
from grace_irl.synthesis.grid.scene import EVENTS
from grace_irl.synthesis.grid.search import LearntPlan, PlanSearch, view
from grace_irl.synthesis.grid.source import write_source

MISS = 0.8
"""Probability that a thing does not fit a wrong meaning of a word: 1 - 1/5 if a feature has five values."""
COINCIDENCE = 0.05
"""The things at all goals may share a code (a number in a grid cell) by chance. Programs require the code if the
probability of such a coincidence is below `COINCIDENCE`."""
CHANGED = Filter("event", EVENTS.index("changed"))
NOVEL_TRUST = 0.85
"""Probability that a word outside the training data names a value that no known word names."""


def decide(lexicon: Lexicon, posterior: Posterior, reading: GridReading | None = None) -> Hypothesis:
    """Choose the contents of a program: the meanings that it requires, and guesses.

    An event that fails a required meaning earns no reward. An event that only fails a guess earns half the reward.

    Args:
        lexicon: the words and filters, and the cost of readings.
        posterior: the best reading, and the probability of each meaning.
        reading: the reading whose meanings become guesses unless they are required; by default the most likely one.
    """
    evidence = lexicon.evidence
    reading = reading or posterior.best
    pressure = negative_pressure(lexicon, posterior.best)
    sure: list[tuple[str, tuple[Filter, ...]]] = []
    guesses: list[tuple[str, tuple[Filter, ...]]] = []
    said = words_of_experts(evidence)
    taken = {column for word, column in reading.meanings.items() if word in said}
    # Each word is decided alone: its probabilities already include the best meanings of the others (`learn._profile`).
    for word in lexicon.words:
        chances = _without_several(posterior.words[word], evidence)
        if word not in said:
            chances = _without(taken, chances)
        best = reading.meanings.get(word, -1)
        kept = safest(chances, pressure, evidence)
        if kept:
            sure.append((word, tuple(evidence.filters[column] for column in kept)))
        if (
            best >= 0
            and evidence.filters[best] != SEVERAL
            and kept != (best,)
            and _credible(word, reading, posterior, said)
        ):
            guesses.append((word, (evidence.filters[best],)))
    columns = {*reading.constants.values(), *shared_constants(lexicon, reading)}
    constants = tuple(sorted(evidence.filters[column] for column in columns))
    novel, slots = _novel(tuple(sure), pressure), _slots(lexicon, reading, (*guesses, *sure))
    return Hypothesis(lexicon.plan, constants, tuple(sure), tuple(guesses), novel, lexicon.between, slots)


def _credible(word: str, reading: GridReading, posterior: Posterior, said: set[str]) -> bool:
    """Whether a reading's meaning of a word may be a guess.

    The meaning may be a guess if an expert's instruction contains the word (`said`), because goal states show the
    meaning. Otherwise, the meaning must be at least twice as likely as every other filter, and no word of the experts
    may have this meaning.
    """
    column = reading.meanings.get(word, -1)
    if word in said:
        return True
    taken = any(other in said and reading.meanings[other] == column for other in reading.meanings)
    chances = posterior.words[word]
    others = [chance for other, chance in chances.items() if other not in (-1, column)]
    return not taken and chances.get(column, 0.0) >= 2 * max(others, default=0.0)


def words_of_experts(evidence: GridEvidence) -> set[str]:
    """The words of all instructions under which a trajectory has goal states."""
    pairs = zip(evidence.scenes, evidence.positives, strict=True)
    return {word for scene, positive in pairs if positive.any() for word in scene.words}


def _without_several(chances: Mapping[int, float], evidence: GridEvidence) -> dict[int, float]:
    """Add the probability of "one of several" to the probability of "no meaning" (-1).

    A program treats both in the same way, because "one of several" excludes no thing.
    """
    several = evidence.index[SEVERAL]
    plain = chances.get(-1, 0.0) + chances.get(several, 0.0)
    return {**{column: chance for column, chance in chances.items() if column != several}, -1: plain}


def _without(taken: Collection[int], chances: Mapping[int, float]) -> dict[int, float]:
    """Add the probability of meanings that words of the experts have (`taken`) to the probability of "no meaning".

    For a word that no expert says, no goal shows what it means. Few languages have two words for one colour.
    """
    left = {column: chance for column, chance in chances.items() if column not in taken}
    return {**left, -1: 1.0 - sum(chance for column, chance in left.items() if column != -1)}


def shared_constants(lexicon: Lexicon, reading: GridReading) -> list[int]:
    """Indices of filters on codes that the things at all goals pass, unless this may be chance (`COINCIDENCE`).

    For example, the event "changed" includes doors that open and doors that close. If doors open at all goals, the
    filter on the code of an open door excludes doors that close, even if no demonstration shows a closing door. The
    event must be "changed", because other events do not determine the codes of their things. A filter applies to every
    step of an instruction. So a filter is left out if the thing of an earlier step fails it, because the program would
    then miss a goal. Plans with neighbours ("beside") have no such filters.
    """
    evidence = lexicon.evidence
    spoken = {evidence.filters[column].feature for column in (*reading.constants.values(), *reading.meanings.values())}
    goals: list[NDArray[np.bool_]] = []
    others: list[NDArray[np.bool_]] = []
    for i, positive in enumerate(evidence.positives):
        at_goal, elsewhere = evidence.split_rows(i, lexicon.stages(reading, i), positive)
        goals += [at_goal] if len(at_goal) else []
        others.append(elsewhere)
    changes = evidence.filters[reading.constants["event"]] == CHANGED
    if not goals or not changes or lexicon.plan.beside:
        return []
    rest = np.concatenate(others)
    found: list[int] = []
    for column, f in enumerate(evidence.filters):
        if f.feature.startswith("channel") and f.feature not in spoken and all(rows[:, column].all() for rows in goals):
            # Share of other events with this code. By Laplace's rule, the share is above 0 even if none has the code.
            usual = (rest[:, column].sum() + 1) / (len(rest) + 2)
            if usual ** len(goals) < COINCIDENCE and _goals_stay(lexicon, reading, [*found, column]):
                found.append(column)
    return found


def _goals_stay(lexicon: Lexicon, reading: GridReading, constants: Sequence[int]) -> bool:
    """Whether a reading's event completes in the same goal states if the thing of each step must pass these filters."""
    for i, positive in enumerate(lexicon.evidence.positives):
        stages = lexicon.stages(reading, i)
        narrower = tuple(tuple((tuple(sorted({*step[0], *constants})),) for step in stage) for stage in stages)
        fired = lexicon.evidence.fired(i, stages)
        if (positive & fired & ~lexicon.evidence.fired(i, narrower)).any():
            return False
    return True


def negative_pressure(lexicon: Lexicon, reading: GridReading) -> float:
    """Share of negative states that a program would reward if it ignored all words about things.

    The result is the larger of two shares. One is the share of swaps (expert episodes with another instruction) in
    which the program would reward a state. The other is the share of rewarded states among the negative states of
    all trajectories that are no swaps.
    """
    filters = lexicon.evidence.filters
    verbs = {word: column for word, column in reading.meanings.items() if filters[column].feature == "event"}
    wordless = GridReading(reading.constants, verbs)
    hits = total = paid = 0
    for i, positive in enumerate(lexicon.evidence.positives):
        fired = lexicon.evidence.fired(i, lexicon.stages(wordless, i))
        if lexicon.evidence.swapped[i]:
            paid += bool(fired.any())
            continue
        hits += int((fired & ~positive).sum())
        total += int((~positive).sum())
    return max(hits / max(1, total), paid / max(1, sum(lexicon.evidence.swapped)))


def safest(chances: Mapping[int, float], pressure: float, evidence: GridEvidence) -> tuple[int, ...]:
    """Choose the filters of a word with the lowest expected loss. A thing must pass one of them; () requires nothing.

    Candidates are the k most likely filters on one feature with K values. Let P be the sum of their probabilities. With
    probability 1 - P all of them are wrong, and a share `MISS` of the expert states earns no reward. If the values are
    equally frequent, a share `pressure` * k/K of the negative states earns reward. So the expected loss is
    (1 - P) * `MISS` + `pressure` * k/K. The loss of () is `pressure`.

    Args:
        chances: probability of each meaning (filter index) of the word; -1 stands for no meaning.
        pressure: see `negative_pressure`.
        evidence: the filters.
    """
    best: tuple[float, tuple[int, ...]] = (pressure, ())
    features = {evidence.filters[column].feature for column in chances if column >= 0}
    for feature in sorted(features):
        size = sum(f.feature == feature for f in evidence.filters)
        ranked = sorted(
            (column for column in chances if column >= 0 and evidence.filters[column].feature == feature),
            key=lambda column: (-chances[column], column),
        )
        for k in range(1, len(ranked)):
            chosen = ranked[:k]
            wrong = 1.0 - sum(chances[column] for column in chosen)
            loss = wrong * MISS + pressure * k / size
            if loss < best[0] - 1e-12:
                best = (loss, tuple(sorted(chosen)))
    return best[1]


def likelihood(lexicon: Lexicon, reading: GridReading) -> float:
    """Mean log-likelihood in nats of the labels, given only whether the reading's event completes; at most 0.

    Positive and negative states have equal weight, as in the fitness of programs.
    """
    evidence = lexicon.evidence
    outcomes = [evidence.outcomes(i, lexicon.stages(reading, i)) for i in range(len(evidence.scenes))]
    goals = sum(int(positive.sum()) for positive in evidence.positives)
    others = sum(len(positive) for positive in evidence.positives) - goals
    hit = sum(goal for goal, _ in outcomes) / max(1, goals)
    wrong = sum(other for _, other in outcomes) / max(1, others)
    shares = ((hit, wrong), (1 - hit, 1 - wrong))
    terms = [part * math.log(part / (a + b)) for a, b in shares for part in (a, b) if part > 0]
    return sum(terms) / 2


def best_condition(evidence: GridEvidence) -> GridReading:
    """The reading without words that fits the labels best: one event, and at most one more filter on its thing."""
    lexicon = Lexicon(evidence, Plan())
    events = [i for i, f in enumerate(evidence.filters) if f.feature == "event"]
    others = [i for i, f in enumerate(evidence.filters) if f.feature not in {"event", *SPOKEN}]
    readings = [GridReading({"event": event}) for event in events]
    readings += [one.with_constant(evidence.filters[i].feature, i) for one in readings for i in others]
    return max(readings, key=lambda one: likelihood(lexicon, one))


def _slots(lexicon: Lexicon, reading: GridReading, meanings: Meanings) -> WordSlots:
    """Find the slots of training instructions (`WordSlots`), given the meanings of their words.

    `WordSlots.unnamed` lists known words that have no meaning and only stand in slots of one feature. Such a word may
    name a new value of the feature. A word is not listed if it occurs in an instruction with a goal where the thing has
    a known value of the feature.
    """
    evidence = lexicon.evidence
    slots = WordSlots.of([scene.words for scene in evidence.scenes], {word: fs[0].feature for word, fs in meanings})
    known: set[str] = set()
    for i, (scene, positive) in enumerate(zip(evidence.scenes, evidence.positives, strict=True)):
        at_goal, _ = evidence.split_rows(i, lexicon.stages(reading, i), positive)
        named = {f.feature for _, fs in meanings for f in fs if at_goal[:, evidence.index[f]].any()}
        known.update(word for word, feature in slots.unnamed if word in scene.words and feature in named)
    unnamed = tuple(one for one in slots.unnamed if one[0] not in known)
    return replace(slots, unnamed=unnamed, unshown=_unshown(lexicon, slots, dict(meanings)))


def _unshown(
    lexicon: Lexicon, slots: WordSlots, meanings: Mapping[str, tuple[Filter, ...]]
) -> tuple[tuple[str, tuple[Feature, ...]], ...]:
    """Words that no goal shows, each with the features of slots that it may name (`WordSlots.unshown`)."""
    plan, scenes = lexicon.plan, lexicon.evidence.scenes
    parts = [part for one in scenes for stage in plan.stages(one.words) for step in stage for part in step]
    features = sorted({feature for _, feature in (*slots.before, *slots.after)})
    known = {*words_of_experts(lexicon.evidence), *meanings, *dict(plan.separators), *dict(slots.unnamed)}
    found = []
    for word in lexicon.words:
        others = {other for part in parts if word in part for other in part}
        named = {meanings[other][0].feature for other in others & meanings.keys()}
        if word not in known and (free := tuple(feature for feature in features if feature not in named)):
            found.append((word, free))
    return tuple(found)


def _novel(sure: Meanings, pressure: float) -> Novel:
    if not sure:
        return "ignore"
    return "require" if pressure * MISS > (1 - NOVEL_TRUST) * MISS else "guess"


Style = Literal["weighed", "bold", "careful"]
STYLES: tuple[Style, ...] = ("weighed", "bold", "careful")
RISK = 1.0
"""Price in nats of the styles "bold" and "careful"."""
STEPS = 300
"""Number of steps of the random walk from a reading to a variation of it."""
EARLY = -1
"""Number of the early plan in sketches (`GridSketcher`)."""
EARLY_STEPS = 40_000
"""If the search for plans and readings takes more steps than these, the first program is an early one. A step takes up
to 100 microseconds of CPU time on a busy machine, so this is after at most 5 s."""


@dataclass(frozen=True)
class _Sketch:
    """A reading of the instructions under plan number `plan`, and a style of program.

    A plan names the words at which instructions are split. The early plan has the number `EARLY`. The style decides
    about guesses, the meanings that are not sure. With "weighed", an event that fails a guess earns half the reward.
    With "bold", such an event earns nothing. With "careful", the program has no guesses.
    """

    plan: int
    reading: GridReading
    style: Style

    def text(self) -> str:
        return json.dumps([self.plan, self.reading.constants, dict(sorted(self.reading.meanings.items())), self.style])

    @classmethod
    def of(cls, text: str) -> _Sketch:
        plan, constants, meanings, style = json.loads(text)
        return cls(plan, GridReading(constants, meanings), style)


class GridSketcher:
    """Sketcher of programs that wait for an event on a grid. A sketch is JSON with a plan, a reading and a style."""

    def __init__(self, items: Sequence[Labelled], seed: int) -> None:
        self._view = view(items)
        self._search = PlanSearch(self._view, seed)

    @property
    def possible(self) -> bool:
        """Whether events happen in goal states, so that programs can wait for them."""
        return bool(self._view.events)

    @cached_property
    def _early(self) -> LearntPlan | None:
        """The plan of lowest cost after `EARLY_STEPS` steps of the search; None if the search takes fewer steps.

        If `best_condition` fits the labels better than the best reading under this plan, it takes this reading's place.
        """
        found = self._search.early(EARLY_STEPS)
        if found is None:
            return None
        whole, single = Lexicon(self._view.evidence, Plan()), best_condition(self._view.evidence)
        if likelihood(whole, single) <= likelihood(found.lexicon, found.posterior.best) + 1e-9:
            return found
        return LearntPlan(whole, Posterior(single, whole.total(single), {word: {-1: 1.0} for word in whole.words}))

    @cached_property
    def _found(self) -> list[LearntPlan]:
        """The plans that had a full search, the one of lowest cost first."""
        _ = self._early  # always before the end of the search, so that a resumed run has the same early program
        return self._search.finish()

    def initial(self) -> Iterator[str]:
        """The best reading of each plan in each style, then these readings without meanings of words.

        `best_condition` gives a reading without words. If this reading fits the labels better than the best reading of
        the search does, it comes first of all. This happens if no reading explains the instructions, so that the best
        reading of the search may miss many goals.

        If the search is long (`EARLY_STEPS`), the best reading so far comes before all of these, and the search goes on
        after it.
        """
        if self._early is not None:
            yield _Sketch(EARLY, self._early.posterior.best, "weighed").text()
        sketches = [
            _Sketch(i, one.posterior.best, style).text() for i, one in enumerate(self._found) for style in STYLES
        ]
        wordless = [
            _Sketch(i, GridReading(one.posterior.best.constants), "bold").text() for i, one in enumerate(self._found)
        ]
        single = best_condition(self._view.evidence)
        best = self._found[0]
        if likelihood(best.lexicon, single) > likelihood(best.lexicon, best.posterior.best) + 1e-9:
            whole = next(i for i, one in enumerate(self._found) if one.lexicon.plan == Plan())
            sketches.insert(0, _Sketch(whole, single, "bold").text())
        yield from dict.fromkeys([*sketches, *wordless])

    def mutate(self, sketch: str, seed: int) -> str:
        """Walk to another plausible reading, and draw a style."""
        parent = _Sketch.of(sketch)
        rng = np.random.default_rng(seed)
        reading = wander(self._plan(parent.plan).lexicon, parent.reading, STEPS, rng)
        return _Sketch(parent.plan, reading, STYLES[int(rng.integers(len(STYLES)))]).text()

    def prior(self, sketch: str) -> float:
        """Cost of the best plan and reading, minus the cost of the sketch's plan, reading and style.

        The best plan is not known yet when the early sketch is written. Then its cost counts as 0, the lowest that is
        possible. If the early program turns out to be the best one, the priors of all others are lower by as much.
        """
        one = _Sketch.of(sketch)
        if self._early is not None and one == _Sketch(EARLY, self._early.posterior.best, "weighed"):
            return -self._early.cost
        found = self._plan(one.plan)
        extra = found.lexicon.total(one.reading) - found.posterior.cost + found.cost - self._found[0].cost
        # A variation can have a lower cost than the best reading of the search. Then the difference counts as 0.
        return min(0.0, -extra) - (RISK if one.style != "weighed" else 0.0) - self._lead

    @cached_property
    def _lead(self) -> float:
        """Cost of the early program if it is the best program, else 0."""
        if self._early is None:
            return 0.0
        early = _Sketch(EARLY, self._early.posterior.best, "weighed").text()
        best = _Sketch(0, self._found[0].posterior.best, "weighed").text()
        return self._early.cost if self.source(early) == self.source(best) else 0.0

    def _plan(self, number: int) -> LearntPlan:
        if number != EARLY:
            return self._found[number]
        assert self._early is not None  # a sketch with this number was written
        return self._early

    def source(self, sketch: str) -> str:
        return write_source(self._hypothesis(sketch), self._view.perception, self._view.vocabulary, self._view.phrases)

    def reasoning(self, sketch: str) -> str:
        return f"The goal is reached where {summary(self._hypothesis(sketch))}."

    def _hypothesis(self, sketch: str) -> Hypothesis:
        one = _Sketch.of(sketch)
        found = self._plan(one.plan)
        weighed = decide(found.lexicon, found.posterior, one.reading)
        if one.style == "weighed":
            return weighed
        if one.style == "careful":
            return replace(weighed, guesses=(), novel="ignore")
        filters = found.lexicon.evidence.filters
        known, sure = words_of_experts(found.lexicon.evidence), dict(weighed.meanings)
        kept = [
            word
            for word in one.reading.meanings
            if word in sure or _credible(word, one.reading, found.posterior, known)
        ]
        said = {word: (filters[one.reading.meanings[word]],) for word in kept}
        spoken = tuple(sorted((word, fs) for word, fs in said.items() if fs[0].feature != "count"))
        novel: Novel = "require" if weighed.novel != "ignore" else "ignore"
        return replace(
            weighed, meanings=spoken, guesses=(), novel=novel, slots=_slots(found.lexicon, one.reading, spoken)
        )
