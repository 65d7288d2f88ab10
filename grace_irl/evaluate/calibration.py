"""Calibration: the scale > 0 and offset that maximise the fitness of a reward (docs/fitness.md).

The fitness of GRACE depends on the scale of r. With D = sigmoid(scale * r + offset - log pi) and the best
scale and offset, it depends only on what r tells apart, so calibrated f is the same for r and a * r + b with
a > 0. The problem is concave in both. What its optimum looks like depends on how the two sides lie (`Edges`):

- They overlap, so that some negative state is valued above some expert one: the optimum is finite, and lies
  below a scale that is known beforehand (`_largest_scale`).
- They are separated: f rises to 0 for ever with the scale. The scale is such that `MARGIN` logits lie between
  the smallest expert and the largest negative reward, with the offset in the middle: f is then within 2e-13 of
  0, whatever the other rewards are. A unit such as the standard deviation would make f depend on outliers.
- They touch in one value: the same, with the value that is next to it.
- r prefers negatives, or is constant: the best scale is 0. A calibration never turns a reward around, so the
  scale is as good as 0 and f as good as that of a constant, 2 log(1/2) if log pi is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

from grace_irl.evaluate.discriminator import Objective
from grace_irl.evaluate.evaluation import EQUAL


@dataclass(frozen=True)
class Edges:
    """Extremes of the rewards of an objective with both sides.

    Attributes:
        low, high: the smallest and the largest reward.
        expert: the smallest reward of a positive state.
        negative: the largest reward of a negative state.
        low_log_pi, high_log_pi: the smallest and the largest log pi; 0 if log pi is 0 everywhere.
        lightest: the smallest weight of a row.
    """

    low: float
    high: float
    expert: float
    negative: float
    low_log_pi: float
    high_log_pi: float
    lightest: float

    @classmethod
    def of(cls, objective: Objective) -> Edges:
        """The edges of these rewards."""
        groups = objective.groups
        log_pi = [g.log_pi for g in groups if g.log_pi is not None]
        return cls(
            low=min(float(g.x.min()) for g in groups),
            high=max(float(g.x.max()) for g in groups),
            expert=min(float(g.x.min()) for g in groups if g.sign > 0),
            negative=max(float(g.x.max()) for g in groups if g.sign < 0),
            low_log_pi=min((float(pi.min()) for pi in log_pi), default=0.0),
            high_log_pi=max((float(pi.max()) for pi in log_pi), default=0.0),
            lightest=min(float(np.min(g.weight)) for g in groups),
        )

    @property
    def constant(self) -> bool:
        """Whether all rewards are equal."""
        return self.low == self.high

    @property
    def middle(self) -> float:
        """Halfway between the smallest expert and the largest negative reward."""
        return self.expert / 2 + self.negative / 2

    @property
    def spread_log_pi(self) -> float:
        """The largest log pi less the smallest."""
        return self.high_log_pi - self.low_log_pi

    @property
    def middle_log_pi(self) -> float:
        """Halfway between the two."""
        return (self.low_log_pi + self.high_log_pi) / 2


def nearest(objective: Objective, value: float) -> float:
    """The distance from `value` to the reward next to it that is another one; there must be one."""
    found = float("inf")
    for group in objective.groups:
        away = np.abs(group.x - value)
        found = min(found, float(np.min(away, where=away > 0, initial=np.inf)))
    return found


Floats = NDArray[np.float64]

MARGIN = 60.0  # logits between separated sides: f = -2 log(1 + exp(-30)) = -2e-13 for a reward of two values
MIN_SCALE = 1e-10  # logits over the whole range of a reward that tells nothing: f is within EQUAL of a constant's
MAX_SCALE = 1e300  # logits per unit of reward: rewards closer than 1e-298 are as good as equal
EDGE = 40.0  # |logit| beyond which a sigmoid is 0 or 1 to double precision
HUGE, TINY = 1e150, 1e-150  # largest |reward| beyond which squares leave the range of a double
FAR = 1e30  # overlaps, or gaps, from the middle
MAX_HALVINGS = 5_000  # of a bracket: the whole range of doubles is halved to nothing in half as many
GRADIENT = 1e-9  # of an optimum, in the units of the solver


@dataclass(frozen=True)
class Calibration:
    """`D = sigmoid(scale * r + offset - log pi)`."""

    scale: float = 1.0
    offset: float = 0.0


def calibrate(objective: Objective) -> Calibration:
    """The calibration that maximises f, as the module says.

    The result is computed with the rewards as they are. If their differences are at the limit of a
    double (1e9 beside 1e9 + 1e-7), the optimum cannot be written as one scale and offset; the best of what
    can be is then given, and f is never below that of a constant reward, nor below f at (1, 0).
    """
    edges = Edges.of(objective)
    if edges.constant:
        return _flat(objective, edges)
    factor = _factor(edges)
    if factor != 1.0:
        inner = calibrate(objective.times(factor))
        return _best(objective, edges, _within(objective, Calibration(inner.scale * factor, inner.offset)))
    unit, scale, offset = _optimum(objective, edges)
    if scale == 0:
        return _best(objective, edges, _flat(objective, edges))
    raw = scale / unit.unit
    return _best(objective, edges, _within(objective, Calibration(raw, offset - raw * unit.centre)))


def upper_bound(objective: Objective) -> float:
    """The supremum of f over every scale >= 0 and offset; at most 0.

    For the rows of a part of the data, weighed as in the whole, it bounds the calibrated f of the whole from
    above: f of the whole adds terms that are at most 0, and its best scale and offset are among those tried
    here.
    """
    if not objective.two_sided:
        return 0.0  # the offset alone takes f to 0
    edges = Edges.of(objective)
    if edges.expert > edges.negative:
        return 0.0
    if edges.constant:
        return objective.value(0.0, _best_offset(objective, 0.0))
    factor = _factor(edges)
    if factor != 1.0:
        return upper_bound(objective.times(factor))
    unit, scale, offset = _optimum(objective, edges)
    return unit.value(scale, offset)


def _optimum(objective: Objective, edges: Edges) -> tuple[Objective, float, float]:
    """The objective in a unit of its own, with the best scale >= 0 and offset in that unit."""
    gap = edges.expert - edges.negative
    length = abs(gap) or nearest(objective, edges.expert)
    # What lies so far out lies on its right side, and costs nothing at any scale that matters.
    unit = objective.clipped(edges.middle, FAR * length).measured(edges.middle, length)
    if gap > 0:
        return unit, MARGIN + edges.spread_log_pi, edges.middle_log_pi
    if gap == 0:
        scale = MARGIN + edges.spread_log_pi
        return unit, scale, _best_offset(unit, scale)
    offset = _best_offset(unit, 0.0)
    if unit.gradient(0.0, offset)[0] <= 0:
        return unit, 0.0, offset  # concave: f only falls from here
    return unit, *_maximise(unit, offset, _largest_scale(unit, edges, offset))


def _largest_scale(unit: Objective, edges: Edges, offset: float) -> float:
    """A scale above the optimum's, if the sides overlap by one unit.

    Let a be the expert reward and b the negative one that overlap most, b - a = 1, and w the smaller of their
    weights. As log sigmoid(z) <= min(0, z), f <= -w (scale * (b - a) - spread of log pi) for any offset. The
    optimum is no worse than f at scale 0, which bounds its scale.
    """
    return -unit.value(0.0, offset) / edges.lightest + edges.spread_log_pi


def _maximise(unit: Objective, offset: float, largest: float) -> tuple[float, float]:
    """The maximum over 0 < scale < largest, where f rises at 0; from (0, offset).

    By Newton's method in a trust region. A check of the gradient at its end does not rely on the solver's own
    verdict. If it fails, bracketing finds the optimum, which is slower and cannot miss it: max over offset of f is
    concave in the scale.
    """
    found = minimize(
        lambda p: -unit.value(p[0], p[1]),
        np.array([0.0, offset]),
        jac=lambda p: -unit.gradient(p[0], p[1]),
        hess=lambda p: -unit.hessian(p[0], p[1]),
        method="trust-exact",
        options={"gtol": GRADIENT / 10, "initial_trust_radius": 1.0, "max_trust_radius": max(largest, 2.0)},
    )
    at = _polished(unit, np.asarray(found.x, dtype=np.float64))
    if 0 < at[0] < largest and np.abs(unit.gradient(*at)).max() <= GRADIENT:
        return float(at[0]), float(at[1])
    return _bracketed(unit, largest)


def _polished(unit: Objective, at: Floats) -> Floats:
    """Newton's method for as long as the gradient shrinks: near the optimum f itself is flat to rounding."""
    slope = unit.gradient(*at)
    while np.abs(slope).max() > GRADIENT / 1e3:
        step, *_ = np.linalg.lstsq(unit.hessian(*at), slope, rcond=None)
        following = unit.gradient(*(at - step))
        if not np.abs(following).max() < np.abs(slope).max() / 2:
            break
        at, slope = at - step, following
    return at


