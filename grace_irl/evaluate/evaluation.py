"""Evaluation results: one score, named metrics, and evidence that only its evaluator understands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from grace_irl.programs.program import Program

EQUAL = 1e-9  # scores within this are equal: optimisers and the calibration's bound leave no less


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring one program.

    Attributes:
        status: "ok", or why the program is invalid (a sandbox `Status`).
        message: one line for a person; "" when ok.
        traceback: the program's own traceback, for a repair.
        score: searches compare programs by this number, the higher the better; -inf without one.
        bound: None, or an upper bound of the score if the evaluation stopped early, because the program could not
            reach the floor that it had to reach. It has no score and no metrics then.
        metrics: named numbers for people, stop rules and searches. Every evaluator chooses its own names.
        evidence: JSON values of the evaluator's own. Engine, store and searches keep them and never look inside.
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
        """Whether the program did what programs must do: it ran, and gave a finite number for every state."""
        return self.status == "ok"

    @property
    def complete(self) -> bool:
        """Whether the evaluation went to its end."""
        return self.bound is None


@dataclass(frozen=True)
class Bar:
    """The purpose of an evaluation, so that it spends no more than that.

    Attributes:
        floor: score below which the program is of no use: the evaluation may stop early, and skips held-out data.
        elite: score from which the program also runs in strict mode.
    """

    floor: float = float("-inf")
    elite: float = float("-inf")


class Evaluator(Protocol):
    """Scores programs, from several threads; an evaluation depends only on program, data and bar."""

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        """One evaluation per program, in order. What a program does is never an exception."""
        ...

    def verify(self, program: Program) -> str:
        """Runs the program over all data in strict mode; "" when honest, else why it is invalid."""
        ...

    def close(self) -> None:
        """Gives back what it holds in the sandbox."""
        ...


def shown(score: float) -> str:
    """A score for people: what is equal to 0 is 0."""
    return "0" if abs(score) <= EQUAL else f"{score:.5g}"
