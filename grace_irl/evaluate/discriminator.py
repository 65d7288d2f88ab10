"""The fitness of a reward by the AIRL discriminator (GRACE, eq. 4.1), in a numerically stable form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from grace_irl.evaluate.columns import LabelColumns

Floats = NDArray[np.float64]

CHUNK = 65_536  # maximum number of entries of a `Group` that are computed at once


def fitness(rewards: Floats, columns: LabelColumns, scale: float = 1.0, offset: float = 0.0) -> float:
    """The fitness f = E_{S_e}[log D] + E_{S_n}[log(1 - D)], at most 0.

    S_e are the positive and S_n the negative states. D = sigmoid(scale * r + offset - log pi) is the discriminator for
    a reward r and the log-probability log pi of the action.
    """
    return Objective.of(rewards, columns).value(scale, offset)


@dataclass(frozen=True, eq=False)
class Group:
    """Rewards, weights and log pi of states with the same label.

    Each of the k entries stands for one state, or for several states with equal rewards.

    Attributes:
        x: `(k,)` rewards.
        sign: +1 for positive, -1 for negative states. The log-term of a state is log sigmoid(sign * logit).
        weight: one weight for all rewards, or `(k,)` weights.
        log_pi: `(k,)` log pi, or None if log pi is 0 everywhere.
    """

    x: Floats
    sign: float
    weight: Floats | float
    log_pi: Floats | None = None

    def chunks(self) -> Iterator[Group]:
        """Split the group into parts of at most `CHUNK` entries, to avoid large temporary arrays."""
        for start in range(0, len(self.x), CHUNK):
            part = slice(start, start + CHUNK)
            weight = self.weight if isinstance(self.weight, float) else self.weight[part]
            yield Group(self.x[part], self.sign, weight, None if self.log_pi is None else self.log_pi[part])


class Objective:
    """The fitness f as a function of scale and offset: the weighted sum of log sigmoid(sign * logit). f is concave.

    The logit of a reward x is `scale * (x - centre) / unit + offset - log pi`. If log pi is 0 everywhere, each
    group merges equal rewards into one entry with their total weight.
    """

    def __init__(self, groups: Sequence[Group], centre: float = 0.0, unit: float = 1.0) -> None:
        self.groups = tuple(groups)
        self.centre = centre
        self.unit = unit

    @classmethod
    def of(cls, rewards: Floats, columns: LabelColumns) -> Objective:
        """The objective of rewards `(n,)` in the row order of `columns`."""
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
        """A copy with this `centre` and `unit` in the logit."""
        return Objective(self.groups, centre, unit)

    def times(self, factor: float) -> Objective:
        """A copy with rewards multiplied by `factor`."""
        return Objective([replace(group, x=group.x * factor) for group in self.groups], self.centre, self.unit)

    def clipped(self, centre: float, reach: float) -> Objective:
        """A copy with rewards clipped to `centre` ± `reach`, or the objective itself if no reward lies outside."""
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
        """The fitness f at this scale and offset."""
        return sum(
            _total(group.weight, log_expit(group.sign * self._logits(group, scale, offset))) for group in self._chunks()
        )

    def gradient(self, scale: float, offset: float) -> Floats:
        """The derivatives of f by scale and by offset, `(2,)`."""
        total = np.zeros(2)
        for group in self._chunks():
            slope = group.sign * expit(-group.sign * self._logits(group, scale, offset))
            rising = _total(group.weight, slope * self._standard(group))
            total += (rising, _total(group.weight, slope))
        return total

    def hessian(self, scale: float, offset: float) -> Floats:
        """The second derivatives of f by scale and offset, `(2, 2)`, negative semidefinite."""
        total = np.zeros((2, 2))
        for group in self._chunks():
            z, x = self._logits(group, scale, offset), self._standard(group)
            bend = -expit(z) * expit(-z)
            mixed = _total(group.weight, bend * x)
            total += ((_total(group.weight, bend * x * x), mixed), (mixed, _total(group.weight, bend)))
        return total


def _total(weight: Floats | float, values: Floats) -> float:
    """The weighted sum of `(k,)` values, with one common weight or `(k,)` weights."""
    return weight * float(values.sum()) if isinstance(weight, float) else float(weight @ values)
