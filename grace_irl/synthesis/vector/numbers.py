"""The named numbers of a state that the terms of an additive reward read.

All are available twice: as arrays, for the fit, and as Python text, for the program of the reward.
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

        They are the counts that vary, and the distances to codes that are in at most 20 cells of every state. Distances
        are only to codes in the channel of the agent's own code.
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
"""Maximum number of real-valued vectors of one length for which the distances between them are numbers, too."""

DISTANCE = '''\
import numpy as np


def distance(one, other):
    """Euclidean distance of two arrays of one shape."""
    return np.sqrt(np.sum((one - other) ** 2))


'''


@dataclass(frozen=True)
class RecordNumbers:
    """The numbers in the parts of a record, and the distances between its real-valued vectors of equal length.

    In a goal environment the numbers of `achieved_goal` and `desired_goal` alone say little, unlike their distance.

    Attributes:
        sources: for each number, the name of its part and its index there; for a distance, the names of two parts.
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
