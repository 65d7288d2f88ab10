"""The AIRL discriminator and GRACE's fitness (eq. 4.1), computed stably."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from grace_irl.evaluate.columns import Columns

Floats = NDArray[np.float64]

CHUNK = 65_536  # rows at a time, so that a million states need no large temporaries


def log_d(reward: Floats, log_pi: Floats | float = 0.0) -> Floats:
    """log D(s) with D = exp(r) / (exp(r) + pi) = sigmoid(r - log pi); any shape."""
    value: Floats = log_expit(reward - log_pi)
    return value


def log_one_minus_d(reward: Floats, log_pi: Floats | float = 0.0) -> Floats:
    """log(1 - D(s)) = log sigmoid(-(r - log pi)); any shape."""
    value: Floats = log_expit(log_pi - reward)
    return value


def fitness(rewards: Floats, columns: Columns, scale: float = 1.0, offset: float = 0.0) -> float:
    """f = E_{S_e}[log D] + E_{S_n}[log(1 - D)] with logit `scale * r + offset - log pi`; at most 0."""
    return Objective.of(rewards, columns).value(scale, offset)


class Objective:
    """f as a function of (scale, offset), concave in both (a sum of log-sigmoids of affine maps).

    Rows are `sign * (scale * x + offset - log_pi)`, weighed. Where log pi is 0, equal rewards are merged: a
    step-like reward over a million states becomes a handful of rows.
    """

    def __init__(self, x: Floats, sign: Floats, weight: Floats, log_pi: Floats | None) -> None:
        self.x = x
        self.sign = sign
        self.weight = weight
        self.log_pi = log_pi

    @classmethod
    def of(cls, rewards: Floats, columns: Columns) -> Objective:
        """The objective of these rewards `(n,)`, in the rows' order of `columns`."""
        if columns.log_pi is not None:
            return cls(rewards, columns.sign.astype(np.float64), columns.weight, columns.log_pi)
        parts = []
        for mask, sign in ((columns.positive, 1.0), (~columns.positive, -1.0)):
            values, place = np.unique(rewards[mask], return_inverse=True)
            parts.append((values, np.full(len(values), sign), np.bincount(place, columns.weight[mask], len(values))))
        x, sign_, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        used = weight > 0
        return cls(x[used], sign_[used], weight[used], None)

    def logits(self, part: slice, scale: float, offset: float) -> Floats:
        """`scale * x + offset - log pi` for some rows."""
        z = scale * self.x[part] + offset
        return z if self.log_pi is None else z - self.log_pi[part]

    def _parts(self) -> list[slice]:
        return [slice(start, start + CHUNK) for start in range(0, len(self.x), CHUNK)]

    def value(self, scale: float, offset: float) -> float:
        """f."""
        return sum(
            float(self.weight[part] @ log_expit(self.sign[part] * self.logits(part, scale, offset)))
            for part in self._parts()
        )

    def gradient(self, scale: float, offset: float) -> Floats:
        """`(2,)`: df/dscale, df/doffset."""
        total = np.zeros(2)
        for part in self._parts():
            sign = self.sign[part]
            slope = self.weight[part] * sign * expit(-sign * self.logits(part, scale, offset))
            total += (float(slope @ self.x[part]), float(slope.sum()))
        return total

    def hessian(self, scale: float, offset: float) -> Floats:
        """`(2, 2)`, negative semidefinite."""
        total = np.zeros((2, 2))
        for part in self._parts():
            z, x = self.logits(part, scale, offset), self.x[part]
            bend = -self.weight[part] * expit(z) * expit(-z)
            mixed = float(bend @ x)
            total += ((float(bend @ (x * x)), mixed), (mixed, float(bend.sum())))
        return total
