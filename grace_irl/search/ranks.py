"""The order of programs: by fitness, and among equals by what a reader would prefer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grace_irl.evaluate.evaluation import EQUAL, Evaluation, Metrics
from grace_irl.programs.program import Program


@dataclass(frozen=True)
class Scored:
    """A valid program with its score.

    Attributes:
        index: of the request that it answered: its place in the order of asking.
    """

    program: Program
    evaluation: Evaluation
    index: int


def ranked(candidates: Iterable[Scored]) -> list[Scored]:
    """Best first: higher train fitness, then fewer nodes, then asked for earlier."""
    by_fitness = sorted(candidates, key=lambda c: -c.evaluation.fitness)
    return _within_equals(by_fitness, lambda c: c.evaluation.fitness, lambda c: (c.program.nodes, c.index))


def winner(candidates: Iterable[Scored]) -> Scored | None:
    """The best program; None without candidates.

    Among those that train data cannot tell apart (equal fitness, or all of them separate expert from negative
    states) held-out data decides: accuracy first, then fitness; then fewer nodes, then the one asked for
    earlier.
    """
    order = ranked(candidates)
    if not order:
        return None
    best = order[0]
    equals = [c for c in order if _train_equal(best.evaluation, c.evaluation)]
    equals.sort(key=lambda c: -_held_out(c, "accuracy"))
    most = _held_out(equals[0], "accuracy")
    equals = [c for c in equals if _held_out(c, "accuracy") >= most - EQUAL]
    equals.sort(key=lambda c: -_held_out(c, "fitness"))
    found = _within_equals(equals, lambda c: _held_out(c, "fitness"), lambda c: (c.program.nodes, c.index))
    return found[0]


def _train_equal(best: Evaluation, other: Evaluation) -> bool:
    if best.fitness - other.fitness <= EQUAL:
        return True
    return _separates(best.train) and _separates(other.train)


def _separates(metrics: Metrics | None) -> bool:
    return metrics is not None and metrics.separated


def _held_out(candidate: Scored, name: str) -> float:
    metrics = candidate.evaluation.held_out
    return float("-inf") if metrics is None else float(getattr(metrics, name))


def _within_equals(
    ordered: list[Scored], value: Callable[[Scored], float], tie: Callable[[Scored], tuple[int, int]]
) -> list[Scored]:
    """Reorders runs of equal value (within `EQUAL` of the run's first) by `tie`."""
    result: list[Scored] = []
    run: list[Scored] = []
    for candidate in ordered:
        if run and value(run[0]) - value(candidate) > EQUAL:
            result += sorted(run, key=tie)
            run = []
        run.append(candidate)
    return result + sorted(run, key=tie)
