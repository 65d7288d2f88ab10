"""Terms of an additive reward, and the candidate terms for given data.

A term is a simple function of numbers of the state. Each term is available twice: as a function on arrays, for the
fit, and as Python text, for the program of the reward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Shape = Literal["minus", "above", "below", "off", "times", "against", "and", "outside"]
FORMULAS: dict[Shape, str] = {
    "minus": "lambda a, b: a - b",
    "above": "lambda a, b: max(0.0, a - b)",
    "below": "lambda a, b: max(0.0, b - a)",
    "off": "lambda a, b: abs(a - b)",
    "times": "lambda a, b: a * b",
    "against": "lambda a, b: abs(a - b)",
    "and": "lambda a, b: abs(a + b)",
}
"""Python for a term of each shape but "outside". `a` is a number and `b` the threshold or the second number. Both are
standardised."""
PAIRS: tuple[Shape, ...] = ("times", "against", "and")
"""Shapes with two numbers."""
RANGE = (0.005, 0.995)
"""The range of a number lies between these quantiles of the experts' values. All terms except "outside" clip values to
this range."""
FAR = 5.0
"""Limit on two distances, in standard deviations of the experts' values. Without it, one extreme value could outweigh
all other terms.

* The distance of a value from its range, in the term "outside".
* The distance of the ends of a range from the experts' mean."""


