"""Random search: the proposer writes all programs independently of each other.

Random search is the baseline of the other searches. A search that does not beat this baseline does not learn from the
scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grace_irl.evaluate.evaluation import shown
from grace_irl.search.protocol import Fate, Request, Result
from grace_irl.search.ranks import Scored
from grace_irl.search.tried import Tried


@dataclass(frozen=True)
class IndependentSettings:
    """Settings of the random search.

    Attributes:
        programs: number of programs to request.
    """

    programs: int = 32


class IndependentSearch:
    """A search that requests `settings.programs` new programs and ranks them by score.

    No request depends on a result. So `ask` never returns `Wait`, and all requests can be answered in parallel.
    """

    def __init__(self, settings: IndependentSettings, seed: int) -> None:
        self._settings = settings
        self._rng = np.random.default_rng(seed)
        self._tried = Tried()
        self._asked = 0

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of all valid programs, best first."""
        return self._tried.best

    def ask(self) -> Request | None:
        """Return the next request, or None after `settings.programs` requests."""
        if self._asked >= self._settings.programs:
            return None
        self._asked += 1
        return Request(self._asked - 1, "initialise", seed=int(self._rng.integers(2**62)))

    def tell(self, result: Result) -> list[Fate]:
        """Record a result. Return the fate of its program, which is "kept" for each new valid program."""
        taken = self._tried.take(result)
        if isinstance(taken, Scored):
            return [Fate(taken.program.id, "kept", f"score {shown(taken.evaluation.score)}")]
        return [] if taken is None else [taken]
