"""Calibration: the scale > 0 and the offset that maximise the fitness f of a reward r (docs/fitness.md).

The discriminator is D = sigmoid(scale * r + offset - log pi). GRACE's fitness depends on the scale of r. Calibrated
f does not: it is the same for r and a * r + b with a > 0. f is concave in scale and offset. The rewards of expert
states and those of negative states are called the two sides. Their positions (`Edges`) decide where the optimum lies:

- Overlap: the reward of some negative state exceeds that of some expert state, but r does not prefer negative states
  on the whole. The optimum is finite, and its scale lies below a bound that is known beforehand (`_largest_scale`).
- Separation: f rises towards 0 without a maximum as the scale grows. The chosen scale puts `MARGIN` logits between
  the smallest expert and the largest negative reward, and the offset puts logit 0 halfway between them. f is then
  within 2e-13 of 0, whatever the other rewards are. If the scale followed from the standard deviation instead, f would
  depend on outliers.
- Contact: the smallest expert reward equals the largest negative one. The chosen scale puts `MARGIN` logits between
  this value and the nearest other reward.
- Reversal: the sides overlap and r prefers negative states on the whole, or r is constant. The best scale would be
  negative or arbitrary. A calibration never reverses a reward, so its scale is practically 0. f is that of a constant
  reward, 2 log(1/2) if log pi is 0.
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
    """Extreme rewards, log pi and weights of an objective (`Objective`) that has positive and negative states.

    Attributes:
        low, high: the smallest and the largest reward.
        expert: the smallest reward of a positive state.
        negative: the largest reward of a negative state.
        low_log_pi, high_log_pi: the smallest and the largest log pi; 0 if log pi is 0 everywhere.
        lightest: the smallest weight of a state.
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
        """The edges of an objective."""
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
        """The largest log pi minus the smallest."""
        return self.high_log_pi - self.low_log_pi

    @property
    def middle_log_pi(self) -> float:
        """Halfway between the smallest and the largest log pi."""
        return (self.low_log_pi + self.high_log_pi) / 2


def nearest(objective: Objective, value: float) -> float:
    """The distance from `value` to the nearest different reward. The objective must have such a reward."""
    found = float("inf")
    for group in objective.groups:
        away = np.abs(group.x - value)
        found = min(found, float(np.min(away, where=away > 0, initial=np.inf)))
    return found


Floats = NDArray[np.float64]

MARGIN = 60.0  # logits between separated sides: f = -2 log(1 + exp(-30)) = -2e-13 for a reward of two values
MIN_SCALE = 1e-10  # logits between the extremes of a reversed reward: too few to change f by more than EQUAL
MAX_SCALE = 1e300  # maximum of scale * max(1, largest |reward|); with it, a tiny gap gets fewer than MARGIN logits
EDGE = 40.0  # |logit| beyond which a sigmoid is 0 or 1 to double precision
HUGE, TINY = 1e150, 1e-150  # bounds on the largest |reward|: outside them, squares leave the range of a double
FAR = 1e30  # distance from the middle at which rewards are clipped, in units of the overlap or the gap
MAX_HALVINGS = 5_000  # maximum iterations of a root search; bisection of the range of all doubles needs half as many
GRADIENT = 1e-9  # largest |gradient| of an accepted optimum, for rewards in the solver's unit


@dataclass(frozen=True)
class Calibration:
    """Scale and offset of the discriminator `D = sigmoid(scale * r + offset - log pi)`."""

    scale: float = 1.0
    offset: float = 0.0


def calibrate(objective: Objective) -> Calibration:
    """The calibration that maximises f.

    Some rewards differ only at the limit of double precision, such as 1e9 and 1e9 + 1e-7. Their optimal scale and
    offset may not be representable as doubles. The result is then the best calibration found. Its f is at least that
    of a constant reward, and at least f at scale 1 and offset 0.
    """
    edges = Edges.of(objective)
    if edges.constant:
        return _flat(objective, edges)
    factor = _factor(edges)
    if factor != 1.0:
        inner = calibrate(objective.times(factor))
        return _best(objective, edges, _within(objective, edges, Calibration(inner.scale * factor, inner.offset)))
    unit, scale, offset = _optimum(objective, edges)
    if scale == 0:
        return _best(objective, edges, _flat(objective, edges))
    raw = scale / unit.unit
    return _best(objective, edges, _within(objective, edges, Calibration(raw, offset - raw * unit.centre)))


def upper_bound(objective: Objective) -> float:
    """The supremum of f over all scales >= 0 and all offsets; at most 0.

    The objective may hold only some of the states, each with the weight that it has among all states. The result is
    then an upper bound of the calibrated f of all states: the missing states only add terms <= 0, and the supremum
    includes the scale and offset that are best for all.
    """
    if not objective.two_sided:
        return 0.0  # if all states have one sign, a large offset brings f to 0
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
    """The objective with its rewards in a suitable unit, and the best scale >= 0 and offset for that unit."""
    gap = edges.expert - edges.negative
    length = abs(gap) or nearest(objective, edges.expert)
    # Clipping changes only expert rewards far above the middle and those of negative states far below it. The
    # discriminator gets both right by a wide margin, so their log-terms are practically 0 at any relevant scale.
    unit = objective.clipped(edges.middle, FAR * length).measured(edges.middle, length)
    if gap > 0:
        return unit, MARGIN + edges.spread_log_pi, edges.middle_log_pi
    if gap == 0:
        scale = MARGIN + edges.spread_log_pi
        return unit, scale, _best_offset(unit, scale)
    offset = _best_offset(unit, 0.0)
    if unit.gradient(0.0, offset)[0] <= 0:
        return unit, 0.0, offset  # f is concave and does not rise at scale 0, so it is no higher at any larger scale
    return unit, *_maximise(unit, offset, _largest_scale(unit, edges, offset))


