"""The AIRL discriminator and GRACE's fitness (eq. 4.1), computed stably."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from grace_irl.evaluate.columns import Columns

Floats = NDArray[np.float64]

CHUNK = 65_536  # rows at a time


def fitness(rewards: Floats, columns: Columns, scale: float = 1.0, offset: float = 0.0) -> float:
    """f = E_{S_e}[log D] + E_{S_n}[log(1 - D)] with logit `scale * r + offset - log pi`; at most 0."""
    return Objective.of(rewards, columns).value(scale, offset)


@dataclass(frozen=True, eq=False)
class Group:
    """Rewards that count on one side.

    Attributes:
        x: `(k,)` rewards.
        sign: +1 for positive, -1 for negative states: both log-terms are log sigmoid(sign * logit).
        weight: of each, one number or `(k,)`.
        log_pi: `(k,)` or None if it is 0.
    """

    x: Floats
    sign: float
    weight: Floats | float
    log_pi: Floats | None = None

    def chunks(self) -> Iterator[Group]:
        """The same, some rows at a time, so that a million states need no large temporaries."""
        for start in range(0, len(self.x), CHUNK):
            part = slice(start, start + CHUNK)
            weight = self.weight if isinstance(self.weight, float) else self.weight[part]
            yield Group(self.x[part], self.sign, weight, None if self.log_pi is None else self.log_pi[part])


class Objective:
    """f as a function of (scale, offset), concave in both: a weighed sum of log sigmoid(sign * logit).

    The logit is `scale * (x - centre) / unit + offset - log pi`. If log pi is 0, equal rewards are merged:
    a step-like reward over a million states becomes a handful of numbers.
    """

    def __init__(self, groups: Sequence[Group], centre: float = 0.0, unit: float = 1.0) -> None:
        self.groups = tuple(groups)
        self.centre = centre
        self.unit = unit

    @classmethod
    def of(cls, rewards: Floats, columns: Columns) -> Objective:
        """The objective of these rewards `(n,)`, in the rows' order of `columns`."""
        groups = []
        for mask, sign, weight in columns.groups():
            if columns.log_pi is not None:
                groups.append(Group(rewards[mask], sign, weight, columns.log_pi[mask]))
                continue
            values, counts = np.unique(rewards[mask], return_counts=True)
            merged: Floats | float = weight if counts.max() == 1 else np.multiply(counts, weight, dtype=np.float64)
            groups.append(Group(values, sign, merged))
        return cls(groups)

    @property
    def two_sided(self) -> bool:
        """Whether there are both positive and negative states."""
        return len({group.sign for group in self.groups}) == 2

    def measured(self, centre: float, unit: float) -> Objective:
        """The same with rewards measured from `centre` in `unit`s."""
        return Objective(self.groups, centre, unit)

    def times(self, factor: float) -> Objective:
        """The same for rewards that are `factor` times as large."""
        return Objective([replace(group, x=group.x * factor) for group in self.groups], self.centre, self.unit)

    def clipped(self, centre: float, reach: float) -> Objective:
        """The same for rewards that are no farther from `centre` than `reach`; itself if none is."""
        if all(centre - group.x.min() <= reach and group.x.max() - centre <= reach for group in self.groups):
            return self
        low, high = centre - reach, centre + reach
        groups = [replace(group, x=np.clip(group.x, low, high)) for group in self.groups]
        return Objective(groups, self.centre, self.unit)

    def range(self, scale: float) -> tuple[float, float]:
        """The smallest and the largest logit at offset 0."""
        logits = (self._logits(group, scale, 0.0) for group in self._chunks())
        ends = [(float(z.min()), float(z.max())) for z in logits]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def _chunks(self) -> Iterator[Group]:
        for group in self.groups:
            yield from group.chunks()

    def _standard(self, group: Group) -> Floats:
        return (group.x - self.centre) / self.unit

    def _logits(self, group: Group, scale: float, offset: float) -> Floats:
        z = scale * self._standard(group) + offset
        return z if group.log_pi is None else z - group.log_pi

    def value(self, scale: float, offset: float) -> float:
        """f."""
        return sum(
            _total(group.weight, log_expit(group.sign * self._logits(group, scale, offset))) for group in self._chunks()
        )

    def gradient(self, scale: float, offset: float) -> Floats:
        """`(2,)`: df/dscale, df/doffset."""
        total = np.zeros(2)
        for group in self._chunks():
            slope = group.sign * expit(-group.sign * self._logits(group, scale, offset))
            rising = _total(group.weight, slope * self._standard(group))
            total += (rising, _total(group.weight, slope))
        return total

    def hessian(self, scale: float, offset: float) -> Floats:
        """`(2, 2)`, negative semidefinite."""
        total = np.zeros((2, 2))
        for group in self._chunks():
            z, x = self._logits(group, scale, offset), self._standard(group)
            bend = -expit(z) * expit(-z)
            mixed = _total(group.weight, bend * x)
            total += ((_total(group.weight, bend * x * x), mixed), (mixed, _total(group.weight, bend)))
        return total


def _total(weight: Floats | float, values: Floats) -> float:
    """The weighted sum of values `(k,)`; weights are one number or `(k,)`."""
    return weight * float(values.sum()) if isinstance(weight, float) else float(weight @ values)
