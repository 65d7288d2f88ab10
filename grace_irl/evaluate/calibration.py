"""Calibration: the scale > 0 and the offset that maximise the fitness f of a reward r (docs/fitness.md).

The discriminator is D = sigmoid(scale * r + offset - log pi). Without calibration, f changes if r is multiplied by a
number. With calibration, f is the same for r and a * r + b with a > 0. f is concave in scale and offset.

In this module, an *expert reward* is the reward of a positive state, and a *negative reward* is the reward of a
negative state. The optimum depends on the order of these rewards (`Edges`):

- Overlap: some negative reward exceeds some expert reward, but f rises with the scale at scale 0. The optimum is
  finite. `_largest_scale` is an upper bound of the best scale.
- Separation: all expert rewards exceed all negative rewards. f rises towards 0 without a maximum as the scale grows.
  The chosen scale puts at least `MARGIN` logits between the smallest expert reward and the largest negative reward. The
  offset puts logit 0 halfway between these two rewards, for a log pi in the middle of its range. f is then within
  2e-13 of 0, and does not depend on outliers. (If the gap is so small that `MAX_SCALE` limits the scale, there are
  fewer logits.)
- Contact: the smallest expert reward equals the largest negative reward. The chosen scale puts at least `MARGIN` logits
  between this value and the nearest other reward.
- Reversal: the rewards overlap and f does not rise with the scale at scale 0, or r is constant. The best scale would be
  negative or arbitrary. Calibration never reverses a reward, so the chosen scale is practically 0. f is then the f of a
  constant reward: 2 log(1/2) if log pi is 0.
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
    """Extremes of rewards, log pi and weights in an `Objective` with both positive and negative states.

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
        """The mean of the smallest expert reward and the largest negative reward."""
        return self.expert / 2 + self.negative / 2

    @property
    def spread_log_pi(self) -> float:
        """The largest log pi minus the smallest log pi."""
        return self.high_log_pi - self.low_log_pi

    @property
    def middle_log_pi(self) -> float:
        """The mean of the smallest and the largest log pi."""
        return (self.low_log_pi + self.high_log_pi) / 2


def nearest(objective: Objective, value: float) -> float:
    """The distance from `value` to the nearest reward that differs from `value`. There must be such a reward."""
    found = float("inf")
    for group in objective.groups:
        away = np.abs(group.x - value)
        found = min(found, float(np.min(away, where=away > 0, initial=np.inf)))
    return found


Floats = NDArray[np.float64]

MARGIN = 60.0  # logits between separated sides: if each side has one reward, f = -2 log(1 + exp(-30)) = -2e-13
MIN_SCALE = 1e-10  # logits between the extremes of a reversed reward: too few to change f by more than EQUAL
MAX_SCALE = 1e300  # maximum of scale * max(1, largest |reward|), even if a tiny gap then gets fewer than MARGIN logits
EDGE = 40.0  # |logit| beyond which a sigmoid is 0 or 1 to double precision
HUGE, TINY = 1e150, 1e-150  # bounds on the largest |reward|: beyond them, squares leave the range of doubles
FAR = 1e30  # distance from `Edges.middle` at which `_optimum` clips rewards, in the unit that `_optimum` chooses
MAX_HALVINGS = 5_000  # maximum iterations of a root search: halving the range of doubles down to 5e-324 takes 2,100
GRADIENT = 1e-9  # largest |gradient| of an accepted optimum, for rewards in the unit that `_optimum` chooses


@dataclass(frozen=True)
class Calibration:
    """Scale and offset of the discriminator `D = sigmoid(scale * r + offset - log pi)`.

    The log pi in this formula is counted from its mean over the training steps (`LabelColumns.log_pi`).
    """

    scale: float = 1.0
    offset: float = 0.0