def _bracketed(unit: Objective, largest: float) -> tuple[float, float]:
    """The maximum over 0 <= scale <= largest, as the root of a falling derivative over the root of another."""
    at_most = _slope(unit, largest) >= 0  # by rounding alone
    scale = largest if at_most else _root(lambda scale: _slope(unit, scale), 0.0, largest, 1e-30)
    return scale, _best_offset(unit, scale)


def _slope(unit: Objective, scale: float) -> float:
    """d/dscale of max over offset of f: by the envelope theorem the partial derivative at the best offset."""
    return float(unit.gradient(scale, _best_offset(unit, scale))[0])


def _best_offset(unit: Objective, scale: float) -> float:
    """The offset that maximises f at this scale: the root of a falling derivative."""
    least, most = unit.range(scale)
    pad = EDGE + 1e-9 * max(abs(least), abs(most))
    return _root(lambda offset: float(unit.gradient(scale, offset)[1]), -most - pad, -least + pad, 1e-13)


def _root(falling: Callable[[float], float], low: float, high: float, width: float) -> float:
    """The root of a falling function, positive at `low` and negative at `high`, to within `width`."""
    return float(brentq(falling, low, high, xtol=width, rtol=1e-14, maxiter=MAX_HALVINGS))


def _at(objective: Objective, scale: float) -> Calibration:
    return Calibration(scale, _best_offset(objective, scale))


