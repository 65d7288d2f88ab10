"""The greedy search of Eureka (Ma et al. 2024): each round improves the best program of the previous round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grace_irl.evaluate.evaluation import shown
from grace_irl.search.protocol import Fate, Request, Result, Wait
from grace_irl.search.ranks import Scored
from grace_irl.search.tried import Tried, ordered


@dataclass(frozen=True)
class GreedySettings:
    """Settings of the greedy search, with the defaults of Eureka.

    Attributes:
        rounds: number of rounds, including the first one.
        samples: number of programs in a round.
        keep_overall: whether a round's parent is the best program of all earlier rounds, not just of the previous one.
    """

    rounds: int = 5
    samples: int = 16
    keep_overall: bool = False


class GreedySearch:
    """A search in rounds with one parent per round.

    The first round requests new programs. Each later round requests `settings.samples` versions of one parent, the best
    program of the previous round. This parent may be worse than an earlier program, unless `keep_overall` is set. After
    a round without a valid program, the parent stays the same. If there is no parent yet, the round requests new
    programs.

    If an answer repeats an earlier program, Eureka trains a policy on the program again. Here the program competes in
    the new round with its first score. So an answer that repeats the parent can win the round.

    After the last request of a round, `ask` returns `Wait` until all results of the round have arrived.
    """

    def __init__(self, settings: GreedySettings, seed: int) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._tried = Tried()
        self._parent: Scored | None = None
        self._found: dict[str, Scored] = {}  # valid programs of this round by id, including repeated ones
        self._new: list[Scored] = []  # programs of this round that are neither kept nor dropped yet
        self._asked = 0
        self._told = 0
        self._round = 0
        self._left = settings.samples  # number of requests of this round that `ask` has not returned yet

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of the valid programs of all rounds, best first."""
        return self._tried.best

    @property
    def parent(self) -> str | None:
        """Id of the program on which the requests of this round build, or None if the round requests new programs."""
        return None if self._parent is None else self._parent.program.id

    @property
    def undecided(self) -> tuple[str, ...]:
        """Ids of this round's valid programs that are neither kept nor dropped yet."""
        return tuple(each.program.id for each in self._new)

    @property
    def generation(self) -> int:
        """Number of complete rounds."""
        return self._round

    def ask(self) -> Request | Wait | None:
        """Return the next request, `Wait` if results of the round are missing, or None after the last round."""
        if self._round >= self._settings.rounds:
            return None
        if self._left == 0:
            return Wait()
        parents = () if self._parent is None else (self._parent.program.id,)
        seed = int(self._rng.integers(2**62))
        request = Request(self._asked, "reflect" if parents else "initialise", parents, seed)
        self._left -= 1
        self._asked += 1
        return request

    def tell(self, result: Result) -> list[Fate]:
        """Process a result. Return the new fates. Fates of valid programs are decided at the end of their round."""
        self._told += 1
        taken = self._tried.take(result)
        if isinstance(taken, Scored):
            self._new.append(taken)
        known = None if result.program is None else self._tried.find(result.program.id)
        if known is not None:
            self._found[known.program.id] = known
        fates = [taken] if isinstance(taken, Fate) else []
        if self._left == 0 and self._told == self._asked:
            fates += self._choose()
            self._round += 1
            self._left = self._settings.samples
        return fates

    def finish(self) -> list[Fate]:
        """End the current round early, because no more results will come. Return the fates of its programs."""
        return self._choose()

    def _choose(self) -> list[Fate]:
        """Choose the parent of the next round. Return the fates of this round's programs.

        The chosen program is "kept", unless it was already the parent of this round. Every other program that this
        round brought for the first time is "dropped".
        """
        found, new = ordered(self._found.values()), {each.program.id for each in self._new}
        self._found, self._new = {}, []
        if not found:
            return []
        overall = self._settings.keep_overall
        leader = self._tried.order[0] if overall else found[0]
        fates = []
        if leader is found[0] and leader is not self._parent:
            where = "of all rounds" if overall else f"of round {self._round + 1}"
            fates.append(Fate(leader.program.id, "kept", f"the best {where}: {_words(leader)}"))
        for each in found:
            if each is not leader and each.program.id in new:
                than = "below" if round(each.evaluation.score - leader.evaluation.score, 9) < 0 else "equal to"
                whose = "all rounds" if overall else f"round {self._round + 1}"
                reason = f"{_words(each)}, {than} the best of {whose} ({_words(leader)})"
                fates.append(Fate(each.program.id, "dropped", reason))
        self._parent = leader
        return fates


def _words(scored: Scored) -> str:
    return f"score {shown(scored.evaluation.score)}"
