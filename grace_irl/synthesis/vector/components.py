"""Components, which are the summands of rewards for steps. Each has a quantity that it measures, a shape and a scale.

The scales come from rollouts, which are episodes of random actions. No constant of this module is specific to a task.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.states.record import RecordStates
from grace_irl.synthesis.vector.numbers import PlainNumbers, RecordNumbers, VectorNumbers
from grace_irl.synthesis.vector.quantities import MOST_GROUP, MOST_PAIRS, Quantity, distinct, quantities, unique

Floats = NDArray[np.float64]
Rollout = tuple[Any, NDArray[Any]]
"""The T+1 states of an episode, as vectors `(T+1, n)` or records, and its actions, `(T,)` or `(T, m)`."""
Shape = Literal["level", "lower", "near", "within", "fall", "effort"]

EFFORT = "effort"
"""Name of the action's squared length. It is used like the name of a quantity."""
QUANTILES = (0.02, 0.05, 0.1, 0.2, 0.5)
"""The scale of a component of the shape "near" or "within" is one of these quantiles of |v|. Here v is the value of the
component's quantity in the states of the rollouts."""
LIMIT = 1e5
"""Maximum absolute value of a component without its weight. It keeps rewards finite in all states that a policy may
visit."""
LEAST = 0.01
"""Minimum standard deviation of a component over the rollouts. Components that vary less are left out."""
MOST_STEPS = 4_000
"""Maximum number of steps of the rollouts from which scales are computed."""
FEW_STEPS = 1_000
"""Maximum number of steps that the search for quantities uses."""
ALIKE = 1.0
"""Two numbers are alike if their means, and also their standard deviations, differ by at most `ALIKE` times the larger
standard deviation."""
COUNTED = re.compile(r"\d\]?$")
"""The end of a name with an index in a list, such as "x3" or "joints[3]"."""
PRECISION = 1e-9
"""A quantity varies if its standard deviation is above `PRECISION` times its largest absolute value."""


@dataclass(frozen=True)
class Steps:
    """Steps of rollouts.

    Attributes:
        before, after: numbers `(N, n)` of the states before and after each step.
        effort: `(N,)` squared lengths of the actions.
    """

    before: Floats
    after: Floats
    effort: Floats


@dataclass(frozen=True)
class Component:
    """One summand of a reward, without its weight.

    Let u and v be the values of the quantity before and after a step, and s the scale:

    * level: v / s.  * lower: -v / s.  * near: exp(-|v| / s).  * within: 1 if |v| <= s, else 0.
    * fall: (u - v) / s.  * effort: -|action|² / s.

    Attributes:
        quantity: name of the quantity.
        shape: the formula, one of those above.
        scale: the scale s.
        quantile: for "near" and "within", the entry of `QUANTILES` from which the scale comes; else 0.
        spread: standard deviation of the component's values over the rollouts.
    """

    quantity: str
    shape: Shape
    scale: float
    quantile: float = 0.0
    spread: float = 1.0

    @property
    def name(self) -> str:
        """A unique name, such as "near distance(hand, goal) at 0.1"."""
        return f"{self.label} at {self.quantile:g}" if self.quantile else self.label

    @property
    def label(self) -> str:
        """The name without the quantile."""
        return self.shape if self.quantity == EFFORT else f"{self.shape} {self.quantity}"

    @property
    def kind(self) -> tuple[str, Shape]:
        """The quantity and the shape."""
        return self.quantity, self.shape

    def of(self, before: Floats, after: Floats) -> Floats:
        """The values `(N,)`, from the quantity's values before and after each step. Only "fall" uses `before`."""
        with np.errstate(over="ignore", invalid="ignore"):
            match self.shape:
                case "level":
                    found = after / self.scale
                case "lower" | "effort":
                    found = -after / self.scale
                case "near":
                    found = np.exp(-np.abs(after) / self.scale)
                case "within":
                    found = (np.abs(after) <= self.scale).astype(np.float64)
                case "fall":
                    found = (before - after) / self.scale
        return np.where(np.isnan(found), 0.0, np.clip(found, -LIMIT, LIMIT))

    def python(self, before: str, after: str, *, positive: bool) -> str:
        """A Python expression for the value. `positive` is whether the quantity cannot be negative."""
        scale = repr(self.scale)
        size = after if positive else f"abs({after})"
        match self.shape:
            case "level":
                return f"bounded({after} / {scale})"
            case "lower" | "effort":
                return f"bounded(-{after} / {scale})"
            case "near":
                return f"bounded(np.exp(-{size} / {scale}))"
            case "within":
                return f"float({size} <= {scale})"
            case "fall":
                return f"bounded(({before} - {after}) / {scale})"

    def said(self, weight: float) -> str:
        """A clause about where the component times its weight is high, such as "x is high"."""
        up = weight > 0
        match self.shape:
            case "level" | "lower":
                return f"{self.quantity} is {'high' if up == (self.shape == 'level') else 'low'}"
            case "near":
                return f"{self.quantity} is {'near' if up else 'far from'} 0"
            case "within":
                return f"the size of {self.quantity} is {'at most' if up else 'above'} {self.scale:.3g}"
            case "fall":
                return f"{self.quantity} {'falls' if up else 'rises'}"
            case "effort":
                return f"actions are {'small' if up else 'large'}"


