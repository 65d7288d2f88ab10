"""The search of FORGE: a pool of programs whose pairs are merged into children (paper FORGE, section 3)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from grace_irl.evaluate.evaluation import EQUAL, shown
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored
from grace_irl.search.tried import Tried, ordered

SHOWN = 8  # maximum number of programs that the prompt for a new program shows


@dataclass(frozen=True)
class PoolSettings:
    """Settings of the pool. `rounds`, `pairs`, `planner` and `choice="score"` are those of FORGE, the others are ours.

    Attributes:
        first: number of new programs in the first pool.
        rounds: maximum number of rounds after the first pool.
        pairs: number of pairs in a round. Each pair gets one child.
        size: number of programs to which the pool is cut after each round.
        patience: the search ends after this number of rounds in a row without a better best program. None: never.
        deeper: the search ends after a round if the deepest program so far is at least this number of levels deeper
            than the best one. None: never. FORGE ends a search if deeper programs are not better, but names no number.
        choice: "score" to draw pairs by their scores (`pair_chances`), "uniform" to draw all pairs alike.
        planner: whether new programs begin with a plan: requests have the operator "plan", else "initialise".
        wave: number of consecutive "plan" requests that show the same programs. After them, `ask` waits for results.
    """

    first: int = 16
    rounds: int = 10
    pairs: int = 16
    size: int = 16
    patience: int | None = None
    deeper: int | None = None
    choice: Literal["score", "uniform"] = "score"
    planner: bool = True
    wave: int = 4


@dataclass(frozen=True)
class PoolProgram:
    """A valid program of the search.

    Attributes:
        program_id: id of the program.
        score: its score.
        depth: 0 for a new program, else 1 + the larger depth of its parents.
        parents: ids of the programs from which it was merged.
    """

    program_id: str
    score: float
    depth: int
    parents: tuple[str, ...]


class PoolSearch:
    """A search that merges pairs of programs.

    The first pool holds `settings.first` new programs. Their requests have the operator "plan" and show programs of the
    pool so far as ancestors, newest first, so that plans differ. Each round draws `settings.pairs` pairs of the pool,
    with replacement, and requests a child of each (operator "crossover", the better parent first). A pool of less than
    two programs has no pairs; then the round requests new programs. The pool changes when all results of a round have
    arrived: it keeps the `settings.size` best of old and new programs. The first pool is cut in the same way.

    A program that fails, or comes a second time, uses up its request. `ask` returns `Wait` at the end of each round and
    of each wave of plans. No request depends on the number of requests that wait for their results.
    """

    def __init__(self, settings: PoolSettings, seed: int) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._tried = Tried()
        self._pool: list[Scored] = []  # after the last cut, best first
        self._fresh: list[Scored] = []  # valid programs of this round, neither kept nor dropped yet
        self._history: dict[str, PoolProgram] = {}
        self._shown: tuple[str, ...] = ()  # ancestors of this wave of plans
        self._asked = 0
        self._told = 0
        self._round = 0
        self._place = 0  # number of requests of this round that `ask` has returned
        self._top = float("-inf")  # highest score after the last complete round
        self._stale = 0  # number of rounds in a row without a better best program
        self._over = False

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of all valid programs, best first. The programs of the pool come first."""
        return self._tried.best

    @property
    def members(self) -> tuple[PoolProgram, ...]:
        """The pool after the last complete round, best first."""
        return tuple(self._history[each.program.id] for each in self._pool)

    @property
    def history(self) -> tuple[PoolProgram, ...]:
        """All valid programs of the search, in the order of their requests."""
        return tuple(self._history.values())

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of the valid programs of this round, neither kept nor dropped yet."""
        return tuple(each.program.id for each in self._fresh)

    @property
    def generation(self) -> int:
        """Number of complete rounds, including the first pool."""
        return self._round

    def ask(self) -> Request | Wait | None:
        """Return the next request, `Wait` if results are missing, or None at the end of the search."""
        if self._over:
            return None
        if self._place == self._length or not self._open_wave():
            return Wait()
        parents: tuple[str, ...] = ()
        if not self._plans:
            parents = self._pair()
        operator = "crossover" if parents else "plan" if self._settings.planner else "initialise"
        ancestors = self._shown if operator == "plan" else ()
        seed = int(self._rng.integers(2**62))
        request = Request(self._asked, operator, parents, seed, ancestors=ancestors)
        self._place += 1
        self._asked += 1
        return request

    @property
    def _length(self) -> int:
        """Number of requests of this round."""
        return self._settings.pairs if self._round else self._settings.first

    @property
    def _plans(self) -> bool:
        """Whether this round requests new programs."""
        return self._round == 0 or len(self._pool) < 2

    def _open_wave(self) -> bool:
        """Choose the ancestors of the next wave of plans, if one begins. Return False if results are missing for it."""
        if not (self._plans and self._settings.planner) or self._place % self._settings.wave:
            return True
        if self._told < self._asked:
            return False
        newest = sorted([*self._pool, *self._fresh], key=lambda each: -each.index)
        self._shown = tuple(each.program.id for each in newest[:SHOWN])
        return True

    def _pair(self) -> tuple[str, str]:
        uniform = self._settings.choice == "uniform"
        chances = pair_chances([1.0 if uniform else each.evaluation.score for each in self._pool])
        pairs = list(chances)
        first, second = pairs[int(self._rng.choice(len(pairs), p=list(chances.values())))]
        return self._pool[first].program.id, self._pool[second].program.id

    def tell(self, result: Result) -> list[Fate]:
        """Process a result. Return the new fates. Fates of valid programs are decided at the end of their round."""
        self._told += 1
        taken = self._tried.take(result)
        if isinstance(taken, Scored):
            parents = result.request.parents
            depth = max((self._history[name].depth + 1 for name in parents), default=0)
            self._history[taken.program.id] = PoolProgram(taken.program.id, taken.evaluation.score, depth, parents)
            self._fresh.append(taken)
        fates = [taken] if isinstance(taken, Fate) else []
        if self._place == self._length and self._told == self._asked:
            fates += self._close_round()
        return fates

    def finish(self) -> list[Fate]:
        """Cut the pool in the middle of a round, because no more results will come. Return the new fates."""
        return self._cut()

    def _close_round(self) -> list[Fate]:
        fates = self._cut()
        top = self._pool[0].evaluation.score if self._pool else self._top
        self._stale = 0 if top - self._top > EQUAL or self._round == 0 else self._stale + 1
        self._top = max(top, self._top)
        self._round += 1
        self._place = 0
        patience, deeper = self._settings.patience, self._settings.deeper
        self._over = (
            self._round > self._settings.rounds
            or (patience is not None and self._stale >= patience)
            or (deeper is not None and self._below >= deeper)
        )
        return fates

    @property
    def _below(self) -> int:
        """Number of levels by which the deepest program so far is deeper than the best one."""
        deepest = max((each.depth for each in self._history.values()), default=0)
        return deepest - self._history[self._pool[0].program.id].depth if self._pool else 0

    def _cut(self) -> list[Fate]:
        """Keep the best of the pool and of this round. Return the fates that change."""
        size, before = self._settings.size, {each.program.id for each in self._pool}
        order = ordered([*self._pool, *self._fresh])
        self._pool, self._fresh = order[:size], []
        fates = []
        for place, each in enumerate(order, start=1):
            name = each.program.id
            words = f"score {shown(each.evaluation.score)}, depth {self._history[name].depth}"
            if place <= size and name not in before:
                fates.append(Fate(name, "kept", f"place {place} of {len(self._pool)}: {words}"))
            elif place > size:
                was = "displaced" if name in before else "outside"
                last = shown(order[size - 1].evaluation.score)
                fates.append(Fate(name, "dropped", f"{was} the best {size}: {words}, the last kept has score {last}"))
        return fates


def pair_chances(scores: Sequence[float]) -> dict[tuple[int, int], float]:
    """The probability of each pair (i, j) of places, with i < j.

    It is (J_i + J_j) / ((n - 1) sum J), where J are the scores of n programs (paper FORGE, equation 6; the factor n - 1
    makes the sum over all pairs 1). If a score is negative, the lowest score is subtracted from all. If then all scores
    are 0, all pairs have the same probability.
    """
    pairs = list(itertools.combinations(range(len(scores)), 2))
    values = np.array(scores, dtype=float)
    top = float(np.abs(values).max(initial=0.0))
    if top > 0:
        values = values / top  # so that no sum overflows
        values = values - min(float(values.min()), 0.0)
    whole = (len(scores) - 1) * float(values.sum())
    if whole <= 0:
        return {pair: 1 / len(pairs) for pair in pairs}
    return {(i, j): float(values[i] + values[j]) / whole for i, j in pairs}
