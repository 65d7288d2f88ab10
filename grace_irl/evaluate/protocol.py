"""The protocol of every evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program


@dataclass(frozen=True)
class Bar:
    """What an evaluation is for, so that it spends no more than that.

    Attributes:
        floor: fitness below which the program is of no use: the evaluation may stop early, and skips held-out
            data.
        elite: fitness from which the program is also run in strict mode.
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
