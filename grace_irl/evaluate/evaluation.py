"""The interface of evaluators, which score reward programs, and the type of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from grace_irl.programs.program import Program

EQUAL = 1e-9  # scores with at most this difference count as equal: calibration is not more accurate


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring one program.

    Attributes:
        status: "ok", or the reason why the program is invalid, for example "timeout" (a `Status` of the sandbox).
        message: one line for the user; "" after a complete evaluation of a valid program.
        traceback: traceback of the program's error, for repair by a language model; "" if there is none.
        score: number by which searches compare programs; higher is better. -inf for an invalid program and for an
            evaluation that stopped early.
        bound: upper bound of the score if the evaluation stopped early, else None. An evaluation stops if the score
            cannot reach `Bar.floor`. A stopped evaluation has no metrics.
        metrics: named numbers for users, stop rules and searches. Every evaluator chooses its own names.
        evidence: JSON values in the evaluator's own format. Searches and the store of a run do not interpret them.
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
        floor: minimum score of a useful program. At lower scores, an evaluation skips held-out data and may stop early.
        elite: minimum score for a second run, in strict mode. Strict mode passes the states to the program one by one.
            This reveals rewards that depend on later states or on other trajectories.
    """

    floor: float = float("-inf")
    elite: float = float("-inf")


class Evaluator(Protocol):
    """An object that scores programs. Several threads may call its methods.

    The result of an evaluation depends only on the program, the data and the bar.
    """

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        """Evaluate programs, with one result per program, in order.

        If a program fails, no exception is raised: the program's result has the status of the failure.
        """
        ...

    def verify(self, program: Program) -> str:
        """Run the program over all data in strict mode (`Bar.elite`).

        Return "", or the reason why the program is invalid.
        """
        ...

    def close(self) -> None:
        """Remove the trajectories from the sandbox."""
        ...


@runtime_checkable
class Barless(Protocol):
    """An evaluator that states whether its results depend on the bar."""

    @property
    def ignores_bar(self) -> bool:
        """Whether `evaluate` ignores the bar. A run then evaluates each program only once, even if the bar changes."""
        ...


def shown(score: float) -> str:
    """The score as text. Scores within `EQUAL` of 0 become "0"."""
    return "0" if abs(score) <= EQUAL else f"{score:.5g}"
