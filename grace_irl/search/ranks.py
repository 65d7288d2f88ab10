"""The ranking of programs by merit, which is the fitness plus a small term for the program's prior probability."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from grace_irl.evaluate.evaluation import EQUAL, Evaluation
from grace_irl.programs.program import Program

CLOSE = 1.0
"""Tolerance of `winner`, in nats. A program that separates positive from negative states beats a program that does not,
if the log-posterior of the separating program is lower by at most this number.

The tolerance is needed because the log-likelihood of the labels (see `merit`) counts each misclassified state once,
among all states. So a program loses almost nothing if it wrongly gives a high reward in one state of each of several
negative episodes."""


@dataclass(frozen=True)
class Scored:
    """A valid program with its evaluation.

    Attributes:
        program: the program.
        evaluation: the program's evaluation.
        index: index of the request that the program answers (`Request.index`).
    """

    program: Program
    evaluation: Evaluation
    index: int


def merit(candidate: Scored) -> float:
    """The number that ranks programs: f + prior / N, with fitness f and N positive training states.

    The prior is the program's log-probability according to the proposer, at most 0. If the proposer gives no prior, the
    prior is 0 and the merit is the fitness. If trained policies judge the program, there is no N, and the merit is the
    score.

    N f is the log-likelihood of the labels if all negative states together weigh as much as N states. So N times the
    merit is the program's log-posterior, up to a constant. If N is large, the prior has little effect. If N is 8, the
    prior ranks programs that fit noise below programs that explain the data.
    """
    evaluation, prior = candidate.evaluation, min(candidate.program.prior, 0.0)
    positives = evaluation.metrics.get("positives")
    return evaluation.score if positives is None else evaluation.score + prior / max(positives, 1.0)


def ranked(candidates: Iterable[Scored]) -> list[Scored]:
    """Sort programs by merit, best first. Ties go to the higher prior, then smaller program, then earlier request."""
    return _within_equals(sorted(candidates, key=lambda c: -merit(c)), merit, _tie)


def winner(candidates: Iterable[Scored]) -> Scored | None:
    """The best program, or None without candidates.

    First, one program is chosen. It is the program of highest merit among those that separate positive from negative
    states, if its log-posterior is at most `CLOSE` below the highest log-posterior of all programs. Otherwise it is the
    program of highest merit among all programs. Then these programs compete:

    - the chosen program, and all programs of equal merit;
    - if the chosen program separates positive from negative states, also all other programs that separate them.

    Of these programs, the one of highest prior wins. Ties go to the smaller program, then the higher merit, then the
    earlier request. Held-out data have no influence.
    """
    order = ranked(candidates)
    if not order:
        return None
    close = (each for each in order if _separates(each) and _log_odds(order[0], each) <= CLOSE)
    chosen = next(close, order[0])
    equals = [each for each in order if _train_equal(chosen, each)]
    return min(equals, key=lambda each: _tie(each)[:2])  # `min` returns the first of equal programs


def rivals(order: Sequence[Scored]) -> list[Scored]:
    """The first program of an order by `winners`, then the programs that lose to the first program only by a tie rule.

    The tie rules compare size, merit and request (see `winner`).
    """
    first = order[0]
    same = (each for each in order[1:] if _train_equal(first, each))
    return [first, *(each for each in same if abs(each.program.prior - first.program.prior) <= EQUAL)]


def winners(candidates: Iterable[Scored]) -> list[Scored]:
    """Sort candidates: the winner first, then the winner of the others, and so on."""
    left, order = list(candidates), []
    while (best := winner(left)) is not None:
        order.append(best)
        left = [each for each in left if each is not best]
    return order


def _tie(candidate: Scored) -> tuple[float, int, int]:
    return -candidate.program.prior, candidate.program.size, candidate.index


def _separates(candidate: Scored) -> bool:
    return candidate.evaluation.metrics.get("separated", 0.0) == 1.0


def _log_odds(better: Scored, other: Scored) -> float:
    """Log-posterior of `better` minus that of `other`, in nats."""
    return (merit(better) - merit(other)) * max(better.evaluation.metrics.get("positives", 1.0), 1.0)


def _train_equal(one: Scored, other: Scored) -> bool:
    return abs(merit(one) - merit(other)) <= EQUAL or (_separates(one) and _separates(other))


def _within_equals(
    ordered: list[Scored], value: Callable[[Scored], float], tie: Callable[[Scored], tuple[float, int, int]]
) -> list[Scored]:
    """Sort each group of programs with equal values by `tie`.

    The values of a group are at most `EQUAL` below the highest value of the group.

    Args:
        ordered: programs in falling order of `value`.
        value: function that returns the value of a program.
        tie: sort key within a group.
    """
    result: list[Scored] = []
    run: list[Scored] = []
    for candidate in ordered:
        if run and value(run[0]) - value(candidate) > EQUAL:
            result += sorted(run, key=tie)
            run = []
        run.append(candidate)
    return result + sorted(run, key=tie)