def _within(objective: Objective, found: Calibration) -> Calibration:
    """The same, with a scale that a double can hold and an offset that goes with it."""
    return found if found.scale <= MAX_SCALE else _at(objective, MAX_SCALE)


def _flat(objective: Objective, edges: Edges) -> Calibration:
    """The calibration of a reward that tells nothing: a scale as good as 0, and the best offset."""
    if edges.constant:
        return Calibration(MIN_SCALE, _best_offset(objective, 0.0) - MIN_SCALE * edges.low)
    spread = edges.high - edges.low
    scale = MIN_SCALE / spread if math.isfinite(spread) else MIN_SCALE / 2 / (edges.high / 2 - edges.low / 2)
    return _at(objective, min(scale, MAX_SCALE))


def _best(objective: Objective, edges: Edges, found: Calibration) -> Calibration:
    """The result, unless rounding made it worse than not to calibrate, or than a constant reward."""
    with np.errstate(over="ignore", invalid="ignore"):  # of the largest rewards, uncalibrated
        reached = objective.value(found.scale, found.offset)
        for other in (_flat(objective, edges), Calibration()):
            value = objective.value(other.scale, other.offset)
            if math.isnan(reached) or value > reached + EQUAL:
                found, reached = other, value
    return found


def _factor(edges: Edges) -> float:
    """The power of two that brings rewards near 1, for those whose squares would leave the range of a double."""
    size = max(abs(edges.low), abs(edges.high))
    return 1.0 if TINY <= size <= HUGE else math.ldexp(1.0, -max(math.frexp(size)[1], -1000))
