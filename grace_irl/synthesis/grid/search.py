"""From labelled grid trajectories to readings of them, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.grid.evidence import GridEvidence
from grace_irl.synthesis.grid.learn import anneal, descend, learn
from grace_irl.synthesis.grid.lexicon import GridReading, Lexicon, Posterior, find_phrases, split_words, substitutes
from grace_irl.synthesis.grid.meaning import Arrangement, Plan
from grace_irl.synthesis.grid.scene import Perception, look, perceive

ARRANGEMENTS: tuple[Arrangement, ...] = ("then", "after", "both", "beside")
SCREEN = 0.3
"""Share of the full search that is spent on a plan before it is known to be promising."""
FINALISTS = 2
MAX_PEERS = 2
"""Words that may stand where a separator stands ("then", "and", "after you"); one with more names something."""
MIN_COUNT = 2
"""Instructions in which a separator must stand."""
PLAN_PRICE = 6.0
"""Nats that each separator has to explain."""


@dataclass(frozen=True)
class PerceivedStates:
    """Labelled grid trajectories, perceived.

    Attributes:
        perception: what all of them show.
        phrases: words that go together.
        evidence: the tables.
    """

    perception: Perception
    phrases: tuple[str, ...]
    evidence: GridEvidence

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word and phrase of the instructions."""
        return tuple(sorted({word for scene in self.evidence.scenes for word in scene.words}))

    @property
    def events(self) -> list[int]:
        """Filters on what happens, those that happen in most goal states first; none if nothing does."""
        counts: Counter[int] = Counter()
        for scene, positive in zip(self.evidence.scenes, self.evidence.positives, strict=True):
            at_goal = positive[scene.happenings.state]
            counts.update(scene.happenings.event[at_goal].tolist())
        columns = [i for i, f in enumerate(self.evidence.filters) if f.feature == "event"]
        return sorted(columns, key=lambda c: (-counts[self.evidence.filters[c].value], c)) if counts else []


def view(items: Sequence[Labelled]) -> PerceivedStates:
    """Perceives labelled trajectories."""
    stacks = [np.asarray(item.trajectory.states, dtype=np.int64) for item in items]
    texts = [item.trajectory.extra_info for item in items]
    perception = perceive(stacks)
    phrases = find_phrases(texts)
    scenes = [look(stack, split_words(text, phrases), perception) for stack, text in zip(stacks, texts, strict=True)]
    return PerceivedStates(perception, phrases, GridEvidence(scenes, [item.positive for item in items]))


def separators(instructions: Sequence[tuple[str, ...]]) -> list[str]:
    """Words at which these instructions may be taken apart.

    They stand inside several of them; few others could stand there; and what they part are whole phrases: the words
    before them mostly end instructions, too, or the words after them mostly begin them.
    """
    ends = {words[-1] for words in instructions if words}
    begins = {words[0] for words in instructions if words}
    peers = Counter(word for pair in substitutes(Counter(instructions)) for word in pair)
    found: dict[str, list[tuple[bool, bool]]] = {}
    holders: Counter[str] = Counter()
    for words in instructions:
        holders.update(set(words[1:-1]))
        # What stands before a separator is a whole phrase, so it ends other instructions; what follows begins others.
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            found.setdefault(word, []).append((before in ends, after in begins))
    return [
        word
        for word, places in sorted(found.items())
        if holders[word] >= MIN_COUNT
        and peers[word] <= MAX_PEERS
        and max(map(sum, zip(*places, strict=True))) > len(places) / 2
    ]


@dataclass(frozen=True)
class LearntPlan:
    """Result of learning under one plan.

    Attributes:
        lexicon: for the plan.
        posterior: its readings.
    """

    lexicon: Lexicon
    posterior: Posterior

    @property
    def cost(self) -> float:
        """The cost of the best reading, with the plan's own price, nats."""
        return self.posterior.cost + PLAN_PRICE * len(self.lexicon.plan.separators)

    @property
    def unexplained(self) -> float:
        """Nats that the best reading leaves to explain: goals that it misses, things that it does not single out."""
        return self.posterior.cost - self.lexicon.price(self.posterior.best)


def search(seen: PerceivedStates, seed: int) -> list[LearntPlan]:
    """Results under each promising plan, best first; none if nothing happens at the goals."""
    evidence, events = seen.evidence, seen.events
    if not events:
        return []

    found: list[LearntPlan] = []

    def learnt(lexicon: Lexicon) -> LearntPlan:
        return LearntPlan(lexicon, learn(lexicon, events, seed, [one.posterior.best for one in found]))

    found.append(learnt(Lexicon(evidence, Plan())))
    words = separators([scene.words for scene in evidence.scenes])
    # No plan can explain more than all that is left, so if that is less than its price, none is tried.
    if found[0].unexplained > PLAN_PRICE:
        # Every plan with one separator gets a short walk, the best of them a full one: most separators part nothing.
        screened: list[tuple[float, int, Lexicon]] = []
        for plan in [Plan(((word, one),)) for word in words for one in ARRANGEMENTS]:
            lexicon = Lexicon(evidence, plan)
            screened.append((anneal(lexicon, events, seed, SCREEN)[0], len(screened), lexicon))
        for _, _, lexicon in sorted(screened)[:FINALISTS]:
            found.append(learnt(lexicon))
        # Plans with several separators are too many to try. They are grown from what the best single ones taught.
        for grown in dict.fromkeys(_grow(one, words) for one in found[1:]):
            if grown not in [one.lexicon.plan for one in found]:
                found.append(learnt(Lexicon(evidence, grown)))
    return sorted(found, key=lambda one: one.cost)


def _grow(found: LearntPlan, words: Sequence[str]) -> Plan:
    """The plan that one change after the other leads to, each to the plan of least cost, from what was learnt under
    this one."""
    plan, reading, cost = found.lexicon.plan, found.posterior.best, found.cost
    while True:
        options: list[tuple[float, Plan, GridReading]] = []
        for changed in _changed(plan, words):
            least, nearest = descend(Lexicon(found.lexicon.evidence, changed), reading)
            options.append((least + PLAN_PRICE * len(changed.separators), changed, nearest))
        best = min(options, key=lambda option: option[0], default=None)
        if best is None or best[0] >= cost - 1e-9:
            return plan
        cost, plan, reading = best


def _changed(plan: Plan, words: Sequence[str]) -> list[Plan]:
    """Plans with one separator more, one less, or one that does something else."""
    changed = []
    for word in words:
        rest = Plan(tuple(one for one in plan.separators if one[0] != word))
        changed += [rest, *(rest.and_at(word, arrangement) for arrangement in ARRANGEMENTS)]
    return [one for one in changed if one != plan]
