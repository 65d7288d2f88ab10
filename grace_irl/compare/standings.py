"""How methods stand, over their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grace_irl.compare.oracle import Oracle
from grace_irl.compare.outcome import Outcome, Result
from grace_irl.evaluate.statistics import Summary, summarise

ORACLE = "ppo-true"


@dataclass(frozen=True)
class Standing:
    """One method in one environment.

    Attributes:
        method, environment: which.
        transfer: whether its reward was recovered elsewhere.
        seeds: of the runs that ended well.
        failed: runs that did not.
        success: whether `score` is of success rates, else of returns.
        score: over the runs; None where all failed.
        fraction: of the mean score of PPO on the true reward; None where that has not learnt, or is not there.
        returns: mean return over the runs.
        length: mean steps of an episode.
        components: means over the runs of each component of the environment's reward.
        epic: mean EPIC distance over the runs that have one.
        rate: mean environment steps a second.
        note: what must be said beside it; "" for nothing.
    """

    method: str
    environment: str
    transfer: bool
    seeds: tuple[int, ...]
    failed: int
    success: bool
    score: Summary | None
    fraction: float | None
    returns: float | None
    length: float | None
    components: dict[str, float]
    epic: float | None
    rate: float | None
    note: str = ""


def standings(results: Sequence[Result], methods: Sequence[str], oracle: Oracle) -> tuple[Standing, ...]:
    """Sums results up, environment by environment, methods in their order.

    Args:
        results: of the jobs that have ended.
        methods: that are compared.
        oracle: says when PPO on the true reward has learnt.
    """
    places: dict[str, bool] = {}
    for result in results:
        for outcome in result.outcomes:
            places.setdefault(outcome.environment, outcome.transfer)
    found: list[Standing] = []
    for environment, transfer in sorted(places.items(), key=lambda place: place[1]):
        runs = {method: _runs(results, method, environment) for method in methods}
        success = all(outcome.success is not None for each in runs.values() for _, outcome in each)
        best = [_score(outcome, success) for _, outcome in runs.get(ORACLE, ())]
        mean = float(np.mean(best)) if best else None
        doubt = oracle.doubt(environment, mean, success=success) if mean is not None else ""
        divisor = mean if not doubt else None
        for method in methods:
            failed = sum(1 for each in results if each.method == method and each.failure)
            if runs[method] or (failed and not transfer):
                found.append(_standing(method, environment, transfer, runs[method], failed, success, divisor, doubt))
    return tuple(found)


def _runs(results: Sequence[Result], method: str, environment: str) -> list[tuple[int, Outcome]]:
    return [
        (result.seed, outcome)
        for result in results
        if result.method == method
        for outcome in result.outcomes
        if outcome.environment == environment
    ]


def _score(outcome: Outcome, success: bool) -> float:
    return outcome.success if success and outcome.success is not None else outcome.mean


def _standing(
    method: str,
    environment: str,
    transfer: bool,
    runs: Sequence[tuple[int, Outcome]],
    failed: int,
    success: bool,
    divisor: float | None,
    doubt: str,
) -> Standing:
    outcomes = [outcome for _, outcome in runs]
    score = summarise([[_score(each, success) for each in outcomes]]) if outcomes else None
    names = sorted({name for each in outcomes for name in each.components})
    return Standing(
        method,
        environment,
        transfer,
        tuple(seed for seed, _ in runs),
        failed,
        success,
        score,
        score.mean / divisor if score is not None and divisor is not None else None,
        _mean([each.mean for each in outcomes]),
        _mean([each.length for each in outcomes]),
        {name: float(np.mean([each.components.get(name, 0.0) for each in outcomes])) for name in names},
        _mean([each.epic for each in outcomes]),
        _mean([each.rate for each in outcomes]),
        doubt,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
