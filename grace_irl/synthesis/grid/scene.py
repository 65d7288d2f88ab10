"""A trajectory as a table of happenings: for every state, which things took part in what, and their features.

A *row* is one thing in one state. Its event is a column like any other, so that which event counts can be a constant
("open …") or named by a word of the instruction ("open …" beside "pick up …").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.synthesis.grid.perception import Perception

EVENTS = ("faced", "taken", "changed", "placed", "entered")
"""Happenings to a thing: the agent faces it, it goes from its cell, its code changes in place, it comes to a cell,
the agent stands on its cell at the start."""
SIDES = ("ahead", "behind", "left", "right")
"""Side of a thing, seen from the agent's first cell and heading. Left and right are exact up to a mirrored map."""


@dataclass(frozen=True)
class ThingRows:
    """Things and their features, N rows.

    Attributes:
        state: (N,) index of the state.
        event: (N,) index into EVENTS; -1 for things of the first state.
        codes: (N, 3) the thing's codes (those it had, for "taken" and "entered").
        sides: (N, 4) per entry of SIDES.
        cells: (N, 2) row and column.
    """

    state: NDArray[np.int64]
    event: NDArray[np.int64]
    codes: NDArray[np.int64]
    sides: NDArray[np.bool_]
    cells: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True)
class Scene:
    """A trajectory, perceived.

    Attributes:
        words: the instruction's words, in order.
        length: number of states.
        happenings: what happened to things, from the second state on (the first has nothing before it).
        things: the objects of the first state.
        states: the trajectory's states, (T+1, h, w, 3).
        objects: which of their cells hold a thing, (T+1, h, w).
    """

    words: tuple[str, ...]
    length: int
    happenings: ThingRows
    things: ThingRows
    states: NDArray[Any]
    objects: NDArray[np.bool_]


def look(states: NDArray[Any], words: tuple[str, ...], perception: Perception) -> Scene:
    """Perceives one trajectory of (T+1, h, w, 3) states under an instruction."""
    states = np.asarray(states, dtype=np.int64)
    objects = perception.objects(states)
    agent = perception.agent
    where = agent.positions(states) if agent is not None else None
    parts: list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []

    # A cell under the agent shows the agent, so its thing is unknown, now and one state earlier.
    seen = np.ones(objects.shape, dtype=np.bool_)
    if agent is not None:
        seen = states[..., agent.channel] != agent.code
    both = seen[1:] & seen[:-1]
    differs = (states[1:] != states[:-1]).any(axis=-1) & both
    for event, mask, source in (
        ("taken", differs & objects[:-1] & ~objects[1:], states[:-1]),
        ("changed", differs & objects[:-1] & objects[1:], states[1:]),
        ("placed", differs & ~objects[:-1] & objects[1:], states[1:]),
    ):
        found = np.argwhere(mask)
        parts.append((EVENTS.index(event), found[:, 0] + 1, found[:, 1:], source[tuple(found.T)]))

    if agent is not None and where is not None:
        steps = np.arange(1, len(states))
        if agent.heading_channel is not None:
            ahead = where[1:] + _headings(states, where, agent.heading_channel, dict(agent.headings))[1:]
            inside = ((ahead >= 0) & (ahead < states.shape[1:3])).all(axis=1)
            steps, ahead = steps[inside], ahead[inside]
            facing = objects[steps, ahead[:, 0], ahead[:, 1]]
            steps, ahead = steps[facing], ahead[facing]
            parts.append((EVENTS.index("faced"), steps, ahead, states[steps, ahead[:, 0], ahead[:, 1]]))
        steps = np.arange(1, len(states))
        over = objects[0, where[1:, 0], where[1:, 1]]
        steps, cells = steps[over], where[1:][over]
        parts.append((EVENTS.index("entered"), steps, cells, states[0, cells[:, 0], cells[:, 1]]))

    first = np.argwhere(objects[0])
    basis = None
    if agent is not None and where is not None and agent.heading_channel is not None:
        forward = _headings(states[:1], where[:1], agent.heading_channel, dict(agent.headings))[0]
        basis = (where[0], forward)
    return Scene(
        words=words,
        length=len(states),
        happenings=_rows(parts, basis),
        things=_rows([(-1, np.zeros(len(first), np.int64), first, states[0][tuple(first.T)])], basis),
        states=states,
        objects=objects,
    )


def _headings(
    states: NDArray[Any], where: NDArray[np.int64], channel: int, headings: dict[int, tuple[int, int]]
) -> NDArray[np.int64]:
    """The step ahead of the agent in each state; (T+1, 2), zero for a heading that the data never showed."""
    codes = states[np.arange(len(states)), where[:, 0], where[:, 1], channel]
    steps = np.zeros((len(states), 2), dtype=np.int64)
    for code, offset in headings.items():
        steps[codes == code] = offset
    return steps


def _rows(
    parts: list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]],
    basis: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
) -> ThingRows:
    state = np.concatenate([part[1] for part in parts]).astype(np.int64)
    event = np.concatenate([np.full(len(part[1]), part[0], np.int64) for part in parts])
    cells = np.concatenate([part[2].reshape(-1, 2) for part in parts]).astype(np.int64)
    codes = np.concatenate([part[3].reshape(-1, 3) for part in parts]).astype(np.int64)
    sides = np.zeros((len(state), 4), dtype=np.bool_)
    if basis is not None:
        origin, forward = basis
        right = np.array([-forward[1], forward[0]])
        along, across = (cells - origin) @ forward, (cells - origin) @ right
        sides = np.stack([along > 0, along < 0, across < 0, across > 0], axis=1)
    return ThingRows(state, event, codes, sides, cells)
