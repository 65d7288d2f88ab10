"""Searches at equal budgets: the score that each had reached when it had used as much as the others.

Searches of one comparison may end with different numbers of programs, tokens and environment steps, so their last
scores say little about the searches. Here the budget is the least that a run has used in all, and each run counts with
its highest score within this budget.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grace_irl.compare.folder import JobResult, Milestone, Used, read_curve
from grace_irl.compare.standings import SeedSummary, summarise
from grace_irl.runs.store import Store

RESOURCES: Mapping[str, str] = {"asked": "programs", "tokens": "tokens", "steps": "environment steps"}
"""Names of the resources that a budget can limit, by attribute of `Milestone`."""


@dataclass(frozen=True)
class AtBudget:
    """The highest scores of a method's searches within a budget.

    Attributes:
        method: name of the method.
        runs: number of its runs with milestones.
        reached: summary of the highest scores of the runs with a valid program within the budget; None without any.
    """

    method: str
    runs: int
    reached: SeedSummary | None


@dataclass(frozen=True)
class Budget:
    """A budget, and what the searches reach within it.

    Attributes:
        resource: attribute of `Milestone` that the budget limits.
        amount: the limit: the smallest amount that a run has used in all.
        measure: quantity that the scores measure (`Used.measure`).
        methods: the methods with such scores, in order.
    """

    resource: str
    amount: int
    measure: str
    methods: tuple[AtBudget, ...]


def milestones_of(store: Store, trainings: Path) -> tuple[Milestone, ...]:
    """The new highest scores of a run.

    A request counts once its result is there. Its tokens are those of all its calls, and its steps those of the
    trainings of all programs that it brought first.

    Args:
        store: the store of the run.
        trainings: the folder with the run's trainings, which may be missing.
    """
    from grace_irl.rl.ppo import CURVE

    tokens, steps = Counter[int](), Counter[int]()
    scores: dict[int, float] = {}
    for index, _, answer in store.proposals():
        tokens[index] += answer.tokens_in + answer.tokens_out
    for name, record in store.records().items():
        curves = [read_curve(path) for path in (trainings / name).glob(f"*/{CURVE}")]
        steps[record.index] += sum(int(curve[-1]["steps"]) for curve in curves if curve)
        if record.evaluation.valid and record.evaluation.complete:
            scores[record.index] = max(record.evaluation.score, scores.get(record.index, -math.inf))
    found: list[Milestone] = []
    spent = taken = 0
    for asked, index in enumerate(sorted(store.told()), 1):
        spent, taken = spent + tokens[index], taken + steps[index]
        if index in scores and (not found or scores[index] > found[-1].score):
            found.append(Milestone(asked, spent, taken, scores[index]))
    return tuple(found)


def budgets_of(results: Sequence[JobResult], methods: Sequence[str]) -> list[Budget]:
    """The budgets at which searches of at least two methods can be compared, by measure and resource."""
    known = [(each.method, each.used) for each in results if each.used is not None and each.used.milestones]
    found = []
    for measure in dict.fromkeys(used.measure for _, used in known):
        runs = [(method, used) for method, used in known if used.measure == measure]
        if len({method for method, _ in runs}) < 2:
            continue
        for resource in RESOURCES:
            amount = min(_whole(used, resource) for _, used in runs)
            if amount:
                rows = [
                    _at(name, [used for method, used in runs if method == name], resource, amount) for name in methods
                ]
                found.append(Budget(resource, amount, measure, tuple(each for each in rows if each.runs)))
    return found


def _whole(used: Used, resource: str) -> int:
    return used.tokens_in + used.tokens_out if resource == "tokens" else int(getattr(used, resource))


def _at(method: str, runs: Sequence[Used], resource: str, amount: int) -> AtBudget:
    within = [[each.score for each in run.milestones if getattr(each, resource) <= amount] for run in runs]
    reached = [scores[-1] for scores in within if scores]
    return AtBudget(method, len(runs), summarise(reached) if reached else None)
