"""The named numbers that an additive reward may use: their values, and how a program reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt

from grace_irl.programs.characters import seen
from grace_irl.synthesis.grid.perception import Agent
from grace_irl.synthesis.quote import packed, quoted

LONGEST = 40
"""Characters of a field's name that a program keeps."""
WIDTH = 100
"""Characters of the longest line that is broken by hand."""

STEPS_TO = Template('''
def steps_to(state, channel, code):
    """Rows plus columns to the nearest cell with this code; the grid's size where there is none."""
    here = np.argwhere(state[:, :, $channel] == $code)[:1]
    cells = np.argwhere(state[:, :, channel] == code)
    found = len(here) and len(cells)
    return np.abs(cells - here).sum(axis=1).min() if found else sum(state.shape[:2])


''')


class Numbers(Protocol):
    """Named numbers of a state."""

    @property
    def names(self) -> tuple[str, ...]:
        """A readable, unique name per number."""
        ...

    def values(self, states: NDArray[Any]) -> NDArray[np.float64]:
        """(N, n) for N states."""
        ...

    @property
    def reader(self) -> str:
        """Python for a number's value: over `state`, and `number` as the table says where it is."""
        ...

    def table(self, used: Mapping[int, str]) -> str:
        """Python that defines FIELDS: name -> (where the number is, usual value, spread, lowest, highest).

        Args:
            used: index of each number used -> the text of its usual value, spread and range.
        """
        ...


@dataclass(frozen=True)
class VectorNumbers:
    """The components of a vector state, by the names that the data gives them."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, fields: Sequence[str], width: int) -> VectorNumbers:
        """The data's own names, on one line and cut to `LONGEST`, where they tell the numbers apart; else x0, x1, …"""
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
    """Counts of cells with a code, and the agent's distance to the nearest of them, in cells along rows and columns.

    Attributes:
        sources: (what, channel, code) per number.
        agent: who acts, or None.
    """

    sources: tuple[tuple[Literal["count", "distance"], int, int], ...]
    agent: Agent | None

    @classmethod
    def of(cls, stacks: Sequence[NDArray[Any]], agent: Agent | None) -> GridNumbers:
        """The numbers that vary in these (T+1, h, w, 3) stacks."""
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
        if not mask.any():
            return float(sum(mask.shape))
        where = np.argwhere(state[..., self.agent.channel] == self.agent.code)[0]
        return float(distance_transform_cdt(~mask, metric="taxicab")[tuple(where)])

    @property
    def reader(self) -> str:
        return "float(number(np.asarray(state).astype(int)))"

    def table(self, used: Mapping[int, str]) -> str:
        lines, helper = [], ""
        for i, measure in used.items():
            what, channel, code = self.sources[i]
            value = f"(state[:, :, {channel}] == {code}).sum()"
            if what == "distance" and self.agent is not None:
                value = f"steps_to(state, {channel}, {code})"
                helper = STEPS_TO.substitute(channel=self.agent.channel, code=self.agent.code)
            head, tail = f"    {quoted(self.names[i])}: (lambda state: {value},", f"{measure}),"
            lines += [f"{head} {tail}"] if len(head) + len(tail) < WIDTH else [head, f"     {tail}"]
        about = "# the numbers that count: how to find one, and the expert's mean, deviation and range"
        return "\n".join(["import numpy as np\n\n" + helper + f"FIELDS = {{  {about}", *lines, "}"])
