"""Writes an additive reward as a program that a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from grace_irl.propose.synthesis.quote import quoted
from grace_irl.propose.synthesis.vector.additive import Additive
from grace_irl.propose.synthesis.vector.numbers import Numbers
from grace_irl.propose.synthesis.vector.term import CLIP


def write_source(reward: Additive, numbers: Numbers) -> str:
    """The program of an additive reward over named numbers."""
    names = numbers.names
    used = sorted({field for term in reward.terms for field in term.fields})
    order = sorted(range(len(reward.terms)), key=lambda i: -abs(reward.weights[i]))
    labels = _distinct([reward.terms[i].name(names) for i in order])
    terms = "\n".join(
        f"            {quoted(label)}: {reward.weights[i]:.4g} * {_factor(reward.terms[i].expression(names))},"
        for i, label in zip(order, labels, strict=True)
    )
    return f'''"""Reward: a sum of {len(reward.terms)} terms over {len(used)} numbers of the state."""

{numbers.prelude(used)}

class Reward:
    """How much a state looks like the expert's: positive where it does."""

    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state) -> float:
        return {reward.bias:.4g} + sum(self.terms_fn(state).values())

    def terms_fn(self, state):
        """The terms of the reward by name, so that each can be watched and plotted."""
        number = numbers(state)

        def z(name, centre, spread):
            """How far a number is from a value, in expert deviations, at most {CLIP:g}."""
            return max(-{CLIP:g}, min({CLIP:g}, (number[name] - centre) / spread))

        return {{
{terms}
        }}

    def debug_fn(self, state) -> str:
        return ", ".join(f"{{name}}: {{value:+.2f}}" for name, value in self.terms_fn(state).items())
'''


def _factor(expression: str) -> str:
    return f"({expression})" if " * " in expression else expression


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels, each that occurred before with a number: two terms under one name would be one entry."""
    distinct: list[str] = []
    for label in labels:
        numbered = (label if n == 1 else f"{label} ({n})" for n in count(1))
        distinct.append(next(name for name in numbered if name not in distinct))
    return distinct
