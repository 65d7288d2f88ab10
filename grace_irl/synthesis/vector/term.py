"""Terms of an additive reward over named numbers: what may be added up, and how it is written in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
"""What each shape makes of a number's deviations a and those b of a value, or of another number, in Python."""
PAIRS: tuple[Shape, ...] = ("times", "against", "and")
"""Shapes of two numbers."""
RANGE = (0.005, 0.995)
"""Quantiles of the expert's values between which a number counts: what lies beyond no expert shows."""
FAR = 5.0
"""Deviations out of its range, or from the expert's mean, after which a number counts no further: one wild value must
not outweigh everything."""


@dataclass(frozen=True)
class Term:
    """One smooth function of one or two numbers of the state, each measured in expert deviations.

    With z = (x - centre) / spread of the x that is brought into its range, and t = (threshold - centre) / spread:

    * minus: z - t.  * above: max(0, z - t).  * below: max(0, t - z).  * off: |z - t|.
    * times: z_1 z_2.  * against: |z_1 - z_2|.  * and: |z_1 + z_2|.

    So no term pays for what no expert shows. How far out the numbers are is a term of its own:

    * outside: the sum over its numbers of how far x is out of its range, in deviations, each at most `FAR`.

    Attributes:
        shape: which function.
        fields: indices of the numbers: one or two, or for "outside" any number of them.
        centres, spreads: one per field, in the number's own unit.
        ranges: lowest and highest value, one pair per field.
        threshold: of a shape of one number, in its unit.
    """

    shape: Shape
    fields: tuple[int, ...]
    centres: tuple[float, ...]
    spreads: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]
    threshold: float = 0.0

    def value(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """The term in each of (N, n) states; (N,)."""
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

    def name(self, names: Sequence[str]) -> str:
        """What the term measures, in a few words: "speed above 1.25", "height times speed"."""
        if self.shape == "outside":
            return "outside the range"
        one, *other = (names[field] for field in self.fields)
        return f"{one} {self.shape} {other[0] if other else self.value_shown}"

    @property
    def value_shown(self) -> str:
        """The threshold as text."""
        return shown(self.threshold, self.spreads[0], 4)


def shown(value: float, unit: float, digits: int) -> str:
    """A number with as many digits as it needs to be right to `digits` digits of the unit that it is compared in."""
    needed = math.ceil(math.log10(abs(value) / unit)) if abs(value) > unit else 0
    return f"{value:.{min(17, digits + needed)}g}"


HINGES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Quantiles of the expert's values at which a term may set in."""


def vocabulary(experts: NDArray[Any], everything: NDArray[Any], max_pairs: int, max_watched: int = 0) -> list[Term]:
    """Terms worth trying on these (N, n) states.

    Args:
        experts: states of experts.
        everything: all states, those of experts among them.
        max_pairs: pairs are made among so many numbers, those that differ most by effect size.
        max_watched: so many of those are watched by the first term, which is "outside"; 0: there is no such term.
    """
    centre, spread = experts.mean(axis=0), experts.std(axis=0)
    overall = everything.std(axis=0)
    varied = spread > 1e-6 * np.maximum(overall, 1e-12)
    spread = np.where(varied, spread, overall)
    # Of a number that experts never change, any difference may count.
    quantiles = np.where(varied, np.quantile(experts, RANGE, axis=0), [[-np.inf], [np.inf]])
    ranges = np.clip(quantiles, centre - FAR * spread, centre + FAR * spread).T.tolist()
    # What floating point leaves of a constant is no difference.
    usable = [i for i in range(experts.shape[1]) if overall[i] > 1e-12 * np.abs(everything[:, i]).max()]
    by_effect = sorted(usable, key=lambda i: -_effect(experts[:, i], everything[:, i]))

    def term(shape: Shape, *fields: int, threshold: float = 0.0) -> Term:
        chosen = list(fields)
        middles, units = tuple(centre[chosen].tolist()), tuple(spread[chosen].tolist())
        return Term(shape, fields, middles, units, tuple((ranges[i][0], ranges[i][1]) for i in fields), threshold)

    watched = sorted(by_effect[:max_watched])
    terms = [term("outside", *watched)] if watched else []
    for i in usable:
        terms += [term(shape, i, threshold=float(centre[i])) for shape in ("minus", "off")]
        for threshold in np.unique(np.quantile(experts[:, i], HINGES)).tolist():
            terms += [term(shape, i, threshold=threshold) for shape in ("above", "below")]
    leading = by_effect[:max_pairs]
    for a, i in enumerate(leading):
        for j in leading[a + 1 :]:
            terms += [term(shape, min(i, j), max(i, j)) for shape in PAIRS]
    return terms


def _effect(experts: NDArray[Any], everything: NDArray[Any]) -> float:
    """How much a number tells alone: the larger Cohen's d of its values and of their distances from the expert mean."""
    off = np.abs(everything - experts.mean())
    own = np.abs(experts - experts.mean())
    effects = []
    for one, other in ((experts, everything), (own, off)):
        pooled = np.sqrt((one.var() + other.var()) / 2)
        effects.append(abs(one.mean() - other.mean()) / pooled if pooled > 0 else 0.0)
    return float(max(effects))
