"""From labelled grid trajectories to readings of them, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.propose.synthesis.grid.evidence import Evidence
from grace_irl.propose.synthesis.grid.instruction import find_phrases, split_words
from grace_irl.propose.synthesis.grid.learn import anneal, learn
from grace_irl.propose.synthesis.grid.lexicon import Lexicon
from grace_irl.propose.synthesis.grid.meaning import Arrangement, Plan
from grace_irl.propose.synthesis.grid.parsimony import substitutes
from grace_irl.propose.synthesis.grid.perception import Perception, perceive
from grace_irl.propose.synthesis.grid.reading import Posterior
from grace_irl.propose.synthesis.grid.scene import look

ARRANGEMENTS: tuple[Arrangement, ...] = ("then", "after", "both", "beside")
SCREEN = 0.3
"""Share of the full search that is spent on a plan before it is known to be promising."""
FINALISTS = 2
MAX_PEERS = 2
"""Words that may stand where a separator stands ("then", "and", "after you"); one with more names something."""
PLAN_PRICE = 6.0
"""What taking the instruction apart has to explain, nats."""


@dataclass(frozen=True)
class View:
    """Labelled grid trajectories, perceived.

    Attributes:
        perception: what all of them show.
        phrases: words that go together.
        evidence: the tables.
    """

    perception: Perception
    phrases: tuple[str, ...]
    evidence: Evidence

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word and phrase of the instructions."""
        return tuple(sorted({word for scene in self.evidence.scenes for word in scene.words}))

    @property
    def events(self) -> list[int]:
        """Filters on what happens, those that happen in most goal states first; none where nothing does."""
        counts: Counter[int] = Counter()
        for scene, positive in zip(self.evidence.scenes, self.evidence.positives, strict=True):
            at_goal = positive[scene.happenings.state]
            counts.update(scene.happenings.event[at_goal].tolist())
        columns = [i for i, f in enumerate(self.evidence.filters) if f.feature == "event"]
        return sorted(columns, key=lambda c: (-counts[self.evidence.filters[c].value], c)) if counts else []


def view(items: Sequence[Labelled]) -> View:
    """Perceives labelled trajectories."""
    stacks = [np.asarray(item.trajectory.states, dtype=np.int64) for item in items]
    texts = [item.trajectory.extra_info for item in items]
    perception = perceive(stacks)
    phrases = find_phrases(texts)
    scenes = [look(stack, split_words(text, phrases), perception) for stack, text in zip(stacks, texts, strict=True)]
    return View(perception, phrases, Evidence(scenes, [item.positive for item in items]))


def plans(words: Sequence[tuple[str, ...]]) -> list[Plan]:
    """Ways to take these instructions apart: at any word that stands inside at least a quarter of them, and is not
    one of many that may stand there."""
    inside = Counter(word for sentence in words for word in set(sentence[1:-1]) if sentence.count(word) == 1)
    peers = Counter(word for pair in substitutes(Counter(words)) for word in pair)
    separators = [
        word for word, count in sorted(inside.items()) if count >= max(2, len(words) / 4) and peers[word] <= MAX_PEERS
    ]
    return [Plan(arrangement, word) for word in separators for arrangement in ARRANGEMENTS]


def _faults(evidence: Evidence, posterior: Posterior, lexicon: Lexicon) -> int:
    """Scenes in which the reading is wrong about an expert's goal, or fires in more than one other state."""
    faults = 0
    for i, positive in enumerate(evidence.positives):
        fired = evidence.fired(i, lexicon.plan, lexicon.steps(posterior.best, i))
        faults += bool((positive & ~fired).any()) or int((fired & ~positive).sum()) > 1
    return faults


@dataclass(frozen=True)
class Found:
    """What was learnt under one plan.

    Attributes:
        lexicon: for the plan.
        posterior: its readings.
        cost: of the best one, with the plan's own price, nats.
    """

    lexicon: Lexicon
    posterior: Posterior
    cost: float


def search(seen: View, seed: int) -> list[Found]:
    """What was learnt under each promising plan, best first; nothing where nothing happens at the goals."""
    evidence, events = seen.evidence, seen.events
    if not events:
        return []
    whole = Lexicon(evidence, Plan())
    found = [(whole, learn(whole, events, seed))]
    if _faults(evidence, found[0][1], whole):
        screened: list[tuple[float, int, Lexicon]] = []
        for plan in plans([scene.words for scene in evidence.scenes]):
            lexicon = Lexicon(evidence, plan)
            screened.append((anneal(lexicon, events, seed, SCREEN)[0], len(screened), lexicon))
        for _, _, lexicon in sorted(screened)[:FINALISTS]:
            found.append((lexicon, learn(lexicon, events, seed)))
    priced = [
        Found(lexicon, posterior, posterior.cost + PLAN_PRICE * (lexicon.plan.arrangement != "whole"))
        for lexicon, posterior in found
    ]
    return sorted(priced, key=lambda one: one.cost)
