"""Designs and their programs. A design is a weighted sum of components, and its program rewards steps.

Each component with its weight is a term of the design.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from grace_irl.errors import InputError
from grace_irl.propose.templates import written
from grace_irl.sandbox.candidate import TERM_NAME
from grace_irl.synthesis.vector.components import LIMIT, Components
from grace_irl.synthesis.vector.numbers import WIDTH
from grace_irl.synthesis.vector.quantities import Form, helpers, unique
from grace_irl.text import quoted

MOST_TERMS = 6
"""Maximum number of terms of a design."""
EXTREMES = (0.01, 10.0)
"""Range to which the sizes of all weights are clipped."""

Design = dict[str, float]
"""Weights by names of components. A weight's size is the weighted term's standard deviation over the rollouts."""


def read(components: Components, sketch: str) -> Design:
    """The design of a sketch; {} for "".

    Raises:
        InputError: the text is no design, has a wrong weight, or has a term that the rollouts do not suggest.
    """
    if not sketch:
        return {}
    try:
        found = json.loads(sketch)
    except (ValueError, RecursionError):
        found = None
    listed = components.listed
    if not isinstance(found, dict) or not 0 < len(found) <= MOST_TERMS:
        what = "no design"
    elif unknown := [name for name in found if name not in listed]:
        what = f"the term {unknown[0][:80]!a}, which these rollouts do not suggest"
    elif wrong := [name for name, weight in found.items() if not _is_weight(weight)]:
        what = f"the weight {str(found[wrong[0]])[:20]!a}"
    else:
        return {name: float(weight) for name, weight in sorted(found.items())}
    raise InputError(
        f"{what} in a sketch: another version of grace-irl or other rollouts began this run; expected those of "
        "this run: begin a new one"
    )


def labels(components: Components, design: Design) -> dict[str, str]:
    """For each term, its label in the program. Labels are unique, and have at most `TERM_NAME` characters."""
    room = TERM_NAME - len(" (6)")
    whole = [components.listed[name].label for name in design]
    cut = [label if len(label) <= room else label[: room - 1] + "…" for label in whole]
    return dict(zip(design, unique(cut), strict=True))


def factors(components: Components, design: Design) -> dict[str, float]:
    """For each component, the factor by which the program multiplies it."""
    listed = components.listed
    return {name: float(f"{weight / listed[name].spread:.5g}") for name, weight in design.items()}


def source(components: Components, design: Design) -> str:
    """The program of a design."""
    listed, quantities, numbers = components.listed, components.quantities, components.numbers
    named = labels(components, design)
    entries: dict[str, str] = {}
    forms: set[Form] = set()
    rows: dict[str, str] = {}
    for name, factor in factors(components, design).items():
        one = listed[name]
        key = quoted(one.quantity)
        before, after, positive = f"before[{key}]", f"after[{key}]", False
        quantity = quantities.get(one.quantity)
        if quantity is None:
            after = "np.sum(np.square(action))"
        elif quantity.form == "change":
            entries[key] = numbers.lookup(quantity.first)
            single = len(quantity.first) == 1
            after, positive = f"abs({after} - {before})" if single else f"distance({before}, {after})", True
            forms |= set() if single else {"distance"}
        else:
            entries[key] = quantity.python(numbers)
            positive = quantity.form in ("distance", "norm", "turn")
            forms.add(quantity.form)
        rows[quoted(named[name])] = f"{factor!r} * {one.python(before, after, positive=positive)}"
    text = "".join([*rows.values(), *entries.values()])
    return written(
        "grace_irl.synthesis",
        "design.py.j2",
        {
            "about": "one term for each step" if len(design) == 1 else f"a sum of {len(design)} terms for each step",
            "helpers": (helpers(forms) or ("import numpy as np" if "np." in text else "")).strip(),
            "bounded": "bounded(" in text,
            "limit": repr(LIMIT),
            "moves": any(
                quantities[listed[name].quantity].form == "change"
                for name in design
                if listed[name].quantity in quantities
            ),
            "quantities": [line for key, value in entries.items() for line in _broken(key, value, 8)],
            "before": "before[" in text,
            "terms": [line for label, value in rows.items() for line in _broken(label, value, 12)],
        },
    )


def reasoning(components: Components, operator: str, design: Design, designs: Sequence[Design]) -> str:
    """One sentence about a design, or about its differences from the first parent."""
    clauses = [components.listed[name].said(weight) for name, weight in design.items()]
    parent = designs[0] if designs and operator not in ("plan", "different") else {}
    if operator == "plan":
        return f"This component pays more where {clauses[0]}."
    if not parent:
        return f"The reward is higher where {_joined(clauses)}."
    added = [name for name in design if name not in parent]
    dropped = [name for name in parent if name not in design]
    steps = [f"adds {_joined(added)}"] if added else []
    steps += [f"drops {_joined(dropped)}"] if dropped else []
    kept = [name for name in design if name in parent]
    if any(design[name] != parent[name] for name in kept):
        steps.append(f"weighs {_joined(kept)} anew")
    return f"The reward {_joined(steps)}."


def tidy(design: Design) -> Design:
    """Sort the terms by name, clip weights to `EXTREMES`, and round them to three digits."""
    low, high = EXTREMES
    return {
        name: three(math.copysign(min(high, max(low, abs(weight))), weight)) for name, weight in sorted(design.items())
    }


def three(weight: float) -> float:
    """A weight, rounded to three digits."""
    return float(f"{weight:.3g}")


def _is_weight(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and EXTREMES[0] <= abs(value) <= EXTREMES[1]  # type: ignore[arg-type]


def _broken(name: str, value: str, indent: int) -> list[str]:
    """An entry of a table, on several lines if it is long."""
    if indent + len(name) + len(value) + 3 <= WIDTH:
        return [f"{name}: {value},"]
    return [f"{name}: (", f"    {value}", "),"]


def _joined(words: Sequence[str]) -> str:
    """The words as a list in a sentence."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
