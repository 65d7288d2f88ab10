"""The search of FORGE: a pool of programs whose pairs are merged into children (paper FORGE, section 3)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set
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
    """Settings of the pool. `rounds`, `pairs`, `planner` and `choice="score"` come from FORGE. The others are ours.

    Attributes:
        first: number of new programs that the search requests for the first pool.
        rounds: maximum number of rounds after the first pool.
        pairs: number of pairs in a round. Each pair gets one child.
        size: maximum number of programs that the pool keeps after each round.
        patience: the search ends after this number of rounds in a row without a new highest score. None: never.
        deeper: the search ends after a round if the largest depth of a program so far (`PoolProgram.depth`) exceeds the
            depth of the best program by at least this number. None: never. FORGE has such a rule, but gives no number.
        choice: "score" to draw pairs by their scores (`pair_chances`), "uniform" to draw all pairs with equal chance.
        planner: whether requests for new programs have the operator "plan" instead of "initialise".
        wave: number of consecutive "plan" requests that show the same programs. The next wave begins when the results
            of these requests have arrived.
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
        score: score of the program.
        depth: 0 for a new program, else 1 + the larger depth of its parents.
        parents: ids of the two programs that were merged into this program; () for a new program.
    """

    program_id: str
    score: float
    depth: int
    parents: tuple[str, ...]


class PoolSearch:
    """A search that merges pairs of programs.

    The search first requests `settings.first` new programs, by default with the operator "plan". "plan" requests have
    the newest programs so far as ancestors, so that a new program differs from earlier ones.

    Each round then draws `settings.pairs` pairs of the pool, with replacement, and requests a child of each pair
    (operator "crossover", better parent first). If the pool has less than two programs, the round requests new programs
    instead. When all results of a round, or of the first requests, have arrived, the pool keeps the `settings.size`
    best programs.

    After a pair's child was a duplicate, later rounds draw this pair only when all pairs of the pool have had such a
    child. This rule is ours: without a model, crossing two single components always gives the same program.

    A request is not repeated if its program is invalid or a duplicate. `ask` returns `Wait` at the end of each round
    and of each wave of "plan" requests. The requests do not depend on the number of pending results.
    """

    def __init__(self, settings: PoolSettings, seed: int) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._tried = Tried()
        self._pool: list[Scored] = []  # after the last cut, best first
        self._fresh: list[Scored] = []  # valid programs of this round, neither kept nor dropped yet
        self._history: dict[str, PoolProgram] = {}
        self._spent: set[tuple[str, ...]] = set()  # pairs with a duplicate child in a complete round
        self._repeated: set[tuple[str, ...]] = set()  # pairs with a duplicate child in this round
        self._shown: tuple[str, ...] = ()  # ancestors of this wave of "plan" requests
        self._asked = 0
        self._told = 0
        self._round = 0
        self._place = 0  # number of requests of this round that `ask` has returned
        self._top = float("-inf")  # highest score after the last complete round
        self._stale = 0  # number of rounds in a row without a new highest score
        self._over = False

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of all valid programs, best first."""
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
        """Ids of this round's valid programs that are neither kept nor dropped yet."""
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
        """If the next request begins a wave of "plan" requests, choose the ancestors of the whole wave.

        Return False if the wave cannot begin yet, because results are missing. Otherwise return True.
        """
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
        names = [each.program.id for each in self._pool]
        drawn = unspent({(names[i], names[j]): chance for (i, j), chance in chances.items()}, self._spent)
        pairs = list(drawn)
        return pairs[int(self._rng.choice(len(pairs), p=list(drawn.values())))]

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
        if any(fate.verdict == "duplicate" for fate in fates):
            self._repeated.add(result.request.parents)
        if self._place == self._length and self._told == self._asked:
            fates += self._close_round()
        return fates

    def finish(self) -> list[Fate]:
        """End the current round early, because no more results will come. Return the new fates."""
        return self._cut()

    def _close_round(self) -> list[Fate]:
        fates = self._cut()
        top = self._pool[0].evaluation.score if self._pool else self._top
        self._stale = 0 if top - self._top > EQUAL or self._round == 0 else self._stale + 1
        self._top = max(top, self._top)
        self._round += 1
        self._place = 0
        self._spent |= self._repeated
        self._repeated = set()
        patience, deeper = self._settings.patience, self._settings.deeper
        self._over = (
            self._round > self._settings.rounds
            or (patience is not None and self._stale >= patience)
            or (deeper is not None and self._below >= deeper)
        )
        return fates

    @property
    def _below(self) -> int:
        """Depth of the deepest program so far minus the depth of the best program."""
        deepest = max((each.depth for each in self._history.values()), default=0)
        return deepest - self._history[self._pool[0].program.id].depth if self._pool else 0

    def _cut(self) -> list[Fate]:
        """Keep the best programs of the pool and of this round. Return the new fates."""
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
    """The probability of each pair (i, j) of programs, with i < j.

    The probability is (J_i + J_j) / ((n - 1) sum J), where J are the scores of n programs (paper FORGE, equation 6).
    With the factor n - 1, the probabilities of all pairs add up to 1. If a score is negative, the lowest score is first
    subtracted from all scores. If all scores are then 0, all pairs have the same probability.
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


def unspent(chances: Mapping[tuple[str, str], float], spent: Set[tuple[str, ...]]) -> dict[tuple[str, str], float]:
    """The probabilities of the pairs that are not spent, in their proportions.

    If all these pairs have probability 0, they get the same probability. If all pairs are spent, nothing changes.
    """
    rest = {pair: chance for pair, chance in chances.items() if pair not in spent}
    if not rest:
        return dict(chances)
    whole = sum(rest.values())
    return {pair: chance / whole if whole > 0 else 1 / len(rest) for pair, chance in rest.items()}
