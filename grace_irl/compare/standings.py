"""Standings: the scores of each method in each environment, summarised over seeds.

Most trainings keep copies of the policy on the way. Among these copies and the last policy, the favourite is the policy
with the highest mean return under the reward of the training. Without copies or such a reward, the favourite is the
last policy. So each method has two sets of scores: those of the last policies and those of the favourites. PPO on the
true reward is called the oracle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.compare.folder import Favourite, JobResult, TrainingOutcome
from grace_irl.compare.settings import ORACLE, OURS
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.rl.matching import split_id

RETURNS = {"Hopper": 2_000.0, "Walker2d": 2_000.0, "HalfCheetah": 1_000.0}
"""Minimum mean return with which the oracle (PPO on the true reward) counts as trained, by environment. A Hopper or
Walker2d that stands still earns about 1,000 in 1,000 steps for being alive. A HalfCheetah that stands still earns
0. In shorter episodes the minimum is smaller in proportion."""
USUAL_STEPS = 1_000
"""Time limit of the environments in `RETURNS`."""
SUCCESS = 0.5
"""Minimum success rate with which the oracle (PPO on the true reward) counts as trained, if the environment has a
goal."""
OF_EXPERTS = 0.5
"""Minimum mean return with which the oracle (PPO on the true reward) counts as trained, as a share of the experts' mean
return. It applies to environments that have no goal and are not in `RETURNS`."""


@dataclass(frozen=True)
class Oracle:
    """The rule that decides whether the oracle (PPO on the true reward) has learnt its environment.

    Attributes:
        experts: mean return of the experts that have recorded rewards; None if no expert has recorded rewards.
        steps: maximum number of steps of an episode; None for the environment's own time limit.
    """

    experts: float | None = None
    steps: int | None = None

    @classmethod
    def of(cls, demonstrations: Demonstrations, steps: int | None = None) -> Oracle:
        """The rule with the mean return that the experts in these demonstrations have after at most `steps` steps."""
        experts = [item.trajectory for item in demonstrations.select(role="expert")]
        totals = [float(each.rewards[:steps].sum()) for each in experts if each.rewards is not None]
        return cls(float(np.mean(totals)) if totals else None, steps)

    def doubt(self, environment: str, score: float, *, success: bool) -> str:
        """The reason why the oracle does not count as trained, in one line; "" if the oracle counts as trained.

        If the oracle does not count as trained, the tables show no fractions of its score.

        Args:
            environment: name of the environment.
            score: mean score of the oracle over its runs.
            success: whether the score is a success rate instead of a return.
        """
        if success:
            least, why = SUCCESS, "success"
        elif (name := split_id(environment)[0]) in RETURNS:
            share = min(1.0, (self.steps or USUAL_STEPS) / USUAL_STEPS)
            least, why = share * RETURNS[name], "return"
        elif self.experts is not None and self.experts > 0:
            least, why = OF_EXPERTS * self.experts, f"return, half of the experts' {self.experts:.4g}"
        else:
            return (
                f"{environment}: no fraction of ppo-true is quoted: nothing says when it has learnt there; expected "
                "experts with recorded rewards and a positive return"
            )
        if score >= least:
            return ""
        return (
            f"{environment}: ppo-true has not learnt ({score:.4g}; expected at least {least:.4g} {why}): no fraction "
            "of it is quoted"
        )


Floats = NDArray[np.float64]
Interval = tuple[float, float]

CONFIDENCE = 0.95
TRIM = 0.25
"""Share of the runs that the interquartile mean cuts from each end."""
IQM_RUNS = 4
"""Minimum number of runs for an interquartile mean. With fewer runs, the interquartile mean would equal the mean."""
UNKNOWN: Interval = (float("nan"), float("nan"))
"""The interval for a single run or for equal scores. Such scores do not show by how much other runs differ."""
ANYWHERE: Interval = (-float("inf"), float("inf"))


@dataclass(frozen=True)
class SeedSummary:
    """Summary of the scores of several runs (seeds) of one method.

    Attributes:
        runs: number of runs.
        mean: mean score.
        deviation: standard deviation between runs, with the divisor runs - 1; NaN for one run.
        interval: Student t interval of the mean over runs; `UNKNOWN` for one run and for equal scores.
        iqm: interquartile mean; None for fewer than `IQM_RUNS` runs.
    """

    runs: int
    mean: float
    deviation: float
    interval: Interval
    iqm: float | None


def summarise(
    scores: Sequence[float] | Floats, *, confidence: float = CONFIDENCE, within: Interval = ANYWHERE
) -> SeedSummary:
    """Summarise the scores of one method over its runs, or the differences between two methods over their seeds.

    Args:
        scores: one score for each run.
        confidence: confidence level of the interval.
        within: smallest and largest possible mean, which bound the interval. For success rates, they are 0 and 1.

    Raises:
        InputError: there are no scores, or a score is not finite.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not len(values):
        raise InputError(f"scores of shape {values.shape}; expected at least one, a number for each run")
    if not np.isfinite(values).all():
        raise InputError("scores that are not finite; expected a number for each run")
    few = len(values) < 2
    return SeedSummary(
        runs=len(values),
        mean=float(values.mean()),
        deviation=float("nan") if few else float(values.std(ddof=1)),
        interval=UNKNOWN if few or np.ptp(values) == 0 else _student(values, confidence, within),
        iqm=float(interquartile_mean(values)) if len(values) >= IQM_RUNS else None,
    )