def calibrate(objective: Objective) -> Calibration:
    """The calibration that maximises f.

    If rewards differ only at the limit of double precision, such as 1e9 and 1e9 + 1e-7, doubles may not represent the
    optimum. The result is then the best calibration found. Its f is, within `EQUAL`, at least the f of a constant
    reward, and at least f at scale 1 and offset 0.
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
    """The supremum of f over all scales >= 0 and all offsets, within 2e-13; at most 0.

    The objective may hold only some of the states. Their weights must then be those that they have among all states.
    The result is an upper bound of the calibrated f over all states, because the missing states only add terms <= 0.
    """
    if not objective.two_sided:
        return 0.0  # if all states have one sign, a large |offset| brings f to 0
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
    """Express the rewards in a suitable unit. Return the new objective, its best scale >= 0 and its best offset."""
    gap = edges.expert - edges.negative
    length = abs(gap) or nearest(objective, edges.expert)
    # Clipping changes only expert rewards far above the middle, and negative rewards far below the middle. The
    # discriminator is right about these states by a wide margin: at any relevant scale, their log-terms are about 0.
    unit = objective.clipped(edges.middle, FAR * length).measured(edges.middle, length)
    if gap > 0:
        return unit, MARGIN + edges.spread_log_pi, edges.middle_log_pi
    if gap == 0:
        scale = MARGIN + edges.spread_log_pi
        return unit, scale, _best_offset(unit, scale)
    offset = _best_offset(unit, 0.0)
    if unit.gradient(0.0, offset)[0] <= 0:
        return unit, 0.0, offset  # f is concave. As f does not rise at scale 0, f never rises
    return unit, *_maximise(unit, offset, _largest_scale(unit, edges, offset))


def _largest_scale(unit: Objective, edges: Edges, offset: float) -> float:
    """An upper bound of the optimal scale, if expert and negative rewards overlap by one unit.

    Let a be the smallest expert reward and b the largest negative reward, with b - a = 1. Let w be the smallest
    weight of a state, and p the largest log pi minus the smallest.

    1. All log-terms are <= 0. So f is at most the weighted sum of those of the two states with rewards a and b.
    2. log sigmoid(z) <= min(0, z). The two logits enter with opposite signs, so their sum does not depend on the
       offset, and f <= -w (scale * (b - a) - p).
    3. The optimal f is at least f at scale 0. With step 2, this bounds the scale.
    """
    return -unit.value(0.0, offset) / edges.lightest + edges.spread_log_pi


def _maximise(unit: Objective, offset: float, largest: float) -> tuple[float, float]:
    """The scale and offset that maximise f over 0 < scale < largest.

    The search starts at scale 0 and `offset`, where f must rise with the scale. The solver is Newton's method in a
    trust region. If the gradient at its result is not small, bracketing finds the optimum instead. Bracketing is
    slower, but always finds the optimum, because the maximum of f over the offset is concave in the scale.
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
    """Improve a point near the optimum by Newton steps, as long as each step at least halves the gradient.

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
    at_most = _slope(unit, largest) >= 0  # true only due to rounding: the optimum lies below `largest`
    scale = largest if at_most else _root(lambda scale: _slope(unit, scale), 0.0, largest, 1e-30)
    return scale, _best_offset(unit, scale)


def _slope(unit: Objective, scale: float) -> float:
    """The derivative of g(scale) = max over offset of f(scale, offset).

    By the envelope theorem, this is the partial derivative of f by the scale, at the best offset.
    """
    return float(unit.gradient(scale, _best_offset(unit, scale))[0])


def _best_offset(unit: Objective, scale: float) -> float:
    """The offset that maximises f at this scale: the root of the derivative, which falls as the offset grows."""
    least, most = unit.range(scale)
    pad = EDGE + 1e-9 * max(abs(least), abs(most))
    return _root(lambda offset: float(unit.gradient(scale, offset)[1]), -most - pad, -least + pad, 1e-13)


def _root(falling: Callable[[float], float], low: float, high: float, width: float) -> float:
    """The root, to within `width`, of a falling function that is positive at `low` and negative at `high`."""
    return float(brentq(falling, low, high, xtol=width, rtol=1e-14, maxiter=MAX_HALVINGS))


def _at(objective: Objective, scale: float) -> Calibration:
    return Calibration(scale, _best_offset(objective, scale))


def _within(objective: Objective, edges: Edges, found: Calibration) -> Calibration:
    """Return `found` if `MAX_SCALE` allows its scale, else the largest allowed scale with the best offset."""
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
    """The best of three calibrations: `found`, `_flat`, and scale 1 with offset 0.

    `found` can be worse than the other two by rounding, or if `MAX_SCALE` limits its scale.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # at scale 1, very large rewards overflow
        reached = objective.value(found.scale, found.offset)
        for other in (_flat(objective, edges), Calibration()):
            value = objective.value(other.scale, other.offset)
            if math.isnan(reached) or value > reached + EQUAL:
                found, reached = other, value
    return found


def _factor(edges: Edges) -> float:
    """The factor by which to multiply rewards: 1 if their squares fit in doubles.

    Otherwise the factor is the power of two that brings the largest |reward| near 1.
    """
    size = max(abs(edges.low), abs(edges.high))
    return 1.0 if TINY <= size <= HUGE else math.ldexp(1.0, -max(math.frexp(size)[1], -1000))
