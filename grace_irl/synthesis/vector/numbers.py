"""The named numbers of a state that the terms of an additive reward read.

Each number is available twice: as an array, for the fit, and as Python text, for the program of the reward.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Template
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt

from grace_irl.programs.parsing import seen
from grace_irl.states.record import RECORD, RecordStates, places, spelled
from grace_irl.synthesis.grid.scene import Agent
from grace_irl.text import quoted

LONGEST = 40
"""Maximum number of characters of a field's name in a program."""
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

    @property
    def forms(self) -> tuple[str, ...]:
        """The form of each number: "number" for a plain number, else the form of a quantity, such as "distance"."""
        ...

    def values(self, states: Any) -> NDArray[np.float64]:
        """The numbers `(N, n)` of N states."""
        ...

    def reader(self, used: Mapping[int, str]) -> str:
        """A Python expression for one of the values, such as `float(state[number])`.

        The program has a table FIELDS with one entry for each number that it uses (see `table`). In the expression, the
        variable `number` is the first part of an entry: an index into the state, or a function of the state.
        """
        ...

    def table(self, used: Mapping[int, str]) -> str:
        """Python that defines FIELDS, a dictionary with an entry for the name of each number that the program uses.

        Args:
            used: for the index of each number that the program uses, a text with the experts' mean, spread and range.
                This text is the second part of the number's entry.
        """
        ...


class PlainNumbers(Protocol):
    """The n numbers that a state contains. Quantities are computed from them."""

    @property
    def names(self) -> tuple[str, ...]:
        """A readable, unique name for each number."""
        ...

    def values(self, states: Any) -> NDArray[np.float64]:
        """The numbers `(N, n)` of N states."""
        ...

    def part(self, index: int) -> str:
        """The name of the part of the state that contains a number; "" if the number is in no part."""
        ...

    def groups(self) -> list[tuple[int, ...]]:
        """Groups of numbers that have similar names or are in one part of the state, such as the axes of a place."""
        ...

    def group_name(self, indices: tuple[int, ...]) -> str:
        """A readable name for one or several numbers."""
        ...

    def lookup(self, indices: tuple[int, ...]) -> str:
        """A Python expression for one number of `state`, or for an array of several numbers."""
        ...


AXIS = re.compile(
    r"(?i)^(?P<stem>.*[a-z].*?)[ _./\[(-]*(?P<axis>[xyzw]|\d{1,2})[\])]*$"
    r"|^(?P<before>.*[ _.-])?(?P<inner>[xyz])(?P<after>[ _.-]+.+)?$"
)
"""A name with an axis: at its end, as in "hand_x" or "goal[1]", or before other words, as in "x of hand" or
"berth_x_m"."""
MOST_AXES = 8
"""Maximum number of axes of a group of fields."""


