"""Calibration: the scale > 0 and offset that maximise the fitness of a reward (docs/fitness.md).

The fitness of GRACE depends on the scale of r. With D = sigmoid(scale * r + offset - log pi) and the best
scale and offset, it depends only on what r tells apart. The problem is concave in both. Two bounds make it
well posed:

- The scale is positive: a calibration never turns a reward around.
- Where expert and negative states are separated, f rises for ever with the scale. So rewards are measured in
  their own standard deviations (each side weighing one half), and the scale is at most `MAX_SCALE` per
  deviation. Because the unit is the data's own, calibrated f is the same for r and a * r + b with a > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize

from grace_irl.evaluate.discriminator import Objective

MAX_SCALE = 30.0  # logits per standard deviation: a separated two-valued reward reaches f = -2e-13
MIN_SCALE = 1e-6  # logits per standard deviation: a reward that ranks negatives higher is as good as a constant
UNBOUNDED = 1e4 * MAX_SCALE  # for the upper bound, which must hold for any unit
EDGE = 40.0  # |logit| beyond which a sigmoid is 0 or 1 to double precision


@dataclass(frozen=True)
class Calibration:
    """`D = sigmoid(scale * r + offset - log pi)`."""

    scale: float = 1.0
    offset: float = 0.0


def calibrate(objective: Objective) -> Calibration:
    """The calibration that maximises f within the bounds of this module."""
    unit = objective.standardised()
    scale, offset = _maximise(unit, MIN_SCALE, MAX_SCALE)
    return Calibration(scale / unit.deviation, offset - scale * unit.mean / unit.deviation)


def upper_bound(objective: Objective) -> float:
    """The largest f over every scale >= 0 and offset; at most 0.

    For the rows of a part of the data, weighed as in the whole, it bounds the calibrated f of the whole from
    above: f of the whole adds terms that are at most 0, and its best scale and offset are among those tried
        here.
    """
    if not objective.two_sided:
        return 0.0  # the offset alone takes f to 0
    unit = objective.standardised()
    if _slope(unit, UNBOUNDED) >= 0:
        return 0.0  # where f still rises here, the rows are as good as separated
    return unit.value(*_maximise(unit, 0.0, UNBOUNDED))


def _best_offset(unit: Objective, scale: float) -> float:
    """The offset that maximises f at this scale: the root of a falling derivative."""
    least, most = unit.range(scale)
    low, high = -most - EDGE, -least + EDGE
    return float(brentq(lambda offset: unit.gradient(scale, offset)[1], low, high, xtol=1e-13, rtol=1e-14))


def _slope(unit: Objective, scale: float) -> float:
    """d/dscale of max over offset of f: by the envelope theorem the partial derivative at the best offset."""
    return float(unit.gradient(scale, _best_offset(unit, scale))[0])


def _maximise(unit: Objective, least: float, largest: float) -> tuple[float, float]:
    """The maximum over least <= scale <= largest: at a bound where concave f still rises there."""
    for bound, outward in ((largest, 1.0), (least, -1.0)):
        if outward * _slope(unit, bound) >= 0:
            return bound, _best_offset(unit, bound)
    found = minimize(
        lambda p: -unit.value(p[0], p[1]),
        np.array([1.0, _best_offset(unit, 1.0)]),
        jac=lambda p: -unit.gradient(p[0], p[1]),
        hess=lambda p: -unit.hessian(p[0], p[1]),
        method="trust-exact",
        options={"gtol": 1e-10, "initial_trust_radius": 1.0, "max_trust_radius": largest},
    )
    scale = float(np.clip(found.x[0], least, largest))
    return scale, _best_offset(unit, scale)
