"""The evolutionary search of GRACE (section 4, phase 2, and table 6).

The search requests new programs first, then mutations of good programs. The method `grace` uses this search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from grace_irl.evaluate.evaluation import EQUAL, Bar, shown
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored, merit, ranked, winners

ATTEMPTS = 3  # maximum number of requests for the first population, as a multiple of the population size


@dataclass(frozen=True)
class EvolutionSettings:
    """Settings of the evolution, with the defaults of GRACE's table 6.

    Attributes:
        population: maximum number of programs in the population.
        elite: number of best members that stay in the population even if all new programs are better.
        generations: number of generations after the first population.
        include_expert: probability that a mutation prompt shows one more expert trajectory.
        incorrect_only: probability that a mutation prompt shows only misclassified states.
        expert_only: probability that a mutation prompt picks only positive states among the misclassified ones.
        parent_temperature: temperature of the softmax over fitness, in nats. GRACE uses 1.
        samples: maximum number of identical requests in a row. A model answers them in one call.
        steady: whether the population changes after each result, instead of only at the end of a generation.
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
    """An evolutionary search in generations.

    The first generation fills the population with P new programs, where P is `settings.population`. Each later
    generation requests P mutations. The search draws the parent of a mutation with probability
    exp(f / T) / sum exp(f / T). Here f is the fitness, T is `parent_temperature`, and the sum is over the population.
    An answer may say that the states lack information for a better program (`Result.untold`). Then later generations do
    not mutate the parents of the answered request. If no member is left to mutate, the search requests new programs.

    After the last request of a generation, `ask` returns `Wait` until all results of the generation have arrived. Then
    the population changes. With `steady`, the population changes after every result, and a generation is P results.
    `ask` waits only once, until all results of the first generation have arrived. Only `ask` draws random numbers. So
    the search is determined by the seed, the results, and the order of calls of `ask` and `tell`.
    """

    def __init__(self, settings: EvolutionSettings, seed: int) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._members: list[Scored] = []
        self._fresh: list[Scored] = []  # valid programs of this generation, neither kept nor dropped yet
        self._seen: set[str] = set()
        self._ended: set[str] = set()  # programs that are no longer mutated (`Result.untold`)
        self._ending: set[str] = set()  # programs that are no longer mutated after this generation
        self._asked = 0
        self._told = 0
        self._generation = 0
        self._left = settings.population  # number of requests of this generation that `ask` has not returned yet
        self._same = Request(0, "initialise")  # the request that `ask` repeats, with a new index and sample
        self._sample = 0
        self._exhausted = False

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of the programs in the population, best first (`ranks.winners`)."""
        return tuple(each.program.id for each in winners(self._members))

    @property
    def population(self) -> tuple[str, ...]:
        """Ids of the programs in the population, sorted by merit."""
        return tuple(member.program.id for member in self._members)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of this generation's valid programs that are neither kept nor dropped yet."""
        return tuple(each.program.id for each in self._fresh)

    @property
    def generation(self) -> int:
        """Number of complete generations, including the first population."""
        return self._generation

    @property
    def bar(self) -> Bar:
        """Two limits on the next program's score. They decide how thorough the program's evaluation is (`Bar`).

        `Bar.floor` is the merit of the worst member, or -inf until the population is full. `Bar.elite` is the merit of
        the worst elite. Merit is the fitness plus a small share of the program's log-prior (`ranks.merit`).
        """
        return Bar(self._merit_at(self._settings.population), self._merit_at(self._settings.elite))

    def _merit_at(self, place: int) -> float:
        """The merit of the member with rank `place` (from 1), or -inf if there are fewer members.

        A program's merit is at most its fitness. So a program whose fitness is below the result cannot reach the rank.
        """
        if len(self._members) < max(place, 1):
            return float("-inf")
        return merit(self._members[max(place, 1) - 1])

    def ask(self) -> Request | Wait | None:
        """Return the next request, `Wait` if results are missing, or None at the end of the search."""
        settings = self._settings
        whole = settings.population * (settings.generations + 1)
        if self._generation > settings.generations or (settings.steady and self._asked >= whole):
            return None
        if self._left == 0:
            if not settings.steady or self._told < settings.population:
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
        """Draw the request that the next `samples` calls of `ask` return."""
        parents: tuple[str, ...] = ()
        context: tuple[tuple[str, bool], ...] = ()
        filling = self._asked < self._settings.population if self._settings.steady else self._generation == 0
        open_ = [member for member in self._members if member.program.id not in self._ended]
        if open_ and not filling:
            parents = (self._parent(open_),)
            context = self._context()
        seed = int(self._rng.integers(2**62))
        return Request(self._asked, "mutate" if parents else "initialise", parents, seed, context, samples=samples)

    def _parent(self, members: Sequence[Scored]) -> str:
        fitness = np.array([member.evaluation.score for member in members])
        with np.errstate(over="ignore"):  # near temperature 0, the quotient overflows to -inf; exp(-inf) = 0 is right
            chance = np.exp((fitness - fitness.max()) / self._settings.parent_temperature)
        return members[int(self._rng.choice(len(chance), p=chance / chance.sum()))].program.id

    def _context(self) -> tuple[tuple[str, bool], ...]:
        names = ("include_expert", "incorrect_only", "expert_only")
        return tuple((name, bool(self._rng.random() < getattr(self._settings, name))) for name in names)

    def tell(self, result: Result) -> list[Fate]:
        """Process a result. Return the new fates."""
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
        if result.untold:
            self._ending.update(result.request.parents)
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
        """End the current generation, because no more results will come. Return the fates of its programs."""
        return self._close_generation()

    def _close_generation(self) -> list[Fate]:
        """Keep the elites and the best of all other programs, old and new. Return the new fates."""
        self._ended |= self._ending
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
    """The fate "kept" for each new member, and "dropped" for each program outside the new population.

    Args:
        order: old members and new programs, best first.
        kept: the new population, best first.
        before: ids of the old members.
        size: maximum size of the population.
    """
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
    """The fitness and the prior of a program, as text."""
    words = f"fitness {shown(candidate.evaluation.score)}"
    prior = min(candidate.program.prior, 0.0)
    return words if prior == 0 else f"{words}, prior {prior:.3g} nats"
