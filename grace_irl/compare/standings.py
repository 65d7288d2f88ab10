"""Standings of methods over their seeds: with the last policy of each training, and with its favourite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from grace_irl.compare.folder import Favourite, JobResult, TrainingOutcome
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.rl.matching import split_id

RETURNS = {"Hopper": 2_000.0, "Walker2d": 2_000.0, "HalfCheetah": 1_000.0}
"""Mean returns that the oracle must pass. A Hopper or Walker2d that stands still earns about 1,000 in 1,000 steps for
being alive; a HalfCheetah that does not move earns 0."""
SUCCESS = 0.5
"""Success rate that the oracle must reach if there is a goal."""
OF_EXPERTS = 0.5
"""Share of the experts' mean return that it must reach elsewhere."""


@dataclass(frozen=True)
class Oracle:
    """Rule by which PPO on the true reward counts as having learnt.

    Attributes:
        experts: mean return of the experts whose rewards were recorded; None if none were.
    """

    experts: float | None = None

    @classmethod
    def of(cls, demonstrations: Demonstrations) -> Oracle:
        """From demonstrations."""
        experts = [item.trajectory for item in demonstrations.select(role="expert")]
        totals = [float(each.rewards.sum()) for each in experts if each.rewards is not None]
        return cls(float(np.mean(totals)) if totals else None)

    def doubt(self, environment: str, score: float, *, success: bool) -> str:
        """The reason why no fraction of an oracle's mean score is quoted, in one line; "" if one is.

        Args:
            environment: the one of its training.
            score: its mean over runs.
            success: whether that is a success rate and no return.
        """
        if success:
            least, why = SUCCESS, "success"
        elif (name := split_id(environment)[0]) in RETURNS:
            least, why = RETURNS[name], "return"
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
"""Runs below which `TRIM` cuts nothing, so that the interquartile mean is the mean."""
UNKNOWN: Interval = (float("nan"), float("nan"))
"""The interval of a single run, or of equal ones: they say nothing of how far another run may be."""
ANYWHERE: Interval = (-float("inf"), float("inf"))


@dataclass(frozen=True)
class SeedSummary:
    """Scores of several runs (seeds) of one method.

    Attributes:
        runs: number of runs.
        mean: of their scores.
        deviation: standard deviation between runs (n - 1); NaN for one run.
        interval: Student t interval of the mean over runs; `UNKNOWN` for one run and for equal ones.
        iqm: interquartile mean; None for fewer than `IQM_RUNS` runs, of which it is the mean.
    """

    runs: int
    mean: float
    deviation: float
    interval: Interval
    iqm: float | None


def summarise(
    scores: Sequence[float] | Floats, *, confidence: float = CONFIDENCE, within: Interval = ANYWHERE
) -> SeedSummary:
    """Sums up the scores of one method, or the differences between two methods, seed by seed.

    Args:
        scores: one for each run.
        confidence: of the interval.
        within: least and largest mean that there can be, such as 0 and 1 for success rates; the interval ends there.

    Raises:
        InputError: no scores, or scores that are not finite.
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
    """Mean of what is left when a quarter of the scores is cut from each end; of 5 scores, one from each end."""
    return stats.trim_mean(scores, TRIM, axis=axis)


def _student(values: Floats, confidence: float, within: Interval) -> Interval:
    error = float(stats.sem(values))
    if error == 0:  # of scores whose differences no float can hold
        return UNKNOWN
    low, high = stats.t.interval(confidence, len(values) - 1, loc=values.mean(), scale=error)
    least, largest = within
    return max(float(low), least), min(float(high), largest)


ORACLE = "ppo-true"
OURS = "grace"

Played = TrainingOutcome | Favourite
Runs = Mapping[int, Played]
"""Of one method in one environment, by seed."""


@dataclass(frozen=True)
class Scores:
    """One policy of each run: the last ones, or the favourites.

    Attributes:
        success: success rates over the runs; None if the environment has no goal.
        returns: mean returns over the runs.
        of_success, of_returns: the mean of either as a fraction of that of PPO on the true reward, by the same choice
            of policies; None if that has not learnt, is not there, or is not positive.
        ahead: by how much `grace` is ahead in the score, seed by seed; None for `grace`, or without common seeds.
        length: mean steps of an episode.
        components: means over the runs of each component of the environment's reward.
    """

    success: SeedSummary | None
    returns: SeedSummary
    of_success: float | None
    of_returns: float | None
    ahead: SeedSummary | None
    length: float
    components: dict[str, float]

    @property
    def score(self) -> SeedSummary:
        """The scores: success rates, or returns if there is no goal."""
        return self.success or self.returns


@dataclass(frozen=True)
class Standing:
    """One method in one environment.

    Attributes:
        method, environment: which.
        transfer: whether its reward was recovered elsewhere.
        seeds: of the runs that ended well.
        failed: number of runs that did not.
        success: whether the score is of success rates, else of returns.
        last: with the last policy of each run; None if all failed.
        favourite: with the policy that each training's own signal pays most; None if one of the runs has none.
        choosing: mean environment steps played to choose, which are none of training; None as `favourite`.
        epic: mean EPIC distance over the runs that have one.
        rate: mean environment steps a second.
        note: a remark for the tables; "" for none.
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


