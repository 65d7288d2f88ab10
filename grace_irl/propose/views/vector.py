"""The view of vectors: rounded rows, with a table of the fields that separate positive from negative states best.

A field is one position in the vector, with the same meaning in every state.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Metadata, Role
from grace_irl.propose.tokens import cut, estimate


def field_statistics(expert_states: Any, negative_states: Any) -> list[dict[str, Any]]:
    """Mean, deviation and percentiles of every field on both sides; largest effect (Cohen's d) first."""
    expert, negative = np.asarray(expert_states, float), np.asarray(negative_states, float)
    table: list[dict[str, Any]] = []
    for i in range(expert.shape[1]):
        row: dict[str, Any] = {"field": i}
        for side, values in (("expert", expert[:, i]), ("negative", negative[:, i])):
            p5, p50, p95 = np.percentile(values, (5, 50, 95))
            row[side] = {"mean": values.mean(), "std": values.std(), "p5": p5, "p50": p50, "p95": p95}
        pooled = np.sqrt((expert[:, i].var() + negative[:, i].var()) / 2)
        row["d"] = (expert[:, i].mean() - negative[:, i].mean()) / pooled if pooled > 0 else 0.0
        table.append(row)
    return sorted(table, key=lambda row: -abs(row["d"]))


HELPER = f"from typing import Any\n\nimport numpy as np\n\n\n{inspect.getsource(field_statistics)}"
"""Source of `field_statistics` for prompts. A program that uses the function contains a copy of it, so that an exported
file needs no other module."""


MAX_FIELDS = 24
"""Maximum number of fields written per state. Of longer vectors, prompts write the fields that separate positive from
negative states best (by Cohen's d)."""

OF_SIDES = (
    "Statistics of the training states, expert (positive) against negative ones, largest effect first: "
    "field: mean, deviation (percentiles 5, 50, 95) | the same of negatives | Cohen's d"
)
OF_ROLES = (
    "Statistics of the states of experts against those of negatives, largest effect first: "
    "field: mean, deviation (percentiles 5, 50, 95) | the same of negatives | Cohen's d"
)
OF_ENDS = (
    "Statistics of all states against the last ones of episodes, largest difference first: "
    "field: mean, deviation (percentiles 5, 50, 95) | the same of last states | Cohen's d"
)
"""Headings of tables of `field_statistics`."""

HUGE = 1e15
"""Smallest number that is written with an exponent. Data sets may mark absent values with the largest float."""


class VectorView:
    """View of vectors `(n,)`. It rounds each number to about a tenth of its field's standard deviation."""

    modules, tokens_of, helps = "numpy", "values", True
    recalls = 1
    coarser = None  # states have no shorter form

    def __init__(self, items: Sequence[Labelled], metadata: Metadata) -> None:
        states = np.concatenate([self._numbers(item.trajectory.states) for item in items]).astype(np.float64)
        positive = np.concatenate([item.positive for item in items])
        self._items, self._width = items, states.shape[1]
        self._names = metadata.fields
        self._labels = [f"[{i}]" for i in range(self._width)]
        deviation = states.std(axis=0)
        self._decimals = [_decimals(float(each)) for each in deviation]
        self._constant = [i for i in range(self._width) if np.ptp(states[:, i]) == 0]
        self._low = states.min(axis=0)
        both = positive.any() and not positive.all()
        with np.errstate(all="ignore"):  # squares of huge numbers overflow
            self._table = field_statistics(states[positive], states[~positive]) if both else []
        order = [row["field"] for row in self._table] or list(range(self._width))
        varied = [i for i in order if i not in self._constant] or order[:1]
        self._shown = sorted(varied[:MAX_FIELDS])

    def _numbers(self, states: Any) -> NDArray[Any]:
        """The states as an array `(N, n)`."""
        return np.asarray(states)

    @property
    def about(self) -> str:
        """See `View`."""
        names = ""
        if self._names:
            names = " Fields: " + ", ".join(f"state[{i}] {name}" for i, name in enumerate(self._names)) + "."
        return f"A state is a numpy array of float64 with shape ({self._width},).{names}"

    def legend(self, tokens: int) -> str:
        """See `View`."""
        form = f"{self._form} Programs are handed the numbers unrounded."
        return cut("\n".join([form, *self._lines(tokens - estimate(form) - 1, self._table, OF_SIDES)]), tokens)

    def figures(self, tokens: int) -> str:
        """See `View`."""
        return cut("\n".join(self._lines(tokens, *self._of_roles)), tokens)

    @cached_property
    def _of_roles(self) -> tuple[list[dict[str, Any]], str]:
        """A table of `field_statistics` that compares the roles, or all states with the last ones, and its heading."""
        experts, negatives = (
            [self._numbers(item.trajectory.states) for item in self._items if item.demonstration.role == role]
            for role in get_args(Role)
        )
        sides, told = (experts, negatives), OF_ROLES
        if not experts or not negatives:
            every = experts or negatives
            sides, told = (every, [states[-1:] for states in every]), OF_ENDS
        one, other = (np.concatenate(side).astype(np.float64) for side in sides)
        with np.errstate(all="ignore"):  # squares of huge numbers overflow
            return field_statistics(one, other), told

    def _lines(self, tokens: int, table: Sequence[dict[str, Any]], told: str) -> list[str]:
        """Constant fields, and a table of `field_statistics` below its heading, in about `tokens` tokens."""
        lines = []
        if self._constant:
            values = ", ".join(f"{self._labels[i]}={self._low[i]:.4g}" for i in self._constant[:MAX_FIELDS])
            more = len(self._constant) - MAX_FIELDS
            lines.append(f"Constant in all data: {values}" + (f" and {more} more" if more > 0 else ""))
        rows = [self._row(row) for row in table if row["field"] not in self._constant]
        if rows:
            lines.append(told)
            room = tokens - estimate("\n".join(lines))
            for number, text in enumerate(rows):
                room -= estimate(text) + 1
                if room < 0 and number:
                    lines.append(f"[{len(rows) - number} more fields with smaller effects]")
                    break
                lines.append(text)
        return lines

    @property
    def _form(self) -> str:
        shown = "all fields in order" if len(self._shown) == self._width else f"fields {_ranges(self._shown)}"
        return (
            f"A state is written as a row [...] of rounded numbers: {shown}. "
            "Where few fields changed since the state shown before, only those are written: `[2]=0.31`; "
            "`as 3`: as in state 3."
        )

    def words(self, tokens: int) -> str:
        """See `View`. The result is "", because vectors have no codes to match with words of instructions."""
        del tokens
        return ""

    def _row(self, row: dict[str, Any]) -> str:
        index = row["field"]
        sides = []
        for side in ("expert", "negative"):
            mean, std, *rest = (self._number(index, row[side][key], 1) for key in ("mean", "std", "p5", "p50", "p95"))
            sides.append(f"{mean}, {std} ({' '.join(rest)})")
        name = f" {self._names[index]}" if self._names else ""
        return f"{self._labels[index]}{name}: {sides[0]} | {sides[1]} | {row['d']:+.2f}"

    def _number(self, index: int, value: float, more: int = 0) -> str:
        if abs(value) >= HUGE:
            return f"{value:.6g}"
        text = f"{value:.{self._decimals[index] + more}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text in ("-0", "") else text

    def state(self, state: NDArray[Any]) -> str:
        """See `View`. An example is `[1.25 0.01 -0.4]`."""
        return f"[{' '.join(self._number(i, float(state[i])) for i in self._shown)}]"

    def events(self, states: Any) -> None:
        """See `View`. The result is None, because no field is known to be an actor."""
        del states

    def change(self, before: NDArray[Any], after: NDArray[Any], *, apart: bool = False) -> str:
        """See `View`. An example is `[2]=0.31 [5]=1`. If over a third of the fields changed, return the whole row."""
        del apart
        pairs = [(i, self._number(i, float(before[i])), self._number(i, float(after[i]))) for i in self._shown]
        changed = [f"{self._labels[i]}={new}" for i, old, new in pairs if old != new]
        if not changed:
            return "no change"
        return " ".join(changed) if 3 * len(changed) <= len(self._shown) else self.state(after)


def _decimals(deviation: float) -> int:
    """Number of decimal places that shows about a tenth of `deviation`, the standard deviation of a field.

    The deviation is 0 in a constant field. It may overflow to inf or nan in a field with huge numbers.
    """
    return min(max(1 - math.floor(math.log10(deviation)), 0), 9) if 0 < deviation < math.inf else 3


def _ranges(numbers: Sequence[int]) -> str:
    """Write sorted numbers as ranges, such as `0..3, 7, 9..12`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}..{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
