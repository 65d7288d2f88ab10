"""Metrics of a reward over whole episodes, with 95 % confidence intervals over episodes.

Metrics over states can hide failures. A few wrong states among thousands hardly change an accuracy, but every episode
may contain a wrong state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import LabelRule
from grace_irl.evaluate.ranks import average_ranks
from grace_irl.evaluate.separation import EpisodeMetrics, Measurement

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]

Z = 1.959963984540054
"""The 0.975 quantile of the standard normal distribution."""


@dataclass(frozen=True, eq=False)
class EpisodeLabels:
    """Labels of n rows, grouped by m episodes. A row is a state or, for rewards of transitions, a transition.

    Attributes:
        rule: the label rule.
        starts: `(m,)` first row of each episode.
        positive: `(n,)` True for positive rows.
        before: `(n,)` True for rows of expert episodes before the episode's first positive row.
        expert: `(m,)` True for episodes with a positive row.
        returns: `(m,)` true returns, or None if an episode lacks true rewards.
    """

    rule: LabelRule
    starts: NDArray[np.int64]
    positive: Marks
    before: Marks
    expert: Marks
    returns: Floats | None

    @classmethod
    def of(cls, items: Sequence[Labelled], rule: LabelRule, *, takes_action: bool) -> EpisodeLabels:
        """The episodes of labelled trajectories, without trajectories that have no row.

        The rows are in the order of `grace_irl.evaluate.columns.columns`.
        """
        first = 1 if takes_action else 0
        marks = [item.positive[first:] for item in items]
        kept = [n for n, each in enumerate(marks) if len(each)]
        marks = [marks[n] for n in kept]
        lengths = np.array([len(each) for each in marks], dtype=np.int64)
        goals = [int(each.argmax()) if each.any() else 0 for each in marks]
        before = [np.arange(len(each)) < goal for each, goal in zip(marks, goals, strict=True)]
        rewards = [items[n].trajectory.rewards for n in kept]
        known = [float(each.sum()) for each in rewards if each is not None]
        return cls(
            rule,
            np.cumsum(lengths) - lengths,
            np.concatenate([*marks, np.zeros(0, np.bool_)]),
            np.concatenate([*before, np.zeros(0, np.bool_)]),
            np.array([bool(each.any()) for each in marks], dtype=np.bool_),
            np.array(known) if len(known) == len(rewards) else None,
        )

    @classmethod
    def by_task(cls, items: Sequence[Labelled], rule: LabelRule, *, takes_action: bool) -> dict[str, EpisodeLabels]:
        """The episodes of each task."""
        tasks = dict.fromkeys(item.task for item in items)
        return {
            name: cls.of([item for item in items if item.task == name], rule, takes_action=takes_action)
            for name in tasks
        }

    def metrics(self, values: Floats, threshold: float) -> EpisodeMetrics:
        """Measure rewards `(n,)` at a threshold."""
        return self.payments(values, threshold).metrics()

    def payments(self, values: Floats, threshold: float) -> EpisodePayments:
        """Summarise rewards `(n,)` per episode, at a threshold."""
        if not len(self.expert):
            return EpisodePayments(self.rule, self.expert)
        if self.rule == "all":
            lengths = np.diff([*self.starts, len(values)])
            sums = np.add.reduceat(values, self.starts)
            return EpisodePayments(self.rule, self.expert, sums=sums, means=sums / lengths, returns=self.returns)
        paid = values > threshold
        hit, early, some = (self._any(paid & rows) for rows in (self.positive, self.before, np.True_))
        return EpisodePayments(self.rule, self.expert, hit, early, some)

    def _any(self, rows: Marks) -> Marks:
        """For each episode, whether any row is marked, `(m,)`."""
        found: Marks = np.logical_or.reduceat(rows, self.starts)
        return found


@dataclass(frozen=True, eq=False)
class EpisodePayments:
    """A summary of a reward in m episodes, made by `EpisodeLabels.payments`.

    A row is *paid* if its reward exceeds the argument `threshold` of `EpisodeLabels.payments`.

    Attributes:
        rule: the label rule.
        expert: `(m,)` True for episodes with a positive row.
        hit: `(m,)` whether a positive row is paid.
        early: `(m,)` whether a row before the first positive row is paid.
        paid: `(m,)` whether any row is paid.
        sums, means: `(m,)` sum and mean of the rewards.
        returns: `(m,)` true returns; None if they are not known.

    `hit`, `early` and `paid` are None with rule "all". `sums`, `means` and `returns` are None with rules "last" and
    "goal". Without episodes, `hit`, `early`, `paid`, `sums`, `means` and `returns` are None.
    """

    rule: LabelRule
    expert: Marks
    hit: Marks | None = None
    early: Marks | None = None
    paid: Marks | None = None
    sums: Floats | None = None
    means: Floats | None = None
    returns: Floats | None = None

    @classmethod
    def of(cls, parts: Sequence[EpisodePayments], rule: LabelRule) -> EpisodePayments:
        """Join the summaries of several sets of episodes. Sets without episodes are left out."""
        parts = [each for each in parts if len(each.expert)]
        if not parts:
            return cls(rule, np.zeros(0, np.bool_))
        others = ([getattr(each, name) for each in parts] for name in _OPTIONAL)
        joined = (None if any(each is None for each in found) else np.concatenate(found) for found in others)
        return cls(rule, np.concatenate([each.expert for each in parts]), *joined)

    def metrics(self) -> EpisodeMetrics:
        """Metrics over the episodes, with intervals."""
        experts = int(self.expert.sum())
        negatives = len(self.expert) - experts
        if self.rule == "all":
            return EpisodeMetrics(experts, negatives, outranks=self._outranks(), correlation=self._correlation())
        shares = ((self.hit, self.expert), (self.early, self.expert), (self.paid, ~self.expert))
        return EpisodeMetrics(
            experts, negatives, *(None if marks is None else _share(marks[side]) for marks, side in shares)
        )

    def _outranks(self) -> Measurement | None:
        if self.means is None:
            return None
        experts, negatives = self.means[self.expert], np.sort(self.means[~self.expert])
        if not len(experts) or not len(negatives):
            return None
        # Means of equal rewards differ by rounding, if the episodes differ in length. They are ties.
        tie = 1e-12 * np.abs(self.means).max()
        wins = np.searchsorted(negatives, experts - tie, "left") + np.searchsorted(negatives, experts + tie, "right")
        return outranking(float(wins.sum()) / (2 * len(experts) * len(negatives)), len(experts), len(negatives))

    def _correlation(self) -> Measurement | None:
        if self.sums is None or self.returns is None or len(self.returns) < 3:
            return None
        ours, true = average_ranks(self.sums), average_ranks(self.returns)
        if np.ptp(ours) == 0 or np.ptp(true) == 0:
            return None
        return correlated(float(np.corrcoef(ours, true)[0, 1]), len(true))


_OPTIONAL = ("hit", "early", "paid", "sums", "means", "returns")
"""The attributes of `EpisodePayments` that may be None, in order."""


def share(value: float, of: int) -> Measurement | None:
    """The share `value` among `of` episodes, with Wilson's score interval; None if `of` is 0.

    The value may also be a mean over episodes of numbers between 0 and 1. The interval is then a little too wide,
    because such a mean varies less than a share of episodes.
    """
    if not of:
        return None
    weight = Z * Z / of
    middle = (value + weight / 2) / (1 + weight)
    half = math.sqrt(weight * value * (1 - value) + weight * weight / 4) / (1 + weight)
    return Measurement(value, max(middle - half, 0.0), min(middle + half, 1.0))


@lru_cache(maxsize=4096)
def outranking(value: float, experts: int, negatives: int) -> Measurement:
    """The probability that an expert episode outranks a negative episode (an AUC), with its interval.

    The interval follows method 5 of Newcombe (2006, Statistics in Medicine 25). It holds the probabilities p whose
    distance from `value` is at most `Z` standard errors. The standard error at p follows Hanley and McNeil (1982), with
    both sample sizes in the numerator replaced by their mean.
    """
    more = (experts + negatives) / 2 - 1

    def beyond(p: float) -> float:
        variance = p * (1 - p) * (1 + more * ((1 - p) / (2 - p) + p / (1 + p))) / (experts * negatives)
        return (p - value) ** 2 - Z * Z * variance

    edge = 1e-9  # the variance is 0 at p = 0 and p = 1, where `beyond` may have further roots
    low = 0.0 if value <= edge else brentq(beyond, 0.0, min(value, 1 - edge))
    high = 1.0 if value >= 1 - edge else brentq(beyond, max(value, edge), 1.0)
    return Measurement(value, float(low), float(high))


def correlated(value: float, episodes: int) -> Measurement:
    """Spearman's rank correlation, with its interval by Bonett and Wright (2000), on the scale of Fisher's z.

    z is infinite for a correlation of ±1. Then the interval is computed for the value halfway between ±1 and the next
    possible correlation. With at most three episodes, the interval is [-1, 1].
    """
    if episodes <= 3:
        return Measurement(value, -1.0, 1.0)
    most = 1 - 6 / (episodes * (episodes * episodes - 1))
    inner = min(max(value, -most), most)
    reach = Z * math.sqrt((1 + inner * inner / 2) / (episodes - 3))
    low, high = math.tanh(math.atanh(inner) - reach), math.tanh(math.atanh(inner) + reach)
    return Measurement(value, min(low, value), max(high, value))


def _share(episodes: Marks) -> Measurement | None:
    """The share of marked episodes, with its interval."""
    return share(float(episodes.mean()), len(episodes)) if len(episodes) else None