def stems(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Find groups of names that differ only in the axis.

    The result maps the common part of the names to the indices of the names. The names of a group are sorted by axis,
    so that groups with the same axes can be subtracted.
    """
    found: dict[str, dict[str, int]] = {}
    for i, name in enumerate(names):
        if match := AXIS.match(name):
            stem, axis = match["stem"], match["axis"] or match["inner"]
            if stem is None:
                stem = f"{match['before'] or ''}*{match['after'] or ''}"
            found.setdefault(stem, {}).setdefault(axis.lower(), i)
    groups = {
        stem: dict(sorted(axes.items(), key=_rank)) for stem, axes in found.items() if 2 <= len(axes) <= MOST_AXES
    }
    return {stem.replace("*", "".join(axes), 1): tuple(axes.values()) for stem, axes in groups.items()}


def _rank(axis: tuple[str, int]) -> tuple[bool, int]:
    name = axis[0]
    return (True, int(name)) if name.isdigit() else (False, "xyzw".index(name))


@dataclass(frozen=True)
class VectorNumbers:
    """The components of a vector state."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, fields: Sequence[str], width: int) -> VectorNumbers:
        """Name the components of vectors of length `width`.

        In each name of `fields`, line breaks and runs of spaces become one space, and the name is cut to `LONGEST`
        characters. If the name is empty, occurs twice, or has the form x0, the component is named x0, x1, … by its
        index.
        """
        given = [" ".join(seen(name).split())[:LONGEST].strip() for name in fields[:width]]
        given += [""] * (width - len(given))
        places = [f"x{i}" for i in range(width)]
        usable = [bool(name) and given.count(name) == 1 and name not in places for name in given]
        return cls(tuple(given[i] if usable[i] or given[i] == places[i] else places[i] for i in range(width)))

    def values(self, states: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(states, dtype=np.float64)

    def part(self, index: int) -> str:
        """See `PlainNumbers`. Fields with names that differ only in the axis count as one part."""
        return next((stem for stem, group in self._stems.items() if index in group), "")

    @cached_property
    def _stems(self) -> dict[str, tuple[int, ...]]:
        return stems(["" if name == f"x{i}" else name for i, name in enumerate(self.names)])

    def groups(self) -> list[tuple[int, ...]]:
        return list(self._stems.values())

    def group_name(self, indices: tuple[int, ...]) -> str:
        if len(indices) == 1:
            return self.names[indices[0]]
        stem = next((stem for stem, group in self._stems.items() if group == indices), None)
        return stem if stem and stem not in self.names else ", ".join(self.names[i] for i in indices)

    def lookup(self, indices: tuple[int, ...]) -> str:
        return f"state[{_indexed(indices)}]"


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

        The numbers are the counts that vary, and the distances to codes that are in at most 20 cells of every state.
        These codes are in the channel of the agent's own code.
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

    @property
    def forms(self) -> tuple[str, ...]:
        return ("number",) * len(self.sources)

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

    def reader(self, used: Mapping[int, str]) -> str:  # noqa: ARG002
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
        return fields_table(entries, helper)


MOST_NUMBERS = 64
"""Parts of a record with more values than this are not read. They are mostly images."""


@dataclass(frozen=True)
class RecordNumbers:
    """The numbers in the parts of a record.

    Attributes:
        sources: for each number, the name of its part and its index in the part.
        places: for each one-dimensional part of two or more real numbers, the name of the part and the indices of its
            numbers in `sources`.
        whole: names of the parts of whole numbers. Programs convert whole numbers to floats, because the squares of
            whole numbers may overflow.
    """

    sources: tuple[tuple[str, tuple[int, ...]], ...]
    places: tuple[tuple[str, tuple[int, ...]], ...] = ()
    whole: frozenset[str] = frozenset()

    @classmethod
    def of(cls, states: RecordStates) -> RecordNumbers:
        """Find the numbers of records with the parts of these states. Texts and large parts are left out."""
        layout = [part for part in RECORD.layout(states) if not part.is_text]
        small = {part.name: part for part in layout if math.prod(part.shape) <= MOST_NUMBERS}
        sources = [(name, index) for name, index in places(states) if name in small]
        vectors: dict[str, list[int]] = {}
        for i, (name, index) in enumerate(sources):
            if len(index) == 1 and np.issubdtype(RECORD.handed(small[name]), np.floating):
                vectors.setdefault(name, []).append(i)
        groups = tuple((name, tuple(group)) for name, group in vectors.items() if len(group) > 1)
        whole = frozenset(name for name, part in small.items() if not np.issubdtype(RECORD.handed(part), np.floating))
        return cls(tuple(sources), groups, whole)

    @staticmethod
    def left_out(states: RecordStates) -> tuple[str, ...]:
        """Names of the parts that are left out: texts and large parts."""
        parts = RECORD.layout(states)
        return tuple(part.name for part in parts if part.is_text or math.prod(part.shape) > MOST_NUMBERS)

    @property
    def names(self) -> tuple[str, ...]:
        """See `PlainNumbers`."""
        return tuple(spelled(name, index) for name, index in self.sources)

    def values(self, states: RecordStates) -> NDArray[np.float64]:
        """See `PlainNumbers`."""
        columns = []
        for name, place in self.sources:
            index: Any = (slice(None), *place)
            columns.append(np.asarray(states.parts[name])[index].astype(np.float64))
        return np.stack(columns, axis=1) if columns else np.zeros((len(states), 0))

    def part(self, index: int) -> str:
        """See `PlainNumbers`. A row of a matrix is a part."""
        name, place = self.sources[index]
        return spelled(name, place[:-1]) if len(place) > 1 else name

    @cached_property
    def _groups(self) -> dict[str, tuple[int, ...]]:
        single = ["" if index else name for name, index in self.sources]
        return {**dict(self.places), **stems(single)}

    def groups(self) -> list[tuple[int, ...]]:
        """See `PlainNumbers`."""
        return list(self._groups.values())

    def group_name(self, indices: tuple[int, ...]) -> str:
        """See `PlainNumbers`."""
        if len(indices) == 1:
            return self.names[indices[0]]
        whole = next((name for name, group in self._groups.items() if group == indices), None)
        if whole is not None and whole not in self.names:
            return whole
        (name, place), *_ = ends = [self.sources[i] for i in indices]
        if not place or any(part != name or other[:-1] != place[:-1] for part, other in ends):
            return ", ".join(self.names[i] for i in indices)
        return f"{name}[{self._row(indices)}]"

    def lookup(self, indices: tuple[int, ...]) -> str:
        """See `PlainNumbers`. Whole numbers become floats."""
        (name, place), *_ = ends = [self.sources[i] for i in indices]
        found = f"state[{quoted(name)}]"
        if len(indices) == 1:
            found += f"[{', '.join(map(str, place))}]" if place else ""
            return f"float({found})" if name in self.whole else found
        if any(part != name or not other or other[:-1] != place[:-1] for part, other in ends):
            return f"np.array([{', '.join(self.lookup((i,)) for i in indices)}])"
        if (name, indices) not in self.places:
            found += f"[{self._row(indices)}]"
        return f"{found}.astype(float)" if name in self.whole else found

    def _row(self, indices: tuple[int, ...]) -> str:
        """Python for the index of several numbers in one row of a part."""
        places = [self.sources[i][1] for i in indices]
        return ", ".join([*map(str, places[0][:-1]), _indexed([place[-1] for place in places])])


def _indexed(indices: Sequence[int]) -> str:
    """Python for a single index, a slice of neighbouring indices, or a list of indices."""
    first, last = indices[0], indices[-1]
    if len(indices) == 1:
        return str(first)
    if list(indices) == list(range(first, last + 1)):
        return f"{first}:{last + 1}"
    return f"[{', '.join(map(str, indices))}]"


def fields_table(entries: Sequence[tuple[str, str, str]], helper: str, first: Sequence[str] = ()) -> str:
    """Python that defines FIELDS, with a function of the state as the first part of each entry.

    Args:
        entries: name, Python for the value, and text with mean, spread and range of each number.
        helper: definitions before FIELDS that the functions use.
        first: lines of other entries, which have an index into a vector instead of a function.
    """
    rows = []
    for name, value, measure in entries:
        lines = broken(f"    {quoted(name)}: (lambda state: {value},", f"{measure}),")
        if len(lines[0]) >= WIDTH:
            lines = [f"    {quoted(name)}: (", f"        lambda state: {value},", f"        {measure}),"]
        rows.append(lines)
    about = "# the numbers that count: how to find one, and the expert's mean, deviation and range"
    return "\n".join([f"{helper}FIELDS = {{  {about}", *first, *(line for row in rows for line in row), "}"])


def broken(head: str, tail: str) -> list[str]:
    """A row of a table in a program, on two lines if it is long."""
    return [f"{head} {tail}"] if len(head) + len(tail) < WIDTH else [head, f"     {tail}"]
