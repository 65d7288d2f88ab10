"""GRACE's evolution (section 4, phase 2, and table 6): softmax parents, mutation, the best P of old and new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from grace_irl.evaluate.evaluation import EQUAL, Bar, shown
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored, merit, ranked, winners

ATTEMPTS = 3  # the first population may take up to this many times its size in requests


@dataclass(frozen=True)
class EvolutionSettings:
    """GRACE's table 6.

    Attributes:
        population: P, programs kept.
        elite: the best programs, which survive whatever comes.
        generations: K, rounds of P mutations after the first population.
        include_expert: chance that a mutation is shown an expert trajectory.
        incorrect_only: chance that a mutation is shown incorrect states only.
        expert_only: chance that a mutation is shown expert states only.
        parent_temperature: T of the softmax over fitness, nats; 1 is the paper's.
        samples: requests in a row that ask the same, so that a model answers them in one call.
        steady: never wait for the end of a generation: each result enters the population at once.
    """

    population: int = 20
    elite: int = 4
    generations: int = 100
    include_expert: float = 0.25
    incorrect_only: float = 0.5
    expert_only: float = 0.75
    parent_temperature: float = 1.0
    samples: int = 1
    steady: bool = False


class Evolution:
    """A search in generations: the first fills the population, each further one mutates P parents.

    Parents are drawn with probability exp(f / T) / sum exp(f / T). The population changes only when all
    results of a generation are in. Until then `ask` answers `Wait`. In steady state it changes with every result, `ask`
    never waits, and a generation is P results. Every draw happens in `ask`, so the state depends on nothing but the
    order of asking.
    """

    def __init__(self, settings: EvolutionSettings, seed: int) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._members: list[Scored] = []
        self._fresh: list[Scored] = []  # scored in this generation, not yet decided
        self._seen: set[str] = set()
        self._asked = 0
        self._told = 0
        self._generation = 0
        self._left = settings.population  # requests of this generation that are still to be asked
        self._same = Request(0, "initialise")  # what the requests of one call share
        self._sample = 0
        self._exhausted = False

    @property
    def best(self) -> tuple[str, ...]:
        """See `Search`: the population, the winner first, then the winner of the rest, and so on."""
        return tuple(each.program.id for each in winners(self._members))

    @property
    def population(self) -> tuple[str, ...]:
        """Ids of the programs kept, by merit."""
        return tuple(member.program.id for member in self._members)

    @property
    def undecided(self) -> tuple[str, ...]:
        """See `Deciding`."""
        return tuple(each.program.id for each in self._fresh)

    @property
    def generation(self) -> int:
        """See `Generational`."""
        return self._generation

    @property
    def bar(self) -> Bar:
        """See `Barred`: the worst member's merit, once the population is full, and the last elite's."""
        return Bar(self._merit_at(self._settings.population), self._merit_at(self._settings.elite))

    def _merit_at(self, place: int) -> float:
        """Merit is at most fitness: a fitness below this cannot reach the place."""
        if len(self._members) < max(place, 1):
            return float("-inf")
        return merit(self._members[max(place, 1) - 1])

    def ask(self) -> Request | Wait | None:
        """See `Search`."""
        settings = self._settings
        whole = settings.population * (settings.generations + 1)
        if self._generation > settings.generations or (settings.steady and self._asked >= whole):
            return None
        if self._left == 0:
            if not settings.steady:
                return Wait()
            self._left = settings.population
        if self._sample == 0:
            self._same = self._draw(min(settings.samples, self._left))
        request = replace(self._same, index=self._asked, sample=self._sample)
        self._sample = (self._sample + 1) % request.samples
        self._left -= 1
        self._asked += 1
        return request

    def _draw(self, samples: int) -> Request:
        """Draws the request that the next `samples` calls of `ask` return."""
        parents: tuple[str, ...] = ()
        context: tuple[tuple[str, bool], ...] = ()
        filling = self._asked < self._settings.population if self._settings.steady else self._generation == 0
        if self._members and not filling:
            parents = (self._parent(),)
            context = self._context()
        seed = int(self._rng.integers(2**62))
        return Request(self._asked, "mutate" if parents else "initialise", parents, seed, context, samples=samples)

    def _parent(self) -> str:
        fitness = np.array([member.evaluation.score for member in self._members])
        with np.errstate(over="ignore"):  # near 0, if all but the best have no chance
            chance = np.exp((fitness - fitness.max()) / self._settings.parent_temperature)
        return self._members[int(self._rng.choice(len(chance), p=chance / chance.sum()))].program.id

    def _context(self) -> tuple[tuple[str, bool], ...]:
        names = ("include_expert", "incorrect_only", "expert_only")
        return tuple((name, bool(self._rng.random() < getattr(self._settings, name))) for name in names)

    def tell(self, result: Result) -> list[Fate]:
        """See `Search`."""
        self._told += 1
        fates = self._take(result)
        if self._settings.steady:
            fates += self._close_generation()
            self._generation = self._told // self._settings.population
        elif self._left == 0 and self._told == self._asked:
            missing = self._settings.population - len(self._fresh)
            may_retry = self._told < ATTEMPTS * self._settings.population and not self._exhausted
            if self._generation == 0 and missing > 0 and may_retry:
                self._left = min(missing, ATTEMPTS * self._settings.population - self._told)
                return fates
            fates += self._close_generation()
            self._generation += 1
            self._left = self._settings.population
        return fates

    def _take(self, result: Result) -> list[Fate]:
        program, evaluation = result.program, result.evaluation
        self._exhausted = result.exhausted
        if program is None or evaluation is None:
            return []
        if program.id in self._seen:
            return [Fate(program.id, "duplicate", "the same program was tried before")]
        self._seen.add(program.id)
        if not evaluation.valid:
            return [Fate(program.id, "invalid", f"{evaluation.status}: {evaluation.message}")]
        if not evaluation.complete:
            return [Fate(program.id, "dropped", evaluation.message)]
        self._fresh.append(Scored(program, evaluation, result.request.index))
        return []

    def finish(self) -> list[Fate]:
        """See `Deciding`."""
        return self._close_generation()

    def _close_generation(self) -> list[Fate]:
        """Keeps the elites and the best of the rest, old and new."""
        before = {member.program.id for member in self._members}
        elites = self._members[: self._settings.elite]
        safe = {member.program.id for member in elites}
        order = ranked([*self._members, *self._fresh])
        others = [c for c in order if c.program.id not in safe]
        kept = ranked([*elites, *others[: self._settings.population - len(elites)]])
        fates = _fates(order, kept, before, self._settings.population)
        self._members, self._fresh = kept, []
        return fates


def _fates(order: Sequence[Scored], kept: Sequence[Scored], before: set[str], size: int) -> list[Fate]:
    """New fates, "kept" and "dropped"; old members that stay have theirs already."""
    places = {candidate.program.id: place for place, candidate in enumerate(kept, start=1)}
    last = kept[-1] if kept else None
    fates = []
    for candidate in order:
        name, words = candidate.program.id, _words(candidate)
        if name in places and name not in before:
            fates.append(Fate(name, "kept", f"place {places[name]} of {len(kept)}: {words}"))
        elif name not in places and last is not None:
            more = merit(candidate) - merit(last)
            than = "below the last kept" if more < 0 else "equal to the last kept, but longer or later"
            if more > EQUAL:
                than = "above the last kept, which is an elite"
            was = "displaced" if name in before else "outside"
            fates.append(Fate(name, "dropped", f"{was} the best {size}: {words}, {than} ({_words(last)})"))
    return fates


def _words(candidate: Scored) -> str:
    """Figures by which it is ranked, for people."""
    words = f"fitness {shown(candidate.evaluation.score)}"
    prior = min(candidate.program.prior, 0.0)
    return words if prior == 0 else f"{words}, prior {prior:.3g} nats"
