"""The terms of an additive reward, and the named numbers of a state that they read.

Both are available twice: as functions on arrays, for the fit, and as Python text, for the program of the reward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from string import Template
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt

from grace_irl.programs.parsing import seen
from grace_irl.states.record import RECORD, RecordStates, places, spelled
from grace_irl.synthesis.grid.scene import Agent
from grace_irl.text import packed, quoted

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
"""Python for a term of each shape. `a` is a number and `b` the threshold or the second number, both standardised."""
PAIRS: tuple[Shape, ...] = ("times", "against", "and")
"""Shapes with two numbers."""
RANGE = (0.005, 0.995)
"""Quantiles of the experts' values that are the ends of a number's range. Terms clip values to this range."""
FAR = 5.0
"""Limit on two distances, in standard deviations of the experts' values. Without it, one extreme value could outweigh
all other terms.

* The distance of a value from its range, in the term "outside".
* The distance of the ends of a range from the experts' mean."""


@dataclass(frozen=True)
class Term:
    """A continuous function of one or two numbers of the state, in units of the experts' standard deviations.

    Let z = (x - centre) / spread for a number x that is clipped to its range, and t = (threshold - centre) / spread:

    * minus: z - t.  * above: max(0, z - t).  * below: max(0, t - z).  * off: |z - t|.
    * times: z_1 z_2.  * against: |z_1 - z_2|.  * and: |z_1 + z_2|.

    Because of the clipping, these terms do not grow outside the experts' range. One more shape is the distance from the
    range:

    * outside: for each number the distance of x from its range, in spreads, limited to `FAR`; then their sum.

    Attributes:
        shape: name of the function.
        fields: indices of the numbers that the term reads: one or two; for "outside" one or more.
        centres, spreads: the experts' mean and standard deviation of each number, in the number's unit.
        ranges: lowest and highest value in the range of each number.
        threshold: threshold of a shape with one number, in the number's unit.
    """

    shape: Shape
    fields: tuple[int, ...]
    centres: tuple[float, ...]
    spreads: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]
    threshold: float = 0.0

    def value(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """The values `(N,)` of the term in N states, which are given by their numbers `(N, n)`."""
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

    @property
    def rounding(self) -> float:
        """Maximum change of the term, roughly, if each of its numbers is rounded to float32."""
        ends = np.abs(np.array(self.ranges)).max(axis=1)
        return float((EPSILON * ends / np.array(self.spreads)).sum())

    def name(self, names: Sequence[str]) -> str:
        """A short name of the term, such as "speed above 1.25" or "height times speed"."""
        if self.shape == "outside":
            return "outside the range"
        one, *other = (names[field] for field in self.fields)
        return f"{one} {self.shape} {other[0] if other else self.value_shown}"

    @property
    def value_shown(self) -> str:
        """The threshold as text."""
        return shown(self.threshold, self.spreads[0], 4)


def shown(value: float, unit: float, digits: int) -> str:
    """Format a number with `digits` significant digits, or more if `unit` is far smaller than the number.

    Args:
        value: the number.
        unit: scale of the differences that must stay visible, for example the standard deviation of such numbers.
        digits: number of digits.
    """
    needed = math.ceil(math.log10(abs(value) / unit)) if abs(value) > unit else 0
    return f"{value:.{min(17, digits + needed)}g}"


HINGES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Quantiles of the experts' values that become thresholds of the shapes "above" and "below"."""
EPSILON = float(np.finfo(np.float32).eps)
"""Maximum relative difference between a number and its neighbour in float32."""
RESOLUTION = 256
"""Least ratio of the standard deviation of a number, or of a term, to its change by one rounding to float32. At this
ratio a relative change of all states by 1e-7 moves rewards by about 0.7 % of their standard deviation."""


def vocabulary(
    experts: NDArray[Any],
    everything: NDArray[Any],
    max_pairs: int,
    max_watched: int = 0,
    conditions: NDArray[np.bool_] | None = None,
) -> list[Term]:
    """Build the candidate terms for states that are given by their n numbers.

    Numbers and terms that vary so little that rounding to float32 would move the reward are left out, and so are
    thresholds that close together.

    Args:
        experts: (N, n) numbers of the experts' states.
        everything: (M, n) numbers of all states, those of experts included.
        max_pairs: how many of the n numbers are combined in pairs, at most: those with the largest effect size.
        max_watched: how many of the n numbers the term "outside" reads, at most. It is the first term of the result.
            With 0 there is no such term.
        conditions: (n,) whether each number is read only in a pair with a number that is not a condition; None for
            none of them.
    """
    rounding, grain = (RESOLUTION * EPSILON * np.abs(rows).max(axis=0) for rows in (everything, experts))
    centre, spread, overall = experts.mean(axis=0), experts.std(axis=0), everything.std(axis=0)
    quantiles = np.quantile(experts, RANGE, axis=0)
    varied = (spread > 1e-6 * np.maximum(overall, 1e-12)) & (np.ptp(quantiles, axis=0) > grain)
    spread = np.where(varied, np.maximum(spread, grain), np.maximum(spread, overall))
    # A number that is constant for experts gets a wide range, because any difference from the constant may matter.
    quantiles = np.where(varied, quantiles, [[-np.inf], [np.inf]])
    ranges = np.clip(quantiles, centre - FAR * spread, centre + FAR * spread).T.tolist()
    usable = [i for i in range(experts.shape[1]) if overall[i] > rounding[i]]
    by_effect = sorted(usable, key=lambda i: -_effect(experts[:, i], everything[:, i]))
    own = np.ones(experts.shape[1], dtype=np.bool_) if conditions is None else ~conditions

    def term(shape: Shape, *fields: int, threshold: float = 0.0) -> Term:
        chosen = list(fields)
        middles, units = tuple(centre[chosen].tolist()), tuple(spread[chosen].tolist())
        return Term(shape, fields, middles, units, tuple((ranges[i][0], ranges[i][1]) for i in fields), threshold)

    watched = sorted([i for i in by_effect if own[i]][:max_watched])
    terms = []
    for i in usable:
        if own[i]:
            terms += [term(shape, i, threshold=float(centre[i])) for shape in ("minus", "off")]
            for threshold in _apart(np.quantile(experts[:, i], HINGES), grain[i]):
                terms += [term(shape, i, threshold=threshold) for shape in ("above", "below")]
    for i, j in combinations(by_effect[:max_pairs], 2):
        if own[i] or own[j]:
            terms += [term(shape, min(i, j), max(i, j)) for shape in PAIRS]
    terms = [one for one in terms if one.value(everything).std() > RESOLUTION * one.rounding]
    return [term("outside", *watched), *terms] if watched else terms


def _apart(values: NDArray[Any], gap: float) -> list[float]:
    """The different values, in ascending order, without those that are within `gap` of the one before."""
    kept: list[float] = []
    for value in np.unique(values).tolist():
        if not kept or value - kept[-1] > gap:
            kept.append(value)
    return kept


def _effect(experts: NDArray[Any], everything: NDArray[Any]) -> float:
    """Effect size of a number: how well it tells the experts' states from all states.

    It is the larger of two values of Cohen's d: one of the number itself, one of its distance from the experts' mean.
    """
    off = np.abs(everything - experts.mean())
    own = np.abs(experts - experts.mean())
    effects = []
    for one, other in ((experts, everything), (own, off)):
        pooled = np.sqrt((one.var() + other.var()) / 2)
        effects.append(abs(one.mean() - other.mean()) / pooled if pooled > 0 else 0.0)
    return float(max(effects))


LONGEST = 40
"""Maximum characters of a field's name in a program."""
WIDTH = 100
"""Width in characters at which long lines of a program are broken."""

STEPS_TO = Template('''\
import numpy as np


def steps_to(state, channel, code):
    """Rows plus columns to the nearest cell with this code; the grid's size where there is none."""
    here = np.argwhere(state[:, :, $channel] == $code)[:1]
    cells = np.argwhere(state[:, :, channel] == code)
    found = len(here) and len(cells)
    return np.abs(cells - here).sum(axis=1).min() if found else sum(state.shape[:2])


''')


class Numbers(Protocol):
    """The n named numbers that terms read from states of one kind."""

    @property
    def names(self) -> tuple[str, ...]:
        """A readable, unique name for each number."""
        ...

    def values(self, states: Any) -> NDArray[np.float64]:
        """The numbers `(N, n)` of N states."""
        ...

    @property
    def reader(self) -> str:
        """A Python expression for one of the values, such as `float(state[number])`.

        Its variable `number` is the first part of an entry in the program's table FIELDS, and says how to find the
        value: an index, or a function of the state.
        """
        ...

    def table(self, used: Mapping[int, str]) -> str:
        """Python that defines FIELDS, a dictionary with an entry for the name of each number that the program uses.

        Args:
            used: the numbers that the program uses. A key is the index of a number. The value is the second part of its
                entry: text with the experts' mean, spread and range.
        """
        ...


@dataclass(frozen=True)
class VectorNumbers:
    """The components of a vector state."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, fields: Sequence[str], width: int) -> VectorNumbers:
        """Name the components of vectors of length `width`.

        In each name of `fields`, line breaks and runs of spaces become one space, and the name is cut to `LONGEST`
        characters. Component i is called xi if its name is then empty, not unique, or one of x0, x1, … itself.
        """
        given = [" ".join(seen(name).split())[:LONGEST].strip() for name in fields[:width]]
        given += [""] * (width - len(given))
        places = [f"x{i}" for i in range(width)]
        usable = [bool(name) and given.count(name) == 1 and name not in places for name in given]
        return cls(tuple(given[i] if usable[i] or given[i] == places[i] else places[i] for i in range(width)))

    def values(self, states: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(states, dtype=np.float64)

    @property
    def reader(self) -> str:
        return "float(state[number])"

    def table(self, used: Mapping[int, str]) -> str:
        entries = [f"{quoted(self.names[i])}: ({i}, {measure})" for i, measure in used.items()]
        return "\n".join(
            [
                "FIELDS = {  # the numbers that count: place, and the expert's mean, deviation and range",
                *packed(entries, WIDTH),
                "}",
            ]
        )


@dataclass(frozen=True)
class GridNumbers:
    """Counts of the grid cells with each code, and taxicab distances from the agent to the nearest cell with a code.

    Attributes:
        sources: (kind, channel, code) of each number. For example, ("count", 0, 4) counts cells with 4 in channel 0.
        agent: the agent, or None. Without an agent there are no distances.
    """

    sources: tuple[tuple[Literal["count", "distance"], int, int], ...]
    agent: Agent | None

    @classmethod
    def of(cls, stacks: Sequence[NDArray[Any]], agent: Agent | None) -> GridNumbers:
        """Find the numbers of these trajectories, each a (T+1, h, w, 3) stack of states.

        They are the counts that vary, and the distances to codes that are in at most 20 cells of every state.
        """
        sources: list[tuple[Literal["count", "distance"], int, int]] = []
        for channel in range(3):
            codes = sorted({int(code) for stack in stacks for code in np.unique(stack[..., channel])})
            for code in codes:
                counts = np.concatenate([(stack[..., channel] == code).sum(axis=(1, 2)) for stack in stacks])
                if counts.min() < counts.max():
                    sources.append(("count", channel, code))
                if agent is not None and channel == agent.channel and code != agent.code and counts.max() <= 20:
                    sources.append(("distance", channel, code))
        return cls(tuple(sources), agent)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(
            f"{'cells with' if what == 'count' else 'steps to'} channel {channel} = {code}"
            for what, channel, code in self.sources
        )

    def values(self, states: NDArray[Any]) -> NDArray[np.float64]:
        columns = []
        for what, channel, code in self.sources:
            mask = states[..., channel] == code
            if what == "count":
                columns.append(mask.sum(axis=(1, 2)).astype(np.float64))
            else:
                columns.append(np.array([self._distance(one, state) for one, state in zip(mask, states, strict=True)]))
        return np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))

    def _distance(self, mask: NDArray[np.bool_], state: NDArray[Any]) -> float:
        assert self.agent is not None
        here = np.argwhere(state[..., self.agent.channel] == self.agent.code)
        if not (len(here) and mask.any()):  # the program returns the same value, see `STEPS_TO`
            return float(sum(mask.shape))
        return float(distance_transform_cdt(~mask, metric="taxicab")[tuple(here[0])])

    @property
    def reader(self) -> str:
        return "float(number(np.asarray(state).astype(int)))"

    def table(self, used: Mapping[int, str]) -> str:
        entries, helper = [], "import numpy as np\n\n"
        for i, measure in used.items():
            what, channel, code = self.sources[i]
            value = f"(state[:, :, {channel}] == {code}).sum()"
            if what == "distance" and self.agent is not None:
                value = f"steps_to(state, {channel}, {code})"
                helper = STEPS_TO.substitute(channel=self.agent.channel, code=self.agent.code)
            entries.append((self.names[i], value, measure))
        return _fields(entries, helper)


MOST_NUMBERS = 64
"""Maximum number of values in a part of a record that is read. Larger parts are mostly images."""

NEAREST_PARTS = 6
"""Maximum size of a group of parts of one shape. Smaller groups add the distances between their parts to the values."""

DISTANCE = '''\
import numpy as np


def distance(one, other):
    """Euclidean distance of two arrays of one shape."""
    return np.sqrt(np.sum((one - other) ** 2))


'''


@dataclass(frozen=True)
class RecordNumbers:
    """The numbers in the parts of a record, and the distances between real-valued parts of equal shape.

    In a goal environment the numbers of `achieved_goal` and `desired_goal` alone say little, unlike their distance.

    Attributes:
        sources: for each number the name of its part and its index there; for a distance the names of the two parts.
    """

    sources: tuple[tuple[str, tuple[int, ...] | str], ...]

    @classmethod
    def of(cls, states: RecordStates) -> RecordNumbers:
        """Find the numbers of records with the parts of these states. Texts and large parts are left out."""
        layout = [part for part in RECORD.layout(states) if not part.is_text]
        small = [part for part in layout if math.prod(part.shape) <= MOST_NUMBERS]
        names = {part.name for part in small}
        singles = [(name, index) for name, index in places(states) if name in names]
        real = [part for part in small if np.issubdtype(RECORD.handed(part), np.floating) and len(part.shape) == 1]
        alike: dict[tuple[int, ...], list[str]] = {}
        for part in real:
            alike.setdefault(part.shape, []).append(part.name)
        pairs = [pair for group in alike.values() if len(group) <= NEAREST_PARTS for pair in combinations(group, 2)]
        return cls((*singles, *pairs))

    @staticmethod
    def left_out(states: RecordStates) -> tuple[str, ...]:
        """Names of the parts that are left out: texts and large parts."""
        parts = RECORD.layout(states)
        return tuple(part.name for part in parts if part.is_text or math.prod(part.shape) > MOST_NUMBERS)

    @property
    def names(self) -> tuple[str, ...]:
        """See `Numbers`."""
        return tuple(
            f"distance({one}, {other})" if isinstance(other, str) else spelled(one, other)
            for one, other in self.sources
        )

    def values(self, states: RecordStates) -> NDArray[np.float64]:
        """See `Numbers`."""
        columns = []
        for one, other in self.sources:
            part = np.asarray(states.parts[one])
            if isinstance(other, str):
                difference = part.astype(np.float64) - states.parts[other].astype(np.float64)
                columns.append(np.sqrt((difference**2).sum(axis=1)))
            else:
                index: Any = (slice(None), *other)
                columns.append(part[index].astype(np.float64))
        return np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))

    @property
    def reader(self) -> str:
        """See `Numbers`."""
        return "float(number(state))"

    def table(self, used: Mapping[int, str]) -> str:
        """See `Numbers`."""
        entries, helper = [], ""
        for i, measure in used.items():
            one, other = self.sources[i]
            value = f"state[{quoted(one)}]"
            if isinstance(other, str):
                value, helper = f"distance({value}, state[{quoted(other)}])", DISTANCE
            elif other:
                value += f"[{', '.join(map(str, other))}]"
            entries.append((self.names[i], value, measure))
        return _fields(entries, helper)


def _fields(entries: Sequence[tuple[str, str, str]], helper: str) -> str:
    """Python that defines FIELDS, with a function of the state as the first part of each entry.

    Args:
        entries: name, Python for the value, and text with mean, spread and range of each number.
        helper: definitions before FIELDS that the functions use.
    """
    rows = (broken(f"    {quoted(name)}: (lambda state: {value},", f"{measure}),") for name, value, measure in entries)
    about = "# the numbers that count: how to find one, and the expert's mean, deviation and range"
    return "\n".join([f"{helper}FIELDS = {{  {about}", *(line for row in rows for line in row), "}"])


def broken(head: str, tail: str) -> list[str]:
    """A row of a table in a program, on two lines if it is long."""
    return [f"{head} {tail}"] if len(head) + len(tail) < WIDTH else [head, f"     {tail}"]
