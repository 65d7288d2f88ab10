"""Additive rewards, which are weighted sums of terms, and the writer of their programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grace_irl.propose.templates import written
from grace_irl.synthesis.vector.numbers import WIDTH, Numbers, broken
from grace_irl.synthesis.vector.terms import FAR, FORMULAS, Shape, Term, shown
from grace_irl.text import packed, quoted


@dataclass(frozen=True)
class Additive:
    """A reward: bias + sum of weight * term.

    Attributes:
        terms: the terms.
        weights: one weight for each term.
        bias: the constant.
    """

    terms: tuple[Term, ...]
    weights: tuple[float, ...]
    bias: float

    @property
    def shapes(self) -> set[Shape]:
        """The shapes of the terms."""
        return {term.shape for term in self.terms}

    def value(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rewards `(N,)` of N states, which are given by their numbers `(N, n)`."""
        terms = (weight * term.value(numbers) for weight, term in zip(self.weights, self.terms, strict=True))
        return np.asarray(sum(terms, np.full(len(numbers), self.bias)))


def write_source(reward: Additive, numbers: Numbers) -> str:
    """Write the program of an additive reward. Its terms read the state's `numbers`."""
    # A feature (number of the state) has the same centre, spread and range in all terms, so the program lists it once.
    used = {
        field: ", ".join((shown(mean, spread, 4), f"{spread:.4g}", *(shown(end, spread, 3) for end in ends)))
        for term in reward.terms
        for field, mean, spread, ends in zip(term.fields, term.centres, term.spreads, term.ranges, strict=True)
    }
    used = dict(sorted(used.items()))
    values: dict[str, object] = {
        "reward": reward,
        "fields": numbers.table(used),
        "reader": numbers.reader(used),
        "bias": f"{reward.bias:.4g}",
        "far": f"{FAR:g}",
        "used": used,
        "rows": "\n".join(row for key, weight in _merged(reward, numbers).items() for row in _row(weight, *key)),
        "formulas": "\n".join(
            packed([f"{quoted(shape)}: {FORMULAS[shape]}" for shape in FORMULAS if shape in reward.shapes], WIDTH)
        ),
        "outside": "",
        "listed": "",
    }
    for term, weight in zip(reward.terms, reward.weights, strict=True):
        if term.shape == "outside":
            values["outside"] = f"{weight:.4g}"
            if set(term.fields) != set(used):
                values["listed"] = "\n".join(packed([quoted(numbers.names[field]) for field in term.fields], WIDTH))
    return written("grace_irl.synthesis", "vector.py.j2", values)


def _merged(reward: Additive, numbers: Numbers) -> dict[tuple[str, Shape, str], float]:
    """The weight of each row in the program's table, largest magnitude first.

    If the rows of two terms differ only in weight, their weights are added.
    """
    rows: dict[tuple[str, Shape, str], float] = {}
    for term, weight in zip(reward.terms, reward.weights, strict=True):
        if term.shape == "outside":
            continue
        one, *other = (quoted(numbers.names[field]) for field in term.fields)
        row = (one, term.shape, other[0] if other else term.value_shown)
        rows[row] = rows.get(row, 0.0) + weight
    return dict(sorted(rows.items(), key=lambda row: -abs(row[1])))


def _row(weight: float, name: str, shape: Shape, other: str) -> list[str]:
    """The row of a term in the program's table, on two lines if it is long."""
    return broken(f"    ({weight:.4g}, {name}, {quoted(shape)},", f"{other}),")