@dataclass(frozen=True)
class Term:
    """A continuous function of one or two numbers of the state, in units of the experts' standard deviations.

    Let z = (x - centre) / spread for a number x that is clipped to its range, and t = (threshold - centre) / spread:

    * minus: z - t.  * above: max(0, z - t).  * below: max(0, t - z).  * off: |z - t|.
    * times: z_1 z_2.  * against: |z_1 - z_2|.  * and: |z_1 + z_2|.

    Because of the clipping, these terms do not grow outside the experts' range. One more shape measures the distance
    from the range:

    * outside: the sum over numbers of the distance from x to its range, in spreads, limited to `FAR` for each number.

    Attributes:
        shape: name of the function.
        fields: indices of the numbers that the term reads: one or two; for "outside" one or more.
        centres, spreads: the experts' mean and standard deviation of each number, in the number's unit.
        ranges: lowest and highest value in the range of each number.
        threshold: threshold of a shape with one number, in the number's unit.
    """

    shape: Shape
    fields: tuple[int, ...]
    centres: tuple[float, ...]
    spreads: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]
    threshold: float = 0.0

    def value(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """The values `(N,)` of the term in N states, which are given by their numbers `(N, n)`."""
        numbers, spreads = states[:, list(self.fields)], np.array(self.spreads)
        within = np.clip(numbers, *np.array(self.ranges).T)
        z = (within - np.array(self.centres)) / spreads
        t = (self.threshold - self.centres[0]) / self.spreads[0]
        match self.shape:
            case "minus":
                out = z[:, 0] - t
            case "above":
                out = np.maximum(z[:, 0] - t, 0.0)
            case "below":
                out = np.maximum(t - z[:, 0], 0.0)
            case "off":
                out = np.abs(z[:, 0] - t)
            case "times":
                out = z[:, 0] * z[:, 1]
            case "against":
                out = np.abs(z[:, 0] - z[:, 1])
            case "and":
                out = np.abs(z[:, 0] + z[:, 1])
            case "outside":
                out = np.minimum(np.abs(numbers - within) / spreads, FAR).sum(axis=1)
        return np.asarray(out, dtype=np.float64)

    @property
    def rounding(self) -> float:
        """Approximate maximum change of the term if all its numbers are rounded to float32."""
        ends = np.abs(np.array(self.ranges)).max(axis=1)
        return float((EPSILON * ends / np.array(self.spreads)).sum())

    def name(self, names: Sequence[str]) -> str:
        """A short name of the term, such as "speed above 1.25" or "height times speed"."""
        if self.shape == "outside":
            return "outside the range"
        one, *other = (names[field] for field in self.fields)
        return f"{one} {self.shape} {other[0] if other else self.value_shown}"

    @property
    def value_shown(self) -> str:
        """The threshold as text."""
        return shown(self.threshold, self.spreads[0], 4)


def shown(value: float, unit: float, digits: int) -> str:
    """Format a number with `digits` significant digits, or more if `unit` is far smaller than the number.

    Args:
        value: the number.
        unit: scale of the differences that must stay visible, for example the standard deviation of such numbers.
        digits: number of digits.
    """
    needed = math.ceil(math.log10(abs(value) / unit)) if abs(value) > unit else 0
    return f"{value:.{min(17, digits + needed)}g}"


HINGES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Quantiles of the experts' values that become thresholds of the shapes "above" and "below"."""
EPSILON = float(np.finfo(np.float32).eps)
"""Maximum relative difference between a number and its neighbour in float32."""
RESOLUTION = 256
"""Minimum ratio of the standard deviation of a number, or of a term, to the change that one rounding to float32 causes.
At this ratio, a relative change of all states by 1e-7 moves rewards by about 0.7 % of their standard deviation."""


def vocabulary(
    experts: NDArray[Any],
    everything: NDArray[Any],
    max_pairs: int,
    max_watched: int = 0,
    conditions: NDArray[np.bool_] | None = None,
    watchable: NDArray[np.bool_] | None = None,
) -> list[Term]:
    """Build the candidate terms for states that are given by their n numbers.

    Numbers and terms are left out if they vary so little that rounding to float32 would move the reward. A threshold is
    left out if it is too close to the next lower threshold.

    Args:
        experts: (N, n) numbers of the positive states. This module calls them the experts' states.
        everything: (M, n) numbers of all states, the positive ones included.
        max_pairs: maximum number of the n numbers that are combined in pairs: those with the largest effect size.
        max_watched: maximum number of the n numbers that the term "outside" reads. This term is the first of the
            result. With 0 there is no such term.
        conditions: (n,) whether each number is a condition; None if no number is. Terms read a condition only in a pair
            with a number that is no condition.
        watchable: (n,) whether the term "outside" may read each number; None if it may read all except conditions.
    """
    rounding, grain = (RESOLUTION * EPSILON * np.abs(rows).max(axis=0) for rows in (everything, experts))
    centre, spread, overall = experts.mean(axis=0), experts.std(axis=0), everything.std(axis=0)
    quantiles = np.quantile(experts, RANGE, axis=0)
    varied = (spread > 1e-6 * np.maximum(overall, 1e-12)) & (np.ptp(quantiles, axis=0) > grain)
    spread = np.where(varied, np.maximum(spread, grain), np.maximum(spread, overall))
    # A number that is constant for experts gets a wide range, because any difference from the constant may matter.
    quantiles = np.where(varied, quantiles, [[-np.inf], [np.inf]])
    ranges = np.clip(quantiles, centre - FAR * spread, centre + FAR * spread).T.tolist()
    usable = [i for i in range(experts.shape[1]) if overall[i] > rounding[i]]
    by_effect = sorted(usable, key=lambda i: -_effect(experts[:, i], everything[:, i]))
    own = np.ones(experts.shape[1], dtype=np.bool_) if conditions is None else ~conditions

    def term(shape: Shape, *fields: int, threshold: float = 0.0) -> Term:
        chosen = list(fields)
        middles, units = tuple(centre[chosen].tolist()), tuple(spread[chosen].tolist())
        return Term(shape, fields, middles, units, tuple((ranges[i][0], ranges[i][1]) for i in fields), threshold)

    seen = own if watchable is None else own & watchable
    watched = sorted([i for i in by_effect if seen[i]][:max_watched])
    terms = []
    for i in usable:
        if own[i]:
            terms += [term(shape, i, threshold=float(centre[i])) for shape in ("minus", "off")]
            for threshold in _apart(np.quantile(experts[:, i], HINGES), grain[i]):
                terms += [term(shape, i, threshold=threshold) for shape in ("above", "below")]
    for i, j in combinations(by_effect[:max_pairs], 2):
        if own[i] or own[j]:
            terms += [term(shape, min(i, j), max(i, j)) for shape in PAIRS]
    terms = [one for one in terms if one.value(everything).std() > RESOLUTION * one.rounding]
    return [term("outside", *watched), *terms] if watched else terms


def _apart(values: NDArray[Any], gap: float) -> list[float]:
    """The different values in ascending order. Values within `gap` of the last kept value are left out."""
    kept: list[float] = []
    for value in np.unique(values).tolist():
        if not kept or value - kept[-1] > gap:
            kept.append(value)
    return kept


def _effect(experts: NDArray[Any], everything: NDArray[Any]) -> float:
    """Effect size of a number: how well it tells the experts' states from all states.

    The effect size is the larger of two values of Cohen's d. One is of the number itself, the other is of the number's
    distance to the experts' mean.
    """
    off = np.abs(everything - experts.mean())
    own = np.abs(experts - experts.mean())
    effects = []
    for one, other in ((experts, everything), (own, off)):
        pooled = np.sqrt((one.var() + other.var()) / 2)
        effects.append(abs(one.mean() - other.mean()) / pooled if pooled > 0 else 0.0)
    return float(max(effects))