@dataclass(frozen=True)
class Ordered:
    """The numbers of a state (see `PlainNumbers`) in the order of their names, with x10 after x9.

    If the numbers have names of their own, the order in which a state lists them does not matter. The axes of all
    places are in the same order, for example "hand_x" before "hand_y".
    """

    numbers: PlainNumbers
    order: tuple[int, ...]

    @classmethod
    def of(cls, numbers: PlainNumbers) -> Ordered:
        """Sort the numbers."""
        names = numbers.names
        return cls(numbers, tuple(sorted(range(len(names)), key=lambda i: (_spelt(names[i]), names[i], i))))

    @property
    def names(self) -> tuple[str, ...]:
        """See `PlainNumbers`."""
        names = self.numbers.names
        return tuple(names[i] for i in self.order)

    def values(self, states: Any) -> Floats:
        """See `PlainNumbers`."""
        return self.numbers.values(states)[:, list(self.order)]

    def part(self, index: int) -> str:
        """See `PlainNumbers`."""
        return self.numbers.part(self.order[index])

    def groups(self) -> list[tuple[int, ...]]:
        """See `PlainNumbers`."""
        places = {number: place for place, number in enumerate(self.order)}
        return sorted(tuple(sorted(places[i] for i in group)) for group in self.numbers.groups())

    def group_name(self, indices: tuple[int, ...]) -> str:
        """See `PlainNumbers`."""
        here = self._placed(indices)
        return self.numbers.group_name(next((each for each in self.numbers.groups() if {*each} == {*here}), here))

    def lookup(self, indices: tuple[int, ...]) -> str:
        """See `PlainNumbers`."""
        return self.numbers.lookup(self._placed(indices))

    def _placed(self, indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.order[i] for i in indices)


