"""Quantities that a reward measures in a state, such as a number, a distance between two places, or an angle.

A quantity is computed from the plain numbers of a state (`numbers`). Each quantity is available twice: as a function on
arrays, for the search, and as Python text, for the program of the reward.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.vector.numbers import WIDTH, PlainNumbers, fields_table
from grace_irl.text import packed, quoted

Floats = NDArray[np.float64]
Form = Literal["number", "difference", "distance", "norm", "angle", "turn", "change"]

FUNCTIONS: dict[Form, str] = {
    "distance": '''\
def distance(one, other):
    """Euclidean distance of two places."""
    return float(np.sqrt(np.sum((one - other) ** 2)))
''',
    "norm": '''\
def norm(vector):
    """Euclidean length of a vector."""
    return float(np.sqrt(np.sum(vector**2)))
''',
    "angle": '''\
def angle(cosine, sine):
    """The angle with this cosine and sine, in degrees from -180 to 180."""
    return float(np.degrees(np.arctan2(sine, cosine)))
''',
    "turn": '''\
def turn(one, other):
    """The angle between two directions, each a cosine and a sine, in degrees from 0 to 180."""
    across = one[0] * other[1] - one[1] * other[0]
    return abs(float(np.degrees(np.arctan2(across, one[0] * other[0] + one[1] * other[1]))))
''',
}
"""Python for the functions that quantities of some forms call."""


NATS: dict[Form, float] = {
    "number": 0.0,
    "distance": 0.0,
    "norm": 0.0,
    "difference": 0.5,
    "turn": 0.0,
    "angle": 0.5,
    "change": 2.0,
}
"""Description length of each form in nats. It is higher for forms that define goals less often than distances do."""
FEW_AXES = {1: 2.0, 2: 1.0}
"""By number of axes: additional nats of a distance, if the axes are no named group. Most places have more than two
axes."""


@dataclass(frozen=True)
class Quantity:
    """A real-valued function of the n plain numbers of a state.

    * number: x_i.  * difference: x_i - x_j.  * distance: |x_I - x_J|.  * norm: |x_I|.
    * angle: the angle whose cosine and sine are x_I, in degrees from -180 to 180.
    * turn: the angle between two directions x_I and x_J, each a cosine and a sine, in degrees from 0 to 180.
    * change: |x_I - y_I| with the previous state y; 0 in the first state of an episode.

    Attributes:
        form: name of the function.
        first, second: indices of numbers, I and J above.
    """

    form: Form
    first: tuple[int, ...]
    second: tuple[int, ...] = ()

    def value(self, numbers: Floats) -> Floats:
        """The values `(T+1,)` along an episode whose states have these numbers `(T+1, n)`."""
        one, other = numbers[:, list(self.first)], numbers[:, list(self.second)]
        match self.form:
            case "number":
                return one[:, 0]
            case "difference":
                return one[:, 0] - other[:, 0]
            case "distance":
                return _length(one - other)
            case "norm":
                return _length(one)
            case "angle":
                return np.asarray(np.degrees(np.arctan2(one[:, 1], one[:, 0])))
            case "turn":
                across = one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]
                return np.asarray(np.abs(np.degrees(np.arctan2(across, (one * other).sum(axis=1)))))
            case "change":
                return _length(np.diff(one, axis=0, prepend=one[:1]))

    def name(self, numbers: PlainNumbers) -> str:
        """A short name, such as "distance(hand, goal)"."""
        one = numbers.group_name(self.first)
        other = numbers.group_name(self.second) if self.second else ""
        match self.form:
            case "number":
                return one
            case "difference":
                return f"{one} - {other}"
            case _:
                return f"{self.form}({one}, {other})" if other else f"{self.form}({one})"

    def nats(self, numbers: PlainNumbers) -> float:
        """Description length in nats, without the nats of choosing the quantity."""
        axes = 0.0
        if self.form == "distance" and self.first not in numbers.groups():
            axes = FEW_AXES.get(len(self.first), 0.0)
        return NATS[self.form] + axes

    def python(self, numbers: PlainNumbers) -> str:
        """A Python expression for the value in `state`. It may call functions of `FUNCTIONS`."""
        one = numbers.lookup(self.first)
        match self.form:
            case "number":
                return one
            case "difference":
                return f"{one} - {numbers.lookup(self.second)}"
            case "angle":
                return f"angle({', '.join(numbers.lookup((each,)) for each in self.first)})"
            case "change":
                return f"self.change({one})"
            case _:
                return f"{self.form}({one}, {numbers.lookup(self.second)})" if self.second else f"{self.form}({one})"


def _length(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt((vectors**2).sum(axis=1)))


@dataclass(frozen=True)
class Measures:
    """Quantities as the numbers that the terms of an additive reward read (see `Numbers`)."""

    numbers: PlainNumbers
    quantities: tuple[Quantity, ...]

    @classmethod
    def plain(cls, numbers: PlainNumbers) -> Measures:
        """Make measures of the plain numbers alone."""
        return cls(numbers, tuple(Quantity("number", (i,)) for i in range(len(numbers.names))))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(unique([quantity.name(self.numbers) for quantity in self.quantities]))

    @property
    def forms(self) -> tuple[str, ...]:
        return tuple(quantity.form for quantity in self.quantities)

    def values(self, states: Any) -> Floats:
        plain = self.numbers.values(states)
        columns = [quantity.value(plain) for quantity in self.quantities]
        return np.stack(columns, axis=1) if columns else np.zeros((len(plain), 0))

    def reader(self, used: Mapping[int, str]) -> str:
        places, functions = self._places(used), len(used) > len(self._places(used))
        if places and functions:
            return "float(number(state) if callable(number) else state[number])"
        return "float(number(state))" if functions else "float(state[number])"

    def table(self, used: Mapping[int, str]) -> str:
        places = self._places(used)
        entries = [f"{quoted(self.names[i])}: ({place}, {used[i]})" for i, place in places.items()]
        others = [i for i in used if i not in places]
        rows = [(self.names[i], self.quantities[i].python(self.numbers), used[i]) for i in others]
        head = helpers({self.quantities[i].form for i in others})
        if not others:
            about = "# the numbers that count: place, and the expert's mean, deviation and range"
            return "\n".join([f"FIELDS = {{  {about}", *packed(entries, WIDTH), "}"])
        return fields_table(rows, f"{head}\n" if head else "", packed(entries, WIDTH))

    def _places(self, used: Iterable[int]) -> dict[int, int]:
        """For each used quantity that is a single number of a vector, the index of this number."""
        if self.numbers.lookup((0,)) != "state[0]":
            return {}
        return {i: self.quantities[i].first[0] for i in used if self.quantities[i].form == "number"}


def unique(names: Sequence[str]) -> list[str]:
    """Make names unique. A name that occurred before gets a number, as in "x (2)"."""
    found: list[str] = []
    for name in names:
        count = 1
        while (shown := name if count == 1 else f"{name} ({count})") in found:
            count += 1
        found.append(shown)
    return found


def helpers(forms: Collection[Form]) -> str:
    """Python for the functions that quantities of these forms call; "" if they call none."""
    called = [FUNCTIONS[form] for form in FUNCTIONS if form in forms]
    return "\n\n".join(["import numpy as np\n", *called]) + "\n" if called else ""


MOST_GROUP = 3
"""Maximum number of axes of a place or direction that is found without names."""
MOST_PAIRS = 60
"""Maximum number of pairs of numbers that count as axes of places without names. The pairs that converge most
(`NEARER`) are used."""
MOST_NAMED = 10
"""Distances between the named groups of one size are quantities if there are at most this number of such groups."""
NEARER = 0.4
"""The difference of two numbers converges if its root mean square in goal states is at most `NEARER` times its root
mean square in all states."""
FEWEST_GOALS = 4
"""With fewer goal states no difference converges, because any difference may be near 0 in a few states by chance."""
CLOSER = 0.75
"""If the difference of two places converges along one axis, this number replaces `NEARER` for the other axes."""
GLANCE = 256
"""Number of states in which `_directions` first tests pairs (cosine, sine). Only the pairs that pass are then tested in
all states."""
UNIT = 0.02
"""Maximum deviation of cosine² + sine² from 1."""


def quantities(
    numbers: PlainNumbers, episodes: Sequence[Floats], goals: Floats, left_out: NDArray[np.bool_]
) -> list[Quantity]:
    """List the quantities that may show whether a goal is reached, simple ones first.

    A group of numbers may be a place, a speed or a direction. Three kinds of groups are used: parts of a record, fields
    with names that differ only in the axis, and neighbouring numbers with differences that converge (`NEARER`).

    Args:
        numbers: the plain numbers of states.
        episodes: the numbers `(T+1, n)` of each episode.
        goals: the numbers `(G, n)` of the goal states.
        left_out: `(n,)` whether each number is left out of all quantities.
    """
    rows = np.concatenate(episodes)
    varied = [i for i in range(rows.shape[1]) if np.ptp(rows[:, i]) > 0]
    named = numbers.groups()
    found = [Quantity("number", (i,)) for i in varied]
    found += [Quantity("norm", (i,)) for i in varied if rows[:, i].min() < 0 < rows[:, i].max()]
    directions = _directions(numbers, rows, varied)
    found += [Quantity("angle", each) for each in directions]
    found += [Quantity("turn", *pair) for pair in _pairs(directions)]
    sizes: dict[int, list[tuple[int, ...]]] = {}
    for group in named:
        found.append(Quantity("norm", group))
        sizes.setdefault(len(group), []).append(group)
    for alike in sizes.values():
        if len(alike) <= MOST_NAMED:
            found += [Quantity("distance", *pair) for pair in _pairs(alike)]
    ratios = _ratios(rows, goals if len(goals) >= FEWEST_GOALS else rows)
    ratios[left_out] = ratios[:, left_out] = np.inf
    close = [(i, j) for i, j in _closest(ratios) if i != j]
    found += [Quantity("difference", (i,), (j,)) for i, j in close]
    found += [Quantity("distance", (i,), (j,)) for i, j in close]
    for one, other in _windows(numbers, ratios):
        found.append(Quantity("norm", one) if one == other else Quantity("distance", one, other))
    found += [Quantity("change", (i,)) for i in varied]
    found += [Quantity("change", group) for group in named]
    read = (one for one in dict.fromkeys(found) if not left_out[[*one.first, *one.second]].any())
    return distinct(read, rows)


def distinct(listed: Iterable[Quantity], rows: Floats) -> list[Quantity]:
    """Drop quantities that equal an earlier one in these rows `(N, n)`, up to a factor and an added constant.

    Such copies are common, because observations often repeat a place. Quantities that are constant in the rows are
    kept. All changes are kept, too, because rows of several episodes do not determine the values of changes.
    """
    seen: set[bytes] = set()
    kept = []
    for quantity in listed:
        if quantity.form == "change":
            kept.append(quantity)
            continue
        values = quantity.value(rows)
        values = values - values.mean()
        size = np.abs(values).max(initial=0.0)
        values = np.round(values * np.sign(values[np.argmax(np.abs(values))]) / (size or 1.0), 5) + 0.0
        content = blake2b(values.data, digest_size=16).digest()  # needs less memory than the values
        if size == 0.0 or content not in seen:
            kept.append(quantity)
        seen.add(content)
    return kept


def _pairs(groups: Sequence[tuple[int, ...]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [(one, other) for k, one in enumerate(groups) for other in groups[k + 1 :] if not {*one} & {*other}]


def _directions(numbers: PlainNumbers, rows: Floats, varied: Sequence[int]) -> list[tuple[int, ...]]:
    """Pairs (cosine, sine): numbers of one part with squares that add up to 1 in every state."""
    found: list[tuple[int, ...]] = []
    for i, j in _pairs_on_circle(rows[:GLANCE], varied):
        if numbers.part(i) == numbers.part(j) and np.abs(rows[:, i] ** 2 + rows[:, j] ** 2 - 1).max() <= UNIT:
            pair = (j, i) if "sin" in numbers.names[i].lower() and "cos" in numbers.names[j].lower() else (i, j)
            found.append(pair)
    return found


def _pairs_on_circle(rows: Floats, columns: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The pairs of these columns with squares that add up to 1 in every row, in ascending order."""
    squares = rows[:, list(columns)] ** 2
    for k, i in enumerate(columns):
        apart = np.abs(squares[:, k : k + 1] + squares[:, k + 1 :] - 1).max(axis=0, initial=0.0)
        yield from ((i, columns[k + 1 + place]) for place in np.flatnonzero(apart <= UNIT).tolist())