def _largest_scale(unit: Objective, edges: Edges, offset: float) -> float:
    """An upper bound of the optimal scale, if the two sides overlap by one unit.

    Let a be the smallest expert reward and b the largest negative reward, with b - a = 1. Let w be the smallest
    weight of a state, and p the largest log pi minus the smallest. All log-terms are <= 0, so f is at most the sum of
    the log-terms of two states, those with rewards a and b. In this sum the offset cancels, and
    log sigmoid(z) <= min(0, z), so f <= -w (scale * (b - a) - p) for any offset. The optimal f is
    at least f at scale 0, which bounds the scale.
    """
    return -unit.value(0.0, offset) / edges.lightest + edges.spread_log_pi


def _maximise(unit: Objective, offset: float, largest: float) -> tuple[float, float]:
    """The scale and offset that maximise f over 0 < scale < largest.

    The search starts at scale 0 and `offset`, where f must rise with the scale. The solver is Newton's method in a
    trust region. Its result is accepted only if the gradient there is small, whatever the solver reports. Otherwise
    bracketing finds the optimum. This is slower but cannot miss it, because max over offset of f is concave in the
    scale.
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
    """Improve a point near the optimum by Newton steps, as long as each step halves the gradient.

    The criterion is the gradient, because differences of f near the optimum are lost in rounding.
    """
    slope = unit.gradient(*at)
    while np.abs(slope).max() > GRADIENT / 1e3:
        step, *_ = np.linalg.lstsq(unit.hessian(*at), slope, rcond=None)
        following = unit.gradient(*(at - step))
        if not np.abs(following).max() < np.abs(slope).max() / 2:
            break
        at, slope = at - step, following
    return at


def _bracketed(unit: Objective, largest: float) -> tuple[float, float]:
    """The scale and offset that maximise f over 0 <= scale <= largest, by two nested root searches."""
    at_most = _slope(unit, largest) >= 0  # true only by rounding, as the optimum lies below `largest`
    scale = largest if at_most else _root(lambda scale: _slope(unit, scale), 0.0, largest, 1e-30)
    return scale, _best_offset(unit, scale)


def _slope(unit: Objective, scale: float) -> float:
    """The derivative of g(scale) = max over offset of f(scale, offset).

    By the envelope theorem it is the partial derivative of f by the scale, at the best offset.
    """
    return float(unit.gradient(scale, _best_offset(unit, scale))[0])


def _best_offset(unit: Objective, scale: float) -> float:
    """The offset that maximises f at this scale, as the root of the derivative, which falls with the offset."""
    least, most = unit.range(scale)
    pad = EDGE + 1e-9 * max(abs(least), abs(most))
    return _root(lambda offset: float(unit.gradient(scale, offset)[1]), -most - pad, -least + pad, 1e-13)


def _root(falling: Callable[[float], float], low: float, high: float, width: float) -> float:
    """The root, to within `width`, of a falling function that is positive at `low` and negative at `high`."""
    return float(brentq(falling, low, high, xtol=width, rtol=1e-14, maxiter=MAX_HALVINGS))


def _at(objective: Objective, scale: float) -> Calibration:
    return Calibration(scale, _best_offset(objective, scale))


def _within(objective: Objective, edges: Edges, found: Calibration) -> Calibration:
    """The calibration `found`, or the largest scale with its best offset if the scale of `found` is larger."""
    largest = MAX_SCALE / max(1.0, abs(edges.low), abs(edges.high))
    return found if found.scale <= largest else _at(objective, largest)


def _flat(objective: Objective, edges: Edges) -> Calibration:
    """The calibration of a reversed or constant reward: a scale practically 0, and the best offset."""
    if edges.constant:
        return Calibration(MIN_SCALE, _best_offset(objective, 0.0) - MIN_SCALE * edges.low)
    spread = edges.high - edges.low
    scale = MIN_SCALE / spread if math.isfinite(spread) else MIN_SCALE / 2 / (edges.high / 2 - edges.low / 2)
    return _at(objective, min(scale, MAX_SCALE))


def _best(objective: Objective, edges: Edges, found: Calibration) -> Calibration:
    """The best of three calibrations: `found`, one with a scale practically 0, and scale 1 with offset 0.

    Only rounding can make `found` worse than the other two.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # at scale 1, very large rewards overflow
        reached = objective.value(found.scale, found.offset)
        for other in (_flat(objective, edges), Calibration()):
            value = objective.value(other.scale, other.offset)
            if math.isnan(reached) or value > reached + EQUAL:
                found, reached = other, value
    return found


def _factor(edges: Edges) -> float:
    """The power of two that brings the largest |reward| near 1, or 1 if squares of rewards fit in a double."""
    size = max(abs(edges.low), abs(edges.high))
    return 1.0 if TINY <= size <= HUGE else math.ldexp(1.0, -max(math.frexp(size)[1], -1000))
