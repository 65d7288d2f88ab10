"""The order of programs: by merit, and among equals by what a reader would prefer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grace_irl.evaluate.evaluation import EQUAL, Evaluation
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


def merit(candidate: Scored) -> float:
    """The rank of candidates: f + prior / N, with N the positive train states.

    N times it is the posterior: N f is the log-likelihood of the labels with both classes weighed alike, the prior
    (at most 0) the log-probability that the program's proposer gives it. Proposers without an opinion have prior 0:
    then the merit is the paper's fitness. With many states the prior hardly counts; with eight, it keeps a program
    that explains chance from crowding out one that explains the data.
    """
    evaluation = candidate.evaluation
    return evaluation.score + min(candidate.program.prior, 0.0) / max(evaluation.metrics.get("positives", 1.0), 1.0)


def ranked(candidates: Iterable[Scored]) -> list[Scored]:
    """Best first: higher merit, then the likelier to its proposer, fewer nodes, the earlier request."""
    return _within_equals(sorted(candidates, key=lambda c: -merit(c)), merit, _tie)


def winner(candidates: Iterable[Scored]) -> Scored | None:
    """The best program; None without candidates.

    Among those that train data cannot tell apart (equal merit, or all of them separate expert from negative
    states) held-out data decides: accuracy first, then fitness; then the prior, fewer nodes, the earlier request.
    """
    order = ranked(candidates)
    if not order:
        return None
    best = order[0]
    equals = [c for c in order if _train_equal(best, c)]
    equals.sort(key=lambda c: -_metric(c, "held_out_accuracy"))
    most = _metric(equals[0], "held_out_accuracy")
    equals = [c for c in equals if _metric(c, "held_out_accuracy") >= most - EQUAL]
    equals.sort(key=lambda c: -_metric(c, "held_out_fitness"))
    found = _within_equals(equals, lambda c: _metric(c, "held_out_fitness"), _tie)
    return found[0]


def winners(candidates: Iterable[Scored]) -> list[Scored]:
    """All candidates: the winner, the winner of the rest, and so on."""
    left, order = list(candidates), []
    while (best := winner(left)) is not None:
        order.append(best)
        left = [each for each in left if each is not best]
    return order


def _tie(candidate: Scored) -> tuple[float, int, int]:
    return -candidate.program.prior, candidate.program.nodes, candidate.index


def _train_equal(best: Scored, other: Scored) -> bool:
    if merit(best) - merit(other) <= EQUAL:
        return True
    return all(each.evaluation.metrics.get("separated", 0.0) == 1.0 for each in (best, other))


def _metric(candidate: Scored, name: str) -> float:
    return candidate.evaluation.metrics.get(name, float("-inf"))


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
