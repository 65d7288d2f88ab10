"""Results with which tests answer the requests of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.programs.program import Program
from grace_irl.search.protocol import Request, Result
from grace_irl.testing.searches import Reply


def scored(request: Request, score: float, name: str = "", size: int = 10) -> Result:
    """A valid program. Its name is "p" and the request's index, unless the test gives one."""
    program = Program(name or f"p{request.index}", "", size, request.operator, request.parents)
    return Result(request, program, Evaluation("ok", score=score))


def broken(request: Request) -> Result:
    """A program that raises an exception."""
    program = Program(f"p{request.index}", "", 10, request.operator, request.parents)
    return Result(request, program, Evaluation("runtime", "ZeroDivisionError: division by zero"))


def missing(request: Request) -> Result:
    """No program."""
    return Result(request, failure="no code in the answer")


def by_index(scores: Mapping[int, float] | Callable[[int], float]) -> Reply:
    """Programs with scores by index of their requests. A request without a score gets a program that fails."""

    def reply(request: Request, bar: Bar) -> Result:
        if callable(scores):
            return scored(request, scores(request.index))
        return scored(request, scores[request.index]) if request.index in scores else broken(request)

    return reply


def by_seed(request: Request, bar: Bar) -> Result:
    """Programs of random scores, some negative. The request's seed decides the score, and one in eight fails."""
    draw = np.random.default_rng(request.seed).normal(size=2)
    return broken(request) if draw[1] > 1.15 else scored(request, float(draw[0]))