def standings(results: Sequence[JobResult], methods: Sequence[str], oracle: Oracle) -> tuple[Standing, ...]:
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
        table = _Table(environment, {name: each for name, each in runs.items() if each}, oracle)
        for method in methods:
            failed = sum(1 for each in results if each.method == method and each.failure)
            if runs[method] or (failed and not transfer):
                found.append(table.standing(method, transfer, failed))
    return tuple(found)


def _runs(results: Sequence[JobResult], method: str, environment: str) -> dict[int, TrainingOutcome]:
    return {
        result.seed: outcome
        for result in results
        if result.method == method
        for outcome in result.outcomes
        if outcome.environment == environment
    }


class _Table:
    """All methods in one environment.

    Args:
        environment: which.
        runs: of each method that has any.
        oracle: says when PPO on the true reward has learnt.
    """

    def __init__(self, environment: str, runs: Mapping[str, Mapping[int, TrainingOutcome]], oracle: Oracle) -> None:
        self._environment, self._oracle = environment, oracle
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

    def standing(self, method: str, transfer: bool, failed: int) -> Standing:
        """Of one method."""
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
        )

    def _scores(self, method: str, chosen: Mapping[str, Runs]) -> Scores | None:
        """Of one method, all methods' policies being chosen alike."""
        runs = chosen.get(method)
        if not runs:
            return None
        names = sorted({name for each in runs.values() for name in each.components})
        best = chosen.get(ORACLE, {})
        quoted = bool(best) and not self._doubt(chosen)
        ours = chosen.get(OURS, {}) if method != OURS else {}
        ahead = [self._score(ours[seed]) - self._score(each) for seed, each in runs.items() if seed in ours]
        return Scores(
            _success(runs) if self._success else None,
            summarise([each.mean for each in runs.values()]),
            _fraction(_rates(runs), _rates(best)) if quoted and self._success else None,
            _fraction(_returns(runs), _returns(best)) if quoted else None,
            summarise(ahead, within=(-1.0, 1.0) if self._success else ANYWHERE) if ahead else None,
            float(np.mean([each.length for each in runs.values()])),
            {name: float(np.mean([each.components.get(name, 0.0) for each in runs.values()])) for name in names},
        )

    def _note(self) -> str:
        """Reasons why fractions of the oracle are not quoted."""
        last, favourites = self._doubt(self._last), self._doubt(self._favourites)
        if bool(last) == bool(favourites) or ORACLE not in self._favourites:
            return last
        return f"{last} for last policies" if last else f"{favourites} for favourites"

    def _doubt(self, chosen: Mapping[str, Runs]) -> str:
        """The reason why no fraction of the oracle is quoted; "" if one is, or if there is no oracle."""
        best = chosen.get(ORACLE, {})
        if not best:
            return ""
        mean = float(np.mean([self._score(each) for each in best.values()]))
        return self._oracle.doubt(self._environment, mean, success=self._success)

    def _score(self, one: Played) -> float:
        return one.success if self._success and one.success is not None else one.mean


def _success(runs: Runs) -> SeedSummary:
    return summarise(_rates(runs), within=(0.0, 1.0))


def _rates(runs: Runs) -> list[float]:
    return [each.success for each in runs.values() if each.success is not None]


def _returns(runs: Runs) -> list[float]:
    return [each.mean for each in runs.values()]


def _fraction(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """Of means; None if the other one is not positive."""
    whole = float(np.mean(theirs))
    return float(np.mean(ours)) / whole if whole > 0 else None


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
