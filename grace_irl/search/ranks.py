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
    """Best first: higher train fitness, then the likelier to its proposer, fewer nodes, asked for earlier."""
    by_fitness = sorted(candidates, key=lambda c: -c.evaluation.fitness)
    return _within_equals(by_fitness, lambda c: c.evaluation.fitness, _tie)


def winner(candidates: Iterable[Scored]) -> Scored | None:
    """The best program; None without candidates.

    The best has the largest posterior: N f + prior, where N f, the fitness times the number of positive train states,
    is the log-likelihood of the labels with both classes weighed alike. Proposers without an opinion have prior 0, and
    with many states the prior hardly counts; with eight, it keeps a program that explains chance from winning.

    Among those that train data cannot tell apart (equal posterior, or all of them separate expert from negative
    states) held-out data decides: accuracy first, then fitness; then the prior, fewer nodes, the one asked for
    earlier.
    """
    order = sorted(ranked(candidates), key=lambda c: -_posterior(c))
    if not order:
        return None
    best = order[0]
    equals = [c for c in order if _train_equal(best, c)]
    equals.sort(key=lambda c: -_held_out(c, "accuracy"))
    most = _held_out(equals[0], "accuracy")
    equals = [c for c in equals if _held_out(c, "accuracy") >= most - EQUAL]
    equals.sort(key=lambda c: -_held_out(c, "fitness"))
    found = _within_equals(equals, lambda c: _held_out(c, "fitness"), _tie)
    return found[0]


def _tie(candidate: Scored) -> tuple[float, int, int]:
    return -candidate.program.prior, candidate.program.nodes, candidate.index


def _posterior(candidate: Scored) -> float:
    train = candidate.evaluation.train
    return (train.experts if train else 1) * candidate.evaluation.fitness + candidate.program.prior


def _train_equal(best: Scored, other: Scored) -> bool:
    train = best.evaluation.train
    if _posterior(best) - _posterior(other) <= EQUAL * (train.experts if train else 1):
        return True
    return _separates(best.evaluation.train) and _separates(other.evaluation.train)


def _separates(metrics: Metrics | None) -> bool:
    return metrics is not None and metrics.separated


def _held_out(candidate: Scored, name: str) -> float:
    metrics = candidate.evaluation.held_out
    return float("-inf") if metrics is None else float(getattr(metrics, name))


def _within_equals(
    ordered: list[Scored], value: Callable[[Scored], float], tie: Callable[[Scored], tuple[float, int, int]]
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
