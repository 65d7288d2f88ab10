"""The interface of an evaluator, which scores reward programs, and the type of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from grace_irl.programs.program import Program

EQUAL = 1e-9  # scores this close count as equal, because the optimisation behind a score is no more accurate


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring one program.

    Attributes:
        status: "ok", or the reason why the program is invalid, for example "timeout" (a `Status` of the sandbox).
        message: one line for the user; "" after a complete evaluation of a valid program.
        traceback: traceback of the program's error, from which a language model can repair it; "" if there is none.
        score: number by which searches compare programs; higher is better. -inf for an invalid program and for an
            evaluation that stopped early.
        bound: upper bound of the score if the evaluation stopped early, else None. An evaluation stops once the score
            cannot reach `Bar.floor`. A stopped evaluation has no metrics.
        metrics: named numbers for users, stop rules and searches. Every evaluator chooses its own names.
        evidence: JSON values in a format of the evaluator. A search and the store of a run keep them unread.
        seconds: wall time of the evaluation.
    """

    status: str
    message: str = ""
    traceback: str = ""
    score: float = float("-inf")
    bound: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def valid(self) -> bool:
        """Whether the program is valid: it ran, and returned a finite number for every state."""
        return self.status == "ok"

    @property
    def complete(self) -> bool:
        """Whether the evaluation ran without an early stop."""
        return self.bound is None


@dataclass(frozen=True)
class Bar:
    """Two limits on the score that decide how much of an evaluation runs.

    Attributes:
        floor: minimum score of a useful program. Below it, an evaluation may stop early and skips held-out data.
        elite: minimum score for a second run, in strict mode. Strict mode passes the states to the program one by one,
            which shows whether a reward depends on later states or on other trajectories.
    """

    floor: float = float("-inf")
    elite: float = float("-inf")


class Evaluator(Protocol):
    """An object that scores programs. Several threads may use it.

    The result of an evaluation depends only on the program, the data and the bar.
    """

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        """Evaluate programs, with one result per program, in order.

        If a program fails, its result has the status of the failure. No exception is raised.
        """
        ...

    def verify(self, program: Program) -> str:
        """Run the program over all data in strict mode. Return "", or the reason why the program is invalid."""
        ...

    def close(self) -> None:
        """Remove the trajectories from the sandbox."""
        ...


def shown(score: float) -> str:
    """The score as text. Scores within `EQUAL` of 0 become "0"."""
    return "0" if abs(score) <= EQUAL else f"{score:.5g}"
