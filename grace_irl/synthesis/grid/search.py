"""Search for interpretations of the instructions of labelled grid trajectories.

An interpretation has two parts. A plan names the separators, which are the words at which instructions are split, such
as "then". A reading gives meanings to the other words. The search tries several plans, and finds the best reading under
each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.synthesis.grid.evidence import MISSED, GridEvidence
from grace_irl.synthesis.grid.learn import Seeker, descend
from grace_irl.synthesis.grid.lexicon import Lexicon, Posterior, find_phrases, split_words
from grace_irl.synthesis.grid.meaning import Arrangement, Plan
from grace_irl.synthesis.grid.reading import GridReading, substitutes
from grace_irl.synthesis.grid.scene import Perception, Scene, look, perceive

ARRANGEMENTS: tuple[Arrangement, ...] = ("then", "after", "both", "beside")
"""The relations that the parts on the left and right of a separator can have. `Plan` defines them."""
FINALISTS = 2  # number of plans with one or two separators that may get a full search
SCREENING = 8
"""`_screened` chooses the finalists by successive halving of the plans. Before each halving, the remaining plans share
this number of rounds of search. While there are more plans than this number, a halving compares the results of one
glance at each plan instead (`Seeker.glance`)."""
REACH = 8.0
"""A finalist (a plan that `_screened` chose) gets a full search if its cost is at most this number of nats above the
lowest cost so far."""
HOPE = 2 * MISSED
"""`_screened` drops a plan whose cost exceeds that of the best plan by more than this number of nats. Two trajectories
whose goal states all miss the event of the instruction cost this much (`MISSED`)."""
MAX_PEERS = 2
"""Maximum number of substitutes of a separator: words that occur between the same two words, for example "and" instead
of "then". A noun has many more substitutes."""
MIN_COUNT = 2
"""Minimum number of instructions in which a separator occurs."""
PLAN_PRICE = 6.0
"""Price of each separator in nats. A plan gains from a separator that lowers the cost of the best reading by
more than this price."""


@dataclass(frozen=True)
class PerceivedStates:
    """Labelled grid trajectories after perception.

    Attributes:
        perception: the agent and the background, which all trajectories share.
        phrases: groups of words that always occur together.
        evidence: the events in the trajectories, and the cost of readings.
    """

    perception: Perception
    phrases: tuple[str, ...]
    evidence: GridEvidence

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All words and phrases of the instructions."""
        return tuple(sorted({word for scene in self.evidence.scenes for word in scene.words}))

    @property
    def events(self) -> list[int]:
        """Indices of the filters for events; [] if no event happens in a goal state.

        The events that happen most often in goal states come first.
        """
        counts: Counter[int] = Counter()
        for scene, positive in zip(self.evidence.scenes, self.evidence.positives, strict=True):
            at_goal = positive[scene.happenings.state]
            counts.update(scene.happenings.event[at_goal].tolist())
        columns = [i for i, f in enumerate(self.evidence.filters) if f.feature == "event"]
        return sorted(columns, key=lambda c: (-counts[self.evidence.filters[c].value], c)) if counts else []


def view(items: Sequence[Labelled]) -> PerceivedStates:
    """Find the agent, the background and the events of labelled trajectories."""
    stacks = [np.asarray(item.trajectory.states, dtype=np.int64) for item in items]
    texts = [item.trajectory.extra_info for item in items]
    perception = perceive(stacks)
    phrases = find_phrases(texts)
    scenes = [look(stack, split_words(text, phrases), perception) for stack, text in zip(stacks, texts, strict=True)]
    swapped = [item.demonstration.swapped for item in items]
    return PerceivedStates(perception, phrases, GridEvidence(scenes, [item.positive for item in items], swapped))


def separators(instructions: Sequence[tuple[str, ...]]) -> list[str]:
    """Find the words at which these instructions may be split.

    A separator stands inside several instructions, and few other words occur in its place. The part before it, or the
    part after it, could be an instruction alone. So at more than half of its places the word before it ends some
    instruction, or at more than half of its places the word after it begins some instruction.
    """
    ends = {words[-1] for words in instructions if words}
    begins = {words[0] for words in instructions if words}
    peers = Counter(word for pair in substitutes(Counter(instructions)) for word in pair)
    found: dict[str, list[tuple[bool, bool]]] = {}
    holders: Counter[str] = Counter()
    for words in instructions:
        holders.update(set(words[1:-1]))
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
    """A plan with the readings that were found under it.

    Attributes:
        lexicon: the plan, and the cost of readings under it.
        posterior: the best reading, and the probability of each meaning of a word.
    """

    lexicon: Lexicon
    posterior: Posterior

    @property
    def cost(self) -> float:
        """Cost of the best reading, plus the plan's own price, in nats."""
        return self.posterior.cost + PLAN_PRICE * len(self.lexicon.plan.separators)

    @property
    def unexplained(self) -> float:
        """Cost of the best reading in nats, without the reading's price.

        This is the cost of mistakes, and of descriptions that fit many things or none.
        """
        return self.posterior.cost - self.lexicon.price(self.posterior.best)


