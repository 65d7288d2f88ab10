"""Writes an additive reward as a program that a person can read: a table of numbers and a table of terms."""

from __future__ import annotations

from grace_irl.propose.synthesis.quote import packed, quoted
from grace_irl.propose.synthesis.vector.additive import Additive
from grace_irl.propose.synthesis.vector.numbers import WIDTH, Numbers
from grace_irl.propose.synthesis.vector.term import CLIP, FORMULAS, Shape, shown


def write_source(reward: Additive, numbers: Numbers) -> str:
    """The program of an additive reward over named numbers.

    Raises:
        ValueError: for terms that measure one number in different units, or pairs from different centres; those of
            `vocabulary` do not.
    """
    used = _measures(reward)
    rows = "\n".join(row for key, weight in _merged(reward, numbers).items() for row in _row(weight, *key))
    shapes = sorted({term.shape for term in reward.terms}, key=list(FORMULAS).index)
    formulas = "\n".join(packed([f"{quoted(shape)}: {FORMULAS[shape]}" for shape in shapes], WIDTH))
    return f'''"""Reward: a sum of {len(reward.terms)} terms over {len(used)} numbers of the state."""

{numbers.table(used)}
TERMS = [  # weight, a number, how it is compared, and with which value or other number
{rows}
]
SHAPES = {{  # of how many deviations a (and b) the numbers are away
{formulas}
}}


def z(state, name, value=None):
    """How far a number is from a value (default: the usual), in deviations, at most {CLIP:g}."""
    number, usual, spread = FIELDS[name]
    away = {numbers.reader} - (usual if value is None else value)
    return max(-{CLIP:g}, min({CLIP:g}, away / spread))


class Reward:
    """How much a state looks like the expert's: positive where it does."""

    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state) -> float:
        return {reward.bias:.4g} + sum(self.terms_fn(state).values())

    def terms_fn(self, state):
        """The terms of the reward by name, so that each can be watched and plotted."""
        terms = {{}}
        for weight, name, shape, other in TERMS:
            away = [z(state, name), z(state, other)] if other in FIELDS else [z(state, name, other)]
            label = f"{{name}} {{shape}} {{other}}"
            terms[label] = terms.get(label, 0.0) + weight * SHAPES[shape](*away)
        return terms

    def debug_fn(self, state) -> str:
        return ", ".join(f"{{name}}: {{value:+.2f}}" for name, value in self.terms_fn(state).items())
'''


def _measures(reward: Additive) -> dict[int, tuple[str, str]]:
    """Per number used, its usual value (the one that pairs measure it from) and its spread, as text."""
    centres: dict[int, float] = {}
    spreads: dict[int, float] = {}
    for term in sorted(reward.terms, key=lambda term: -len(term.fields)):
        for field, centre, spread in zip(term.fields, term.centres, term.spreads, strict=True):
            same = centres.setdefault(field, centre) == centre or len(term.fields) == 1
            if not same or spreads.setdefault(field, spread) != spread:
                raise ValueError(f"terms measure number {field} in different ways; expected one centre and one spread")
    return {field: (shown(centres[field], spreads[field], 4), f"{spreads[field]:.4g}") for field in sorted(spreads)}


def _merged(reward: Additive, numbers: Numbers) -> dict[tuple[str, Shape, str], float]:
    """Row of the table -> weight, the heaviest first: terms that are written alike are one."""
    rows: dict[tuple[str, Shape, str], float] = {}
    for term, weight in zip(reward.terms, reward.weights, strict=True):
        one, *other = (quoted(numbers.names[field]) for field in term.fields)
        row = (one, term.shape, other[0] if other else term.threshold)
        rows[row] = rows.get(row, 0.0) + weight
    return dict(sorted(rows.items(), key=lambda row: -abs(row[1])))


def _row(weight: float, name: str, shape: Shape, other: str) -> list[str]:
    """A row of the table, on two lines where one would be long."""
    head, tail = f"    ({weight:.4g}, {name}, {quoted(shape)},", f"{other}),"
    return [f"{head} {tail}"] if len(head) + len(tail) < WIDTH else [head, f"     {tail}"]