def interquartile_mean(scores: Floats, axis: int = -1) -> Any:
    """Mean of the scores without the lowest and the highest quarter. Of 5 scores, one is cut from each end."""
    from scipy import stats  # slow to import

    return stats.trim_mean(scores, TRIM, axis=axis)


def _student(values: Floats, confidence: float, within: Interval) -> Interval:
    from scipy import stats  # slow to import

    error = float(stats.sem(values))
    if error == 0:  # the scores differ so little that their standard error is rounded to 0
        return UNKNOWN
    low, high = stats.t.interval(confidence, len(values) - 1, loc=values.mean(), scale=error)
    least, largest = within
    return max(float(low), least), min(float(high), largest)


Played = TrainingOutcome | Favourite
Runs = Mapping[int, Played]
"""Evaluations of one method in one environment, by seed."""


@dataclass(frozen=True)
class Scores:
    """Scores of one method in one environment, either with its last policies or with its favourites.

    Attributes:
        success: summary of the success rates; None if the environment has no goal.
        returns: summary of the mean returns.
        of_success, of_returns: mean success rate and mean return, divided by those of the oracle, both over the seeds
            that both have. Last policies are compared with last policies, and favourites with favourites. Both
            fractions are None if the oracle is missing or has not learnt. A fraction is None if its divisor is not
            positive. Without a goal, `of_success` is None.
        ahead: summary of the reference's score (`Standing.reference`) minus this method's score, over their common
            seeds; None for the reference, or without common seeds. In the environment of a task, it is the task's
            score.
        length: mean steps of an episode.
        components: mean of each component of the environment's reward, by name.
        task: summary of the scores in the comparison's task (`TrainingOutcome.score`); None if a run has none.
    """

    success: SeedSummary | None
    returns: SeedSummary
    of_success: float | None
    of_returns: float | None
    ahead: SeedSummary | None
    length: float
    components: dict[str, float]
    task: SeedSummary | None = None

    @property
    def score(self) -> SeedSummary:
        """Summary of the score: the success rate, or the return if there is no goal."""
        return self.success or self.returns


