"""Terms of an additive reward over named numbers: what may be added up, and how it is written in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Shape = Literal["minus", "above", "below", "off", "times", "against", "and"]
FORMULAS: dict[Shape, str] = {
    "minus": "lambda a: a",
    "above": "lambda a: max(0.0, a)",
    "below": "lambda a: max(0.0, -a)",
    "off": "lambda a: abs(a)",
    "times": "lambda a, b: a * b",
    "against": "lambda a, b: abs(a - b)",
    "and": "lambda a, b: abs(a + b)",
}
"""What each shape makes of one number's deviations a from a value, or of two numbers' a and b, in Python."""


@dataclass(frozen=True)
class Term:
    """One smooth function of one or two numbers of the state, each measured in expert deviations.

    With z = (x - centre) / spread, clipped to +-`CLIP`:

    * minus: z.  * above: max(0, z).  * below: max(0, -z).  * off: |z|.
    * times: z_1 z_2.  * against: |z_1 - z_2|.  * and: |z_1 + z_2|.

    Attributes:
        shape: which function.
        fields: indices of the numbers, one or two.
        centres, spreads: one per field, in the number's own unit.
    """

    shape: Shape
    fields: tuple[int, ...]
    centres: tuple[float, ...]
    spreads: tuple[float, ...]

    def value(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """The term in each of (N, n) states; (N,)."""
        z = (states[:, list(self.fields)] - np.array(self.centres)) / np.array(self.spreads)
        z = np.clip(z, -CLIP, CLIP)
        match self.shape:
            case "minus":
                out = z[:, 0]
            case "above":
                out = np.maximum(z[:, 0], 0.0)
            case "below":
                out = np.maximum(-z[:, 0], 0.0)
            case "off":
                out = np.abs(z[:, 0])
            case "times":
                out = z[:, 0] * z[:, 1]
            case "against":
                out = np.abs(z[:, 0] - z[:, 1])
            case "and":
                out = np.abs(z[:, 0] + z[:, 1])
        return np.asarray(out, dtype=np.float64)

    def name(self, names: Sequence[str]) -> str:
        """What the term measures, in a few words: "speed above 1.25", "height times speed"."""
        one, *other = (names[field] for field in self.fields)
        return f"{one} {self.shape} {other[0] if other else self.threshold}"

    @property
    def threshold(self) -> str:
        """The value from which a single number is measured, as text."""
        return shown(self.centres[0], self.spreads[0], 4)


def shown(value: float, unit: float, digits: int) -> str:
    """A number with as many digits as it needs to be right to `digits` digits of the unit that it is compared in."""
    needed = math.ceil(math.log10(abs(value) / unit)) if abs(value) > unit else 0
    return f"{value:.{min(17, digits + needed)}g}"


CLIP = 5.0
"""Deviations beyond which a number counts no further: one wild value must not outweigh everything."""
HINGES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Quantiles of the expert's values at which a term may set in."""


def vocabulary(experts: NDArray[Any], everything: NDArray[Any], max_pairs: int) -> list[Term]:
    """Terms worth trying on these (N, n) states, pairs only among the numbers that differ most by effect size."""
    centre, spread = experts.mean(axis=0), experts.std(axis=0)
    overall = everything.std(axis=0)
    spread = np.where(spread > 1e-6 * np.maximum(overall, 1e-12), spread, overall)
    # What floating point leaves of a constant is no difference.
    usable = [i for i in range(experts.shape[1]) if overall[i] > 1e-12 * np.abs(everything[:, i]).max()]
    terms: list[Term] = []
    for i in usable:
        scale = float(spread[i])
        terms += [Term(shape, (i,), (float(centre[i]),), (scale,)) for shape in ("minus", "off")]
        for threshold in np.unique(np.quantile(experts[:, i], HINGES)).tolist():
            terms += [Term(shape, (i,), (threshold,), (scale,)) for shape in ("above", "below")]
    leading = sorted(usable, key=lambda i: -_effect(experts[:, i], everything[:, i]))[:max_pairs]
    for a, i in enumerate(leading):
        for j in leading[a + 1 :]:
            fields = (min(i, j), max(i, j))
            centres = tuple(float(centre[k]) for k in fields)
            spreads = tuple(float(spread[k]) for k in fields)
            terms += [Term(shape, fields, centres, spreads) for shape in ("times", "against", "and")]
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
