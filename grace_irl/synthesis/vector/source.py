"""Writes an additive reward as a program that a person can read: a table of numbers and a table of terms."""

from __future__ import annotations

from collections.abc import Mapping

from grace_irl.synthesis.quote import packed, quoted
from grace_irl.synthesis.vector.additive import Additive
from grace_irl.synthesis.vector.numbers import WIDTH, Numbers
from grace_irl.synthesis.vector.term import FAR, FORMULAS, Shape, shown


def write_source(reward: Additive, numbers: Numbers) -> str:
    """The program of an additive reward over named numbers.

    Raises:
        ValueError: for terms that measure one number in different units or from different centres; those of
            `vocabulary` do not.
    """
    used = _measures(reward)
    rows = "\n".join(row for key, weight in _merged(reward, numbers).items() for row in _row(weight, *key))
    shapes = sorted({term.shape for term in reward.terms} & set(FORMULAS), key=list(FORMULAS).index)
    formulas = "\n".join(packed([f"{quoted(shape)}: {FORMULAS[shape]}" for shape in shapes], WIDTH))
    watched, fine = _outside(reward, used, numbers)
    return f'''"""Reward: a sum of {len(reward.terms)} terms over {len(used)} numbers of the state."""

{numbers.table(used)}
TERMS = [  # weight, a number, how it is compared, and with which value or other number
{rows}
]
SHAPES = {{  # a and b: how far both are from the mean of their number, in deviations
{formulas}
}}
{watched}

class Reward:
    """How much a state looks like the expert's: positive where it does."""

    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state) -> float:
        return {reward.bias:.4g} + sum(self.terms_fn(state).values())

    def terms_fn(self, state):
        """The terms of the reward by name, so that each can be watched and plotted."""
        terms, away, outside = {{}}, {{}}, {{}}
        for name, (number, mean, spread, low, high) in FIELDS.items():
            value = {numbers.reader}
            away[name] = (max(low, min(high, value)) - mean) / spread
            outside[name] = min({FAR:g}, max(low - value, value - high, 0.0) / spread)
        for weight, name, shape, other in TERMS:
            b = away[other] if other in FIELDS else (other - FIELDS[name][1]) / FIELDS[name][2]
            label = f"{{name}} {{shape}} {{other}}"
            terms[label] = terms.get(label, 0.0) + weight * SHAPES[shape](away[name], b)
{fine}        return terms

    def debug_fn(self, state) -> str:
        return ", ".join(f"{{name}}: {{value:+.2f}}" for name, value in self.terms_fn(state).items())
'''


def _outside(reward: Additive, used: Mapping[int, str], numbers: Numbers) -> tuple[str, str]:
    """Python that names the numbers that are watched, and that adds what it costs where they leave their range."""
    for term, weight in zip(reward.terms, reward.weights, strict=True):
        if term.shape == "outside":
            names = packed([quoted(numbers.names[field]) for field in term.fields], WIDTH)
            everything = set(term.fields) == set(used)
            listed = "" if everything else "\n".join(["WATCHED = (", *names, ")\n"])
            total = "sum(outside.values())" if everything else "sum(outside[name] for name in WATCHED)"
            return listed, f'        terms["outside the range"] = {weight:.4g} * {total}\n'
    return "", ""


def _measures(reward: Additive) -> dict[int, str]:
    """Per number used, its usual value (which it is measured from), its spread and its range, as text."""
    found: dict[int, tuple[float, float, tuple[float, float]]] = {}
    for term in reward.terms:
        for field, *measure in zip(term.fields, term.centres, term.spreads, term.ranges, strict=True):
            if found.setdefault(field, tuple(measure)) != tuple(measure):  # type: ignore[arg-type]
                raise ValueError(f"terms measure number {field} in different ways; expected one centre, spread, range")
    return {
        field: ", ".join((shown(mean, spread, 4), f"{spread:.4g}", *(shown(end, spread, 3) for end in ends)))
        for field, (mean, spread, ends) in sorted(found.items())
    }


def _merged(reward: Additive, numbers: Numbers) -> dict[tuple[str, Shape, str], float]:
    """Row of the table -> weight, the heaviest first: terms that are written alike are one."""
    rows: dict[tuple[str, Shape, str], float] = {}
    for term, weight in zip(reward.terms, reward.weights, strict=True):
        if term.shape == "outside":
            continue
        one, *other = (quoted(numbers.names[field]) for field in term.fields)
        row = (one, term.shape, other[0] if other else term.value_shown)
        rows[row] = rows.get(row, 0.0) + weight
    return dict(sorted(rows.items(), key=lambda row: -abs(row[1])))


def _row(weight: float, name: str, shape: Shape, other: str) -> list[str]:
    """A row of the table, on two lines where one would be long."""
    head, tail = f"    ({weight:.4g}, {name}, {quoted(shape)},", f"{other}),"
    return [f"{head} {tail}"] if len(head) + len(tail) < WIDTH else [head, f"     {tail}"]