class PlanSearch:
    """A search for readings under each promising plan, which can give its best reading before it ends.

    Args:
        seen: the trajectories.
        seed: seed of the search.
        effort: factor by which to multiply the number of rounds of each search for a reading (`Seeker`).
    """

    def __init__(self, seen: PerceivedStates, seed: int, effort: float = 1.0) -> None:
        self._seen = seen
        self._seed = seed
        self._effort = effort
        self._found: list[LearntPlan] = []
        self._rounds = self._searching()

    def early(self, steps: int) -> LearntPlan | None:
        """Search until the annealed walks have made this number of steps. Return the plan of lowest cost so far.

        The result of `finish` is the same with and without this call. Return None if the search has ended by then.
        """
        best: Seeker | None = None
        for one in self._rounds:
            steps -= one.steps
            if best is None or _priced(one) < _priced(best):
                best = one
            if steps <= 0:
                # A new `Seeker` computes the probabilities, because this may change the best reading.
                known = Seeker(best.lexicon, self._seen.events, self._seed, [best.reading])
                return LearntPlan(best.lexicon, known.posterior())
        return None

    def finish(self) -> list[LearntPlan]:
        """Search to the end. Return the plans that had a full search, the one of lowest cost first.

        The result is [] if no event happens in a goal state.
        """
        for _ in self._rounds:
            pass
        return sorted(self._found, key=lambda one: one.cost)

    def _searching(self) -> Iterator[Seeker]:
        """Search for plans and readings, and yield each `Seeker` after its rounds and glances."""
        evidence, events, effort, found = self._seen.evidence, self._seen.events, self._effort, self._found
        if not events:
            return

        def seeker(plan: Plan) -> Seeker:
            return Seeker(Lexicon(evidence, plan), events, self._seed, [one.posterior.best for one in found])

        def finish(one: Seeker) -> None:
            found.append(LearntPlan(one.lexicon, one.posterior()))

        whole = seeker(Plan())
        yield from whole.rounds(effort)
        finish(whole)
        words = separators([scene.words for scene in evidence.scenes])
        # A separator saves at most the unexplained cost. So separators are tried if this cost is above `PLAN_PRICE`.
        if found[0].unexplained <= PLAN_PRICE:
            return
        # Two kinds of plans get a short search: plans with one separator, and plans with two, such as "between" and
        # "and" in "between the box and the key". Most words are no separators, so only the best get a full search.
        plans = [Plan(((word, one),)) for word in words for one in ARRANGEMENTS]
        plans += [
            Plan().and_at(one, "beside").and_at(other, "beside") for one, other in _couples(evidence.scenes, words)
        ]
        finalists = yield from _screened([seeker(plan) for plan in plans], effort)
        least = min([found[0].cost - PLAN_PRICE, *(one.cost for one in finalists)])
        for one in finalists:
            if one.cost <= least + REACH:
                yield from one.rounds(effort)
            finish(one)
        # There are too many other plans with several separators. So the search only tries changes of the finalists.
        for plan in dict.fromkeys(_grow(one, words) for one in found[1:]):
            if plan not in [one.lexicon.plan for one in found]:
                grown = seeker(plan)
                yield from grown.rounds(effort)
                finish(grown)


def search(seen: PerceivedStates, seed: int, effort: float = 1.0) -> list[LearntPlan]:
    """Find readings under each promising plan. See `PlanSearch`."""
    return PlanSearch(seen, seed, effort).finish()


def _priced(one: Seeker) -> float:
    """Cost of the best reading so far, plus the price of the plan, in nats (`LearntPlan.cost`)."""
    return one.cost + PLAN_PRICE * len(one.lexicon.plan.separators)


def _screened(seekers: Sequence[Seeker], effort: float) -> Generator[Seeker, None, list[Seeker]]:
    """Choose `FINALISTS` of these searches by successive halving: all do rounds, then the better half does, and so on.

    A search that is far behind is dropped at once (`HOPE`), so there may be fewer finalists. With more than `SCREENING`
    searches, a glance at each (`Seeker.glance`) decides which of them do rounds. Each search is yielded after a round
    or a glance. The finalists are the result.
    """
    left = list(seekers)
    if len(left) > SCREENING:
        for one in left:
            one.glance()
            yield one
    while len(left) > FINALISTS:
        if len(left) <= SCREENING:
            for one in left:
                for _ in range(math.ceil(effort * max(1, SCREENING // len(left)))):
                    one.round()
                    yield one
        least = min(one.cost for one in left)
        near = sorted((one for one in left if one.cost <= least + HOPE), key=lambda one: one.cost)
        left = near[: max(FINALISTS, len(left) // 2)]
    return left


def _couples(scenes: Sequence[Scene], words: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of `words`. At least `MIN_COUNT` different instructions contain each word of a pair once, in this order."""
    counts: Counter[tuple[str, str]] = Counter()
    for said in {scene.words for scene in scenes}:
        counts.update(combinations([word for word in said if word in words and said.count(word) == 1], 2))
    return sorted(pair for pair, count in counts.items() if count >= MIN_COUNT)


def _grow(found: LearntPlan, words: Sequence[str]) -> Plan:
    """Improve a plan by one change of a separator at a time, as long as the cost decreases.

    Each step makes the change that leads to the lowest cost. The search for a reading under a changed plan starts from
    the reading under the plan before the change.
    """
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
    """Plans that add a separator to `plan`, remove a separator, or change the arrangement of a separator."""
    changed = []
    for word in words:
        rest = Plan(tuple(one for one in plan.separators if one[0] != word))
        changed += [rest, *(rest.and_at(word, arrangement) for arrangement in ARRANGEMENTS)]
    return [one for one in changed if one != plan]