@dataclass(frozen=True)
class Standing:
    """Results of one method in one environment.

    Attributes:
        method, environment: name of the method and of the environment.
        transfer: whether the reward was recovered in another environment.
        seeds: seeds of the runs with a result.
        failed: number of runs that failed without a result in this environment.
        success: whether the score is the success rate instead of the return.
        last: scores of the last policies; None if no run has a result here.
        favourite: scores of the favourites; None if a run has no favourite, or if no run has a result here.
        choosing: environment steps for the choice of the favourite, as a mean over the runs. These are not steps of
            training. None if `favourite` is None.
        epic: mean EPIC distance between recovered and true reward, over the runs with a distance; None without any.
        rate: mean environment steps of training per second; None if unknown.
        note: a remark for the tables; "" if there is none.
        reference: name of the method that the others are compared with: `grace`, else `random`, else the first one.
    """

    method: str
    environment: str
    transfer: bool
    seeds: tuple[int, ...]
    failed: int
    success: bool
    last: Scores | None
    favourite: Scores | None
    choosing: float | None
    epic: float | None
    rate: float | None
    note: str = ""
    reference: str = OURS


def standings(
    results: Sequence[JobResult], methods: Sequence[str], oracle: Oracle, carried: Oracle = Oracle()
) -> tuple[Standing, ...]:
    """Standings for each environment and method, with the methods in the given order.

    Args:
        results: results of the jobs so far.
        methods: names of the methods of the comparison.
        oracle: the rule that decides whether PPO on the true reward has learnt.
        carried: the same for transfer environments, in which the experts' returns say nothing.
    """
    places: dict[str, bool] = {}
    for result in results:
        for outcome in result.outcomes:
            places.setdefault(outcome.environment, outcome.transfer)
    found: list[Standing] = []
    for environment, transfer in sorted(places.items(), key=lambda place: place[1]):
        runs = {method: _runs(results, method, environment) for method in methods}
        known = carried if transfer else oracle
        table = _Table(environment, {name: each for name, each in runs.items() if each}, known, _reference(methods))
        for method in methods:
            own = [each for each in results if each.method == method and each.seed not in runs[method]]
            failed = sum(1 for each in own if each.failure)
            if runs[method] or failed:
                found.append(table.standing(method, transfer, failed))
    return tuple(found)


def _reference(methods: Sequence[str]) -> str:
    """The method that the others are compared with: `grace`, else random search, else the first but the oracle."""
    others = [name for name in methods if name != ORACLE]
    return next((name for name in (OURS, "random") if name in methods), others[0] if others else "")


def _runs(results: Sequence[JobResult], method: str, environment: str) -> dict[int, TrainingOutcome]:
    return {
        result.seed: outcome
        for result in results
        if result.method == method
        for outcome in result.outcomes
        if outcome.environment == environment
    }


