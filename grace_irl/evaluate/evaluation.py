"""Evaluation results: a score, named metrics, and evidence that only the evaluator interprets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from grace_irl.programs.program import Program

EQUAL = 1e-9  # scores that differ by at most this are equal: optimisers and the calibration are no more accurate


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring one program.

    Attributes:
        status: "ok", or the reason why the program is invalid (a sandbox `Status`).
        message: one line for the user; "" after a complete evaluation of a valid program.
        traceback: traceback of the program, for a repair.
        score: number by which searches compare programs, the higher the better; -inf without a score.
        bound: upper bound of the score if the evaluation stopped early, else None. An evaluation stops once the
            program cannot reach the floor (`Bar`), and then has no score and no metrics.
        metrics: named numbers for users, stop rules and searches. Every evaluator chooses its own names.
        evidence: JSON values that only the evaluator interprets. Engine, store and searches keep them unread.
        seconds: wall time of the evaluation, seconds.
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
        """Whether the evaluation did not stop early."""
        return self.bound is None


@dataclass(frozen=True)
class Bar:
    """Two limits on the score. They save an evaluation unnecessary work.

    Attributes:
        floor: score below which a program is useless. Its evaluation may stop early, and skips held-out data.
        elite: minimum score of a program that also runs in strict mode.
    """

    floor: float = float("-inf")
    elite: float = float("-inf")


class Evaluator(Protocol):
    """A source of scores for programs. Several threads may use it.

    An evaluation depends only on program, data and bar.
    """

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        """One evaluation per program, in order. A failing program yields a status, never an exception."""
        ...

    def verify(self, program: Program) -> str:
        """Run the program over all data in strict mode. Return "", or the reason why the program is invalid."""
        ...

    def close(self) -> None:
        """Release the trajectories in the sandbox."""
        ...


def shown(score: float) -> str:
    """The score as text. Scores within `EQUAL` of 0 become "0"."""
    return "0" if abs(score) <= EQUAL else f"{score:.5g}"
