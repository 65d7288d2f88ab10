"""Search for the actor of grids in the training data: the one cell that changes in most steps that change a grid.

Prompts distinguish pure moves, the steps in which only the actor changes, from other steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Code = tuple[int, int, int]  # the three numbers of a cell, whose meaning is unknown
Place = tuple[int, int]  # row and column of a cell

ACTIVE = 0.5
"""Minimum share of steps that change the actor's cell, among the steps that change anything."""

STEADY = 0.95
"""Minimum share of the most frequent move, among all moves that the actor makes while its cell has a given code. If the
share is lower for any code, prompts do not say which move follows each code."""

MOST_CODES = 8
"""Maximum number of the actor's codes. With more codes, prompts do not say which move follows each code."""

MAX_STATES = 20_000
"""Maximum number of states in which the actor is searched, divided evenly among trajectories. Each trajectory gives its
first states, and at least two of them, even if the total then exceeds the maximum."""


@dataclass(frozen=True)
class Actor:
    """A number that exactly one cell of every searched state has. In most steps with a change, this cell changes.

    Attributes:
        channel: index of the number in a cell's code.
        number: the number.
        codes: the codes of the actor's cell in the searched states, sorted.
        moves: the actor's usual move in rows and columns, by the code of its cell before the move. Empty if a code has
            no steady move (`STEADY`), if all codes have the same move, or if there are more than `MOST_CODES` codes.
    """

    channel: int
    number: int
    codes: tuple[Code, ...]
    moves: dict[Code, Place] = field(default_factory=dict)

    def cells(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """A mask `(..., h, w)` of the cells of states `(..., h, w, 3)` that have the actor's number."""
        found: NDArray[np.bool_] = states[..., self.channel] == self.number
        return found

    def events(self, states: NDArray[Any]) -> frozenset[int]:
        """Find the steps of states `(n, h, w, 3)` that change a cell other than the actor's old and new cell.

        Step t leads to state t.
        """
        differs = (states[1:] != states[:-1]).any(axis=3)
        acts = self.cells(states)
        return frozenset((np.flatnonzero((differs & ~acts[1:] & ~acts[:-1]).any(axis=(1, 2))) + 1).tolist())


def find_actor(trajectories: Sequence[NDArray[Any]]) -> Actor | None:
    """Find the actor in the training data; None if no number of a cell meets the conditions of `Actor`.

    Args:
        trajectories: arrays `(n, h, w, 3)`, whose states are consecutive.
    """
    most = max(MAX_STATES // max(len(trajectories), 1), 2)
    stacks = [states[:most] for states in trajectories if len(states)]
    best: tuple[float, int, int] | None = None
    for channel in range(3):
        for number in _single(stacks, channel):
            share = _activity(stacks, channel, number)
            if share >= ACTIVE and (best is None or share > best[0]):
                best = share, channel, number
    if best is None:
        return None
    _, channel, number = best
    cells = np.concatenate([states[states[..., channel] == number] for states in stacks])
    codes = tuple(_code(row) for row in np.unique(cells, axis=0))
    return Actor(channel, number, codes, _moves(stacks, channel, number) if len(codes) <= MOST_CODES else {})


def _single(stacks: Sequence[NDArray[Any]], channel: int) -> list[int]:
    """Find the numbers of a channel that exactly one cell of every state has."""
    if not stacks:
        return []
    found, counts = np.unique(stacks[0][0][..., channel], return_counts=True)
    left = [int(number) for number in found[counts == 1]]
    for states in stacks:
        layer = states[..., channel]
        left = [number for number in left if ((layer == number).sum(axis=(1, 2)) == 1).all()]
    return left


def _activity(stacks: Sequence[NDArray[Any]], channel: int, number: int) -> float:
    """Among the steps that change anything, the share that changes a cell with this number; 0 if nothing changes."""
    changed = acted = 0
    for states in stacks:
        differs = (states[1:] != states[:-1]).any(axis=3)
        mask = states[..., channel] == number
        changed += int(differs.any(axis=(1, 2)).sum())
        acted += int((differs & (mask[1:] | mask[:-1])).any(axis=(1, 2)).sum())
    return acted / changed if changed else 0.0


def _moves(stacks: Sequence[NDArray[Any]], channel: int, number: int) -> dict[Code, Place]:
    """Map from the actor's code to its most frequent move. Steps in which the actor stays are not counted.

    The map is {} if a code has no steady move (`STEADY`), or if all codes have the same one.
    """
    counted: dict[Code, Counter[Place]] = {}
    for states in stacks:
        places = np.argwhere(states[..., channel] == number)[:, 1:].tolist()
        for time, (one, two) in enumerate(pairwise(places)):
            if one != two:
                code = _code(states[time, one[0], one[1]])
                counted.setdefault(code, Counter())[two[0] - one[0], two[1] - one[1]] += 1
    moves = {code: each.most_common(1)[0] for code, each in sorted(counted.items())}
    steady = all(count >= STEADY * counted[code].total() for code, (_, count) in moves.items())
    found = {code: move for code, (move, _) in moves.items()}
    return found if steady and len(set(found.values())) > 1 else {}


def _code(cell: Any) -> Code:
    a, b, c = (int(each) for each in cell)
    return a, b, c