def _closest(ratios: Floats) -> list[tuple[int, int]]:
    """The pairs that converge, sorted by index; at most `MOST_PAIRS`, those with the lowest ratios."""
    pairs = [(int(i), int(j)) for i, j in np.argwhere((ratios <= NEARER) & (np.triu(np.ones_like(ratios)) > 0))]
    return sorted(sorted(pairs, key=lambda pair: (ratios[pair], pair))[:MOST_PAIRS])


def _ratios(numbers: Floats, goals: Floats) -> Floats:
    """`(n, n)`: the root mean square of each difference in goal states, divided by that in all states.

    Differences that are small beside both of their numbers are rounding errors, and their ratio is infinite.
    """
    anywhere = _root_mean_square(numbers)
    size = np.abs(numbers).max(axis=0, initial=0.0)
    differs = anywhere > 1e-6 * np.maximum(size[:, None], size)
    return np.where(differs, _root_mean_square(goals) / np.where(differs, anywhere, 1.0), np.inf)


def _root_mean_square(values: Floats) -> Floats:
    """`(n, n)`: the root mean square of x_i - x_j over the rows, and of x_i on the diagonal."""
    moments = values.T @ values / len(values)
    squares = np.diag(moments)
    differences = squares[:, None] + squares[None, :] - 2 * moments
    np.fill_diagonal(differences, squares)
    return np.asarray(np.sqrt(np.maximum(differences, 0.0)))


def _windows(numbers: PlainNumbers, ratios: Floats) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of runs of neighbouring numbers, such that the differences between the two runs converge.

    Both runs have the same size. At least one axis fulfils `NEARER`, and all axes fulfil `CLOSER`. A pair of a run with
    itself stands for the norm of this run. The numbers of such a run are near 0 in goal states.
    """
    found = []
    for i, j in _closest(ratios):
        for size in range(2, MOST_GROUP + 1):
            for start in range(-size + 1, 1):
                one = tuple(range(int(i) + start, int(i) + start + size))
                other = tuple(range(int(j) + start, int(j) + start + size))
                apart = i == j or not {*one} & {*other}
                if apart and _within(numbers, one) and _within(numbers, other):
                    axes = ratios[list(one), list(other)]
                    found += [(one, other)] if (axes <= CLOSER).all() else []
    return list(dict.fromkeys(found))


def _within(numbers: PlainNumbers, run: Sequence[int]) -> bool:
    """Whether these numbers exist and are of one part of the state."""
    inside = run[0] >= 0 and run[-1] < len(numbers.names)
    return inside and len({numbers.part(i) for i in run}) == 1