def _spelt(name: str) -> list[tuple[int, str]]:
    """Sort key of a name. Digits in a name are compared as numbers."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", name) if piece]


class Components:
    """All components that rollouts suggest.

    Args:
        rollouts: episodes of random actions.
        fields: names of a vector's numbers, or () if unknown.
        seed: seed of the choice of steps, if the rollouts have more than `MOST_STEPS` steps.

    Attributes:
        numbers: the numbers of states.
        quantities: quantities by name.
        listed: components by name.
        families: for each family, the names of its quantities that have components. The quantities of a family have the
            same form. Absolute values of single numbers have their own family, "size", because they would outnumber
            the lengths of vectors.
        shapes: the components of each quantity by shape.

    Raises:
        InputError: no rollouts, or states that are neither vectors nor records.
    """

    def __init__(self, rollouts: Sequence[Rollout], fields: Sequence[str], seed: int) -> None:
        self.numbers = _numbers(rollouts, fields)
        steps = self.steps(rollouts)
        rng = np.random.default_rng(seed)
        if len(steps.after) > MOST_STEPS:
            chosen = np.sort(rng.choice(len(steps.after), MOST_STEPS, replace=False))
            steps = Steps(steps.before[chosen], steps.after[chosen], steps.effort[chosen])
        few = np.linspace(0, len(steps.after) - 1, min(len(steps.after), FEW_STEPS)).astype(int)
        found = measured(self.numbers, steps.after[few])
        names = unique([quantity.name(self.numbers) for quantity in found])
        self.quantities: Mapping[str, Quantity] = dict(zip(names, found, strict=True))
        self.listed: dict[str, Component] = {}
        self.families: dict[str, list[str]] = {}
        self.shapes: dict[str, dict[Shape, list[Component]]] = {}
        for name in [*self.quantities, *([] if _choices([actions for _, actions in rollouts]) else [EFFORT])]:
            before, after = self._values(name, steps)
            for component in self._made(name, before, after):
                self.listed[component.name] = component
                self.shapes.setdefault(name, {}).setdefault(component.shape, []).append(component)
            if name in self.shapes:
                self.families.setdefault(self._family(name), []).append(name)

    def steps(self, rollouts: Sequence[Rollout]) -> Steps:
        """The steps of rollouts. Steps with numbers that are not finite are left out."""
        values = [self.numbers.values(states) for states, _ in rollouts]
        before, after = np.concatenate([each[:-1] for each in values]), np.concatenate([each[1:] for each in values])
        squares = [np.square(_flat(actions)).sum(axis=1) for _, actions in rollouts]
        effort = np.concatenate(squares)
        finite = np.isfinite(before).all(axis=1) & np.isfinite(after).all(axis=1) & np.isfinite(effort)
        return Steps(before[finite], after[finite], effort[finite])

    def value(self, component: Component, steps: Steps) -> Floats:
        """The values `(N,)` of a component at each step."""
        return component.of(*self._values(component.quantity, steps))

    def _values(self, name: str, steps: Steps) -> tuple[Floats, Floats]:
        """The values of a quantity before and after each step.

        For effort and quantities of the form "change", both values are the value of the step.
        """
        if name not in self.quantities:
            return steps.effort, steps.effort
        quantity = self.quantities[name]
        if quantity.form != "change":
            return quantity.value(steps.before), quantity.value(steps.after)
        moved = np.sqrt(((steps.after - steps.before)[:, list(quantity.first)] ** 2).sum(axis=1))
        return moved, moved

    def _family(self, name: str) -> str:
        if name not in self.quantities:
            return EFFORT
        quantity = self.quantities[name]
        return "size" if quantity.form == "norm" and len(quantity.first) == 1 else quantity.form

    def _made(self, name: str, before: Floats, after: Floats) -> Iterator[Component]:
        """The components of the quantity `name`, without those that hardly vary over the rollouts (`LEAST`)."""
        if not len(after):
            return
        if name not in self.quantities:
            yield from _varied(Component(name, "effort", _rounded(float(after.mean()))), before, after)
            return
        tiny = PRECISION * float(np.abs(after).max())
        spread = _rounded(float(after.std()))
        if spread <= tiny:
            return
        yield from _varied(Component(name, "level", spread), before, after)
        yield from _varied(Component(name, "lower", spread), before, after)
        # |x| is near 0 exactly when x is, so |x| needs no "near" and "within" besides those of x.
        scaled: tuple[Shape, ...] = () if self._family(name) == "size" else ("near", "within")
        for shape in scaled:
            scales: set[float] = set()
            for quantile in QUANTILES:
                scale = _rounded(float(np.quantile(np.abs(after), quantile)))
                if scale not in scales and (scale > tiny or shape == "within"):
                    scales.add(scale)
                    yield from _varied(Component(name, shape, scale, quantile), before, after)
        step = _rounded(float(np.sqrt(np.mean((after - before) ** 2))))
        if self.quantities[name].form not in ("change", "angle") and step > tiny:  # angles jump from 180 to -180
            yield from _varied(Component(name, "fall", step), before, after)


def measured(numbers: PlainNumbers, rows: Floats) -> list[Quantity]:
    """List the quantities of states with the numbers `(N, n)`, without knowledge of goal states."""
    if not len(rows):
        return []
    plain = quantities(numbers, [rows], rows[:0], np.zeros(rows.shape[1], dtype=np.bool_))
    return distinct(dict.fromkeys([*plain, *_between(numbers, rows)]), rows)


def _between(numbers: PlainNumbers, rows: Floats) -> list[Quantity]:
    """Differences between two numbers that are alike (`ALIKE`), and distances between two sequences of numbers.

    A distance needs two sequences of neighbouring numbers that are alike at each position. Such sequences may be places
    without names. Two places with names (`PlainNumbers.groups`) are compared axis by axis. A number outside all places
    is compared only if its name ends with an index (`COUNTED`).
    """
    means, spreads = rows.mean(axis=0), rows.std(axis=0)
    varied = spreads > PRECISION * np.abs(rows).max(axis=0)
    larger = np.maximum(np.maximum(spreads[:, None], spreads[None, :]), np.finfo(np.float64).tiny)
    apart = np.maximum(np.abs(means[:, None] - means), np.abs(spreads[:, None] - spreads)) / larger
    places = [group for group in numbers.groups() if len(group) <= MOST_GROUP]
    axes = varied & [bool(COUNTED.search(name)) for name in numbers.names]
    axes[[i for group in places for i in group]] = varied[[i for group in places for i in group]]
    alike = (apart <= ALIKE) & axes[:, None] & axes[None, :]
    for one, other in itertools.product(places, places):
        alike[np.ix_(one, other)] &= np.eye(len(one), len(other), dtype=np.bool_) * (
            one != other and len(one) == len(other)
        )
    pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(alike, 1))]
    closest = sorted(sorted(pairs, key=lambda pair: (round(float(apart[pair]), 9), pair))[:MOST_PAIRS])
    found = [Quantity("difference", (i,), (j,)) for i, j in closest]
    parts = [numbers.part(i) for i in range(len(means))]
    for i, j in closest:
        for size in range(2, MOST_GROUP + 1):
            one, other = tuple(range(i, i + size)), tuple(range(j, j + size))
            if i + size <= j and j + size <= len(means) and alike[one, other].all():
                whole = len({parts[k] for k in one}) == len({parts[k] for k in other}) == 1
                found += [Quantity("distance", one, other)] if whole else []
    return found


def _varied(component: Component, before: Floats, after: Floats) -> Iterator[Component]:
    """Yield the component with its spread, if the component varies enough."""
    if component.scale <= 0 and component.shape != "within":
        return
    spread = float(component.of(before, after).std())
    if spread >= LEAST:
        yield Component(component.quantity, component.shape, component.scale, component.quantile, spread)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _flat(actions: NDArray[Any]) -> Floats:
    return np.asarray(actions, dtype=np.float64).reshape(len(actions), -1)


def _choices(actions: Sequence[NDArray[Any]]) -> bool:
    """Whether all actions are whole numbers. Such actions are names of choices and have no length."""
    return all(bool((_flat(each) == np.round(_flat(each))).all()) for each in actions)


def _numbers(rollouts: Sequence[Rollout], fields: Sequence[str]) -> Ordered:
    if not rollouts:
        raise InputError("no rollouts; expected at least one episode of random actions")
    first = rollouts[0][0]
    return Ordered.of(NUMBERS.get(type(first), _of_vectors)(first, fields))


def _of_vectors(stack: Any, fields: Sequence[str]) -> PlainNumbers:
    if np.ndim(stack) != 2:
        raise InputError(f"states of shape {np.shape(stack)[1:]}; expected vectors or records")
    return VectorNumbers.of(fields, np.shape(stack)[1])


NUMBERS: Mapping[type, Callable[[Any, Sequence[str]], PlainNumbers]] = {
    RecordStates: lambda stack, _: RecordNumbers.of(stack),
}
"""By type of a stack of states: the function that finds the numbers. Stacks of other types contain vectors."""