class _Table:
    """The runs of all methods in one environment.

    Args:
        environment: name of the environment.
        runs: outcomes by method and seed. Methods without outcomes are left out.
        oracle: the rule that decides whether PPO on the true reward has learnt.
        reference: name of the method that the others are compared with.
    """

    def __init__(
        self, environment: str, runs: Mapping[str, Mapping[int, TrainingOutcome]], oracle: Oracle, reference: str
    ) -> None:
        self._environment, self._oracle, self._reference = environment, oracle, reference
        self._runs = runs
        self._last: dict[str, Runs] = {method: dict(each) for method, each in runs.items()}
        chosen = {
            method: {seed: one.favourite for seed, one in each.items() if one.favourite is not None}
            for method, each in runs.items()
        }
        self._favourites: dict[str, Runs] = {
            method: dict(each) for method, each in chosen.items() if len(each) == len(runs[method])
        }
        outcomes = [one for each in runs.values() for one in each.values()]
        played: list[Played] = [*outcomes, *(one.favourite for one in outcomes if one.favourite is not None)]
        self._success = all(one.success is not None for one in played)
        self._task = all(one.score is not None for one in played)
        self._unpaid = all(one.mean == one.deviation == 0 for one in played)

    def standing(self, method: str, transfer: bool, failed: int) -> Standing:
        """The standing of one method."""
        runs = self._runs.get(method, {})
        known = [each.favourite.choosing for each in runs.values() if each.favourite is not None]
        favourite = self._scores(method, self._favourites)
        return Standing(
            method,
            self._environment,
            transfer,
            tuple(runs),
            failed,
            self._success,
            self._scores(method, self._last),
            favourite,
            None if favourite is None else _mean(known),
            _mean([each.epic for each in runs.values()]),
            _mean([each.rate for each in runs.values()]),
            self._note(),
            self._reference,
        )

    def _scores(self, method: str, chosen: Mapping[str, Runs]) -> Scores | None:
        """Scores of one method.

        Args:
            method: name of the method.
            chosen: evaluations by method, either of the last policies or of the favourites.
        """
        runs = chosen.get(method)
        if not runs:
            return None
        names = sorted({name for each in runs.values() for name in each.components})
        best = chosen.get(ORACLE, {})
        quoted = bool(best) and not self._unpaid and not self._doubt(chosen)
        theirs = chosen.get(self._reference, {}) if method != self._reference else {}
        common = {seed: each for seed, each in runs.items() if seed in best}
        bests = {seed: best[seed] for seed in common}
        scored = [each.score for each in runs.values() if each.score is not None]
        ahead = [self._compared(theirs[seed]) - self._compared(each) for seed, each in runs.items() if seed in theirs]
        bounds = (-1.0, 1.0) if self._success and not self._task else ANYWHERE
        return Scores(
            _success(runs) if self._success else None,
            summarise([each.mean for each in runs.values()]),
            _fraction(_rates(common), _rates(bests)) if quoted and common and self._success else None,
            _fraction(_returns(common), _returns(bests)) if quoted and common else None,
            summarise(ahead, within=bounds) if ahead else None,
            float(np.mean([each.length for each in runs.values()])),
            {name: float(np.mean([each.components.get(name, 0.0) for each in runs.values()])) for name in names},
            summarise(scored) if len(scored) == len(runs) else None,
        )

    def _note(self) -> str:
        """The reason why the oracle's last policies, its favourites or both do not count as trained.

        Tables show no fractions of the scores of these policies. The result is "" without such a reason, or without an
        oracle. An oracle learns nothing if its environment pays nothing.
        """
        if self._unpaid and ORACLE in self._runs and not self._success:
            return (
                f"{self._environment}: the environment's own reward sums to 0 in every episode of every policy, so "
                "returns tell nothing, and ppo-true had nothing to learn from"
            )
        last, favourites = self._doubt(self._last), self._doubt(self._favourites)
        if bool(last) == bool(favourites) or ORACLE not in self._favourites:
            return last
        return f"{last} for last policies" if last else f"{favourites} for favourites"

    def _doubt(self, chosen: Mapping[str, Runs]) -> str:
        """The reason to omit fractions of the oracle's score; "" if there is none. `chosen` is as in `_scores`."""
        best = chosen.get(ORACLE, {})
        if not best:
            return ""
        mean = float(np.mean([self._score(each) for each in best.values()]))
        return self._oracle.doubt(self._environment, mean, success=self._success)

    def _compared(self, one: Played) -> float:
        """The number by which methods are compared: the task's score, else success, else return."""
        return one.score if self._task and one.score is not None else self._score(one)

    def _score(self, one: Played) -> float:
        return one.success if self._success and one.success is not None else one.mean


def _success(runs: Runs) -> SeedSummary:
    return summarise(_rates(runs), within=(0.0, 1.0))


def _rates(runs: Runs) -> list[float]:
    return [each.success for each in runs.values() if each.success is not None]


def _returns(runs: Runs) -> list[float]:
    return [each.mean for each in runs.values()]


def _fraction(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The mean of `ours` divided by the mean of `theirs`; None if the divisor is not positive."""
    whole = float(np.mean(theirs))
    return float(np.mean(ours)) / whole if whole > 0 else None


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
