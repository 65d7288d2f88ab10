"""The programs that a search has received, ordered by score. The score of a program may come from trained policies."""

from __future__ import annotations

import math
from collections.abc import Iterable

from grace_irl.search.protocol import Fate, Result
from grace_irl.search.ranks import Scored


class Tried:
    """The programs that a search has received, with the evaluations of the valid programs.

    A program is valid if its evaluation is valid and complete and its score is finite. After a failed training the
    evaluation is not valid.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._valid: dict[str, Scored] = {}

    def take(self, result: Result) -> Scored | Fate | None:
        """Record a result. Return its program if the program is new and valid, else the program's fate.

        Return None if the result has no program.
        """
        program, evaluation = result.program, result.evaluation
        if program is None or evaluation is None:
            return None
        if program.id in self._seen:
            return Fate(program.id, "duplicate", "the same program was tried before")
        self._seen.add(program.id)
        if not evaluation.valid:
            return Fate(program.id, "invalid", f"{evaluation.status}: {evaluation.message}")
        if not evaluation.complete:
            return Fate(program.id, "dropped", evaluation.message)
        if not math.isfinite(evaluation.score):
            return Fate(program.id, "invalid", f"its score is {evaluation.score}, expected a finite number")
        scored = Scored(program, evaluation, result.request.index)
        self._valid[program.id] = scored
        return scored

    def find(self, name: str) -> Scored | None:
        """The valid program with this id, or None."""
        return self._valid.get(name)

    @property
    def order(self) -> list[Scored]:
        """All valid programs, best first (`ordered`)."""
        return ordered(self._valid.values())

    @property
    def best(self) -> tuple[str, ...]:
        """Ids of all valid programs, best first."""
        return tuple(each.program.id for each in self.order)


def ordered(candidates: Iterable[Scored]) -> list[Scored]:
    """Sort programs by score, best first. Ties go to the smaller program, then to the earlier request.

    Unlike `ranks.ranked`, this order ignores the programs' priors, because a log-prior is in nats and a score may have
    another unit.
    """
    return sorted(candidates, key=lambda each: (-round(each.evaluation.score, 9), each.program.size, each.index))
