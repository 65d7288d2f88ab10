"""The search of REvolve (Hazra et al. 2025): islands of programs, with mutation, crossover and migration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from grace_irl.evaluate.evaluation import EQUAL, shown
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored
from grace_irl.search.tried import Tried, ordered


@dataclass(frozen=True)
class IslandSettings:
    """Settings of the search with islands. The number and size of islands and both probabilities come from REvolve.

    Attributes:
        islands: number of islands.
        size: maximum number of programs on an island.
        programs: number of programs to request, including those that fill the islands.
        crossover: probability that a request crosses two parents instead of mutating one.
        migration: probability that a program migrates after a generation.
        temperature: temperature, in units of the score, of the softmax by which parents are drawn.
    """

    islands: int = 4
    size: int = 8
    programs: int = 80
    crossover: float = 0.5
    migration: float = 0.3
    temperature: float = 1.0


class IslandSearch:
    """An evolutionary search on islands.

    The first generation requests new programs ("initialise") for the islands in turn. Each island gets `size` / 2
    requests, rounded up.

    For each later request, the search draws an island. With probability `crossover`, the request crosses two different
    parents from this island ("crossover"), otherwise it mutates one parent ("mutate"). Parents are drawn by a softmax
    over the scores. If the island has only one program, this program is mutated. If the island is empty, a new program
    is requested.

    The program that answers such a request joins the drawn island if its score is at least the island's mean score. The
    mean includes programs that joined earlier in the same generation. Then the island keeps only its best `size`
    programs.

    These choices are ours:

    - Islands are drawn uniformly.
    - All generations have the same number of requests.
    - A migrant is a copy of a program. The old and the new island are drawn uniformly, the program by the softmax.
    - Migration begins after the second generation.

    REvolve's code instead draws islands by their mean score. Its migration removes all but the best programs from the
    weaker half of the islands, and moves one program from a stronger island to each weaker island.

    The parents of a generation are drawn from the programs that are on the islands at the start of the generation. So
    `ask` returns `Wait` only at the end of a generation, and requests do not depend on the number of pending results.
    """

    def __init__(self, settings: IslandSettings, seed: int) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._tried = Tried()
        self._islands: list[list[Scored]] = [[] for _ in range(settings.islands)]  # each best first
        self._parents: list[list[Scored]] = []  # the islands at the start of this generation
        self._homes: list[int] = []  # island of each request
        self._fates: list[Fate] = []  # decisions by migration, not yet returned
        self._asked = 0
        self._told = 0
        self._generation = 0
        self._place = 0  # number of requests of this generation that `ask` has returned
        self._length = settings.islands * ((settings.size + 1) // 2)  # number of requests of a generation

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of all valid programs, best first."""
        return self._tried.best

    @property
    def islands(self) -> tuple[tuple[str, ...], ...]:
        """Ids of the programs of each island, best first."""
        return tuple(tuple(each.program.id for each in island) for island in self._islands)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Always (), because `tell` decides on each program at once."""
        return ()

    @property
    def generation(self) -> int:
        """Number of complete generations, including the first one."""
        return self._generation

    def ask(self) -> Request | Wait | None:
        """Return the next request, `Wait` if results are missing, or None after `settings.programs` requests."""
        if self._asked >= self._settings.programs:
            return None
        if self._place == self._length:
            return Wait()
        if self._place == 0:
            self._begin()
        home, operator, parents = self._draw()
        request = Request(self._asked, operator, parents, int(self._rng.integers(2**62)))
        self._homes.append(home)
        self._place += 1
        self._asked += 1
        return request

    def _begin(self) -> None:
        """Begin a generation: with probability `migration`, let a program migrate. Then fix the possible parents."""
        if self._generation > 1 and self._rng.random() < self._settings.migration:
            self._migrate()
        self._parents = [list(island) for island in self._islands]

    def _migrate(self) -> None:
        inhabited = [place for place, island in enumerate(self._islands) if island]
        if not inhabited or len(self._islands) < 2:
            return
        source = inhabited[int(self._rng.integers(len(inhabited)))]
        migrant = self._pick(self._islands[source])
        target = int(self._rng.integers(len(self._islands) - 1))
        target += target >= source
        if migrant not in self._islands[target]:
            self._fates += self._settle(migrant, target)

    def _draw(self) -> tuple[int, str, tuple[str, ...]]:
        """Draw the island, the operator and the parents of a request."""
        if self._generation == 0:
            return self._asked % self._settings.islands, "initialise", ()
        home = int(self._rng.integers(self._settings.islands))
        crosses = self._rng.random() < self._settings.crossover
        members = self._parents[home]
        if not members:
            return home, "initialise", ()
        first = self._pick(members)
        if not crosses or len(members) < 2:
            return home, "mutate", (first.program.id,)
        second = self._pick([each for each in members if each is not first])
        return home, "crossover", (first.program.id, second.program.id)

    def _pick(self, members: Sequence[Scored]) -> Scored:
        chances = softmax([each.evaluation.score for each in members], self._settings.temperature)
        return members[int(self._rng.choice(len(members), p=chances))]

    def tell(self, result: Result) -> list[Fate]:
        """Process a result. Return the fates of its program and of all programs displaced since the last call."""
        self._told += 1
        fates = self.finish()
        taken = self._tried.take(result)
        if isinstance(taken, Scored):
            fates += self._judge(taken, self._homes[result.request.index])
        elif taken is not None:
            fates.append(taken)
        if self._place == self._length and self._told == self._asked:
            self._generation += 1
            self._place = 0
        return fates

    def finish(self) -> list[Fate]:
        """Return the fates of programs displaced by a migration, if no `tell` has returned these fates yet."""
        fates, self._fates = self._fates, []
        return fates

    def _judge(self, child: Scored, home: int) -> list[Fate]:
        """Add a new program to its island, unless its score is below the island's mean. Return the new fates.

        In the first generation, and on an empty island, the program is added whatever its score.
        """
        score, island = child.evaluation.score, self._islands[home]
        reason = f"island {home + 1}: score {shown(score)}"
        if self._generation > 0 and island:
            level = mean(each.evaluation.score for each in island)
            if score < level - EQUAL:
                return [Fate(child.program.id, "dropped", f"{reason}, below the mean {shown(level)}")]
            reason += f", not below the mean {shown(level)}"
        lost = self._settle(child, home)
        return lost if child not in self._islands[home] else [Fate(child.program.id, "kept", reason), *lost]

    def _settle(self, scored: Scored, home: int) -> list[Fate]:
        """Add a program to an island, and keep only the best `size` programs of the island.

        Return the fates of programs that are now on no island.
        """
        size = self._settings.size
        order = ordered([*self._islands[home], scored])
        self._islands[home] = order[:size]
        return [
            Fate(
                each.program.id,
                "dropped",
                f"outside the best {size} of island {home + 1}: score {shown(each.evaluation.score)}, "
                f"the last kept has score {shown(order[size - 1].evaluation.score)}",
            )
            for each in order[size:]
            if not any(each in island for island in self._islands)
        ]


def softmax(scores: Sequence[float], temperature: float) -> NDArray[np.float64]:
    """The probabilities exp(J / T) / sum exp(J / T) of programs with scores J at temperature T."""
    values = np.array(scores, dtype=float)
    with np.errstate(over="ignore"):  # an overflow to -inf is right: exp(-inf) is 0
        chances = np.exp((values - values.max()) / temperature)
    return chances / chances.sum()  # type: ignore[no-any-return]
