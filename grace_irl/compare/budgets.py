"""Searches at equal budgets: the score that each had reached when it had used as much as the others.

Searches of one comparison may end with different numbers of programs, tokens and environment steps, so their last
scores say little about the searches. Here the budget is the least that a run has used in all, and each run counts with
its highest score within this budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grace_irl.compare.folder import JobResult, Milestone, Used, read_curve
from grace_irl.compare.standings import SeedSummary, summarise
from grace_irl.runs.store import Store

RESOURCES: Mapping[str, str] = {"asked": "programs asked", "tokens": "tokens", "steps": "steps of the search"}
"""Names of the resources that a budget can limit, by attribute of `Milestone`."""


@dataclass(frozen=True)
class AtBudget:
    """The highest scores of a method's searches within a budget.

    Attributes:
        method: name of the method.
        runs: number of its runs, one for each seed that all methods have.
        reached: summary of the highest scores of these runs; None if a run has no valid program within the budget.
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

    A request counts once its result is there, with the tokens of all its calls and the trainings of all programs that
    it brought first. Programs that fail in strict mode have no score, nor have reshaped programs: reshaping does not
    seek a better one.

    Args:
        store: the store of the run.
        trainings: the folder with the run's trainings, which may be missing.
    """
    from grace_irl.rl.ppo import CURVE

    records, requests = store.records(), store.requests()
    refused = {row.fate.program_id for row in store.fates() if row.fate.verdict == "invalid"}
    tokens, steps = Counter[int](), Counter[int]()
    for index, _, answer in store.proposals():
        tokens[index] += answer.tokens_in + answer.tokens_out
    for path in trainings.glob(f"*/*/{CURVE}"):
        if (trained := records.get(path.parent.parent.name)) is not None and (curve := read_curve(path)):
            steps[trained.index] += int(curve[-1]["steps"])
    found: list[Milestone] = []
    spent = taken = 0
    for asked, (index, told) in enumerate(sorted(store.told().items()), 1):
        spent, taken = spent + tokens[index], taken + steps[index]
        record = records.get(told.program_id or "")
        if record is None or record.program.id in refused or requests.get(index, (0, ""))[1] == "reshape":
            continue
        evaluation = record.evaluation
        if evaluation.valid and evaluation.complete and (not found or evaluation.score > found[-1].score):
            found.append(Milestone(asked, spent, taken, evaluation.score))
    return tuple(found)


def budgets_of(results: Sequence[JobResult], methods: Sequence[str]) -> list[Budget]:
    """The budgets at which searches of at least two methods can be compared, by measure and resource.

    Only seeds count that all these methods have.
    """
    known = [(each, each.used) for each in results if each.used is not None and each.used.milestones]
    found = []
    for measure in dict.fromkeys(used.measure for _, used in known if used.measure):
        runs = {
            name: {each.seed: used for each, used in known if each.method == name and used.measure == measure}
            for name in methods
        }
        runs = {name: own for name, own in runs.items() if own}
        seeds = set.intersection(*(set(own) for own in runs.values()))
        if len(runs) < 2 or not seeds:
            continue
        same = {name: [own[seed] for seed in sorted(seeds)] for name, own in runs.items()}
        for resource in RESOURCES:
            amount = min(_whole(used, resource) for own in same.values() for used in own)
            if amount > 0:
                reached = tuple(_at(name, own, resource, amount) for name, own in same.items())
                found.append(Budget(resource, amount, measure, reached))
    return found


def _whole(used: Used, resource: str) -> int:
    return used.tokens_in + used.tokens_out if resource == "tokens" else int(getattr(used, resource))


def _at(method: str, runs: Sequence[Used], resource: str, amount: int) -> AtBudget:
    within = [[each.score for each in run.milestones if getattr(each, resource) <= amount] for run in runs]
    return AtBudget(method, len(runs), summarise([max(scores) for scores in within]) if all(within) else None)
