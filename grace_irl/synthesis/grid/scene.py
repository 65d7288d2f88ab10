"""Perception of grid worlds: the agent and the background, and trajectories as tables of events.

A state is an (h, w, 3) grid of integer codes without names. Perception finds three kinds of codes in the data:
the agent's code, the codes of the directions that the agent faces, and the codes of the background (floor and walls).
Each cell that is neither the agent nor background holds a *thing*.

An event happens to a thing, for example "taken" if the thing disappears from its cell. A row of a table is one event:
the state, the kind of event, and the thing with its features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Code = tuple[int, int, int]
"""The codes of a cell in the three channels."""
Offset = tuple[int, int]
OFFSETS: tuple[Offset, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Offsets (row, column) of the four cells next to a cell."""


@dataclass(frozen=True)
class Agent:
    """The agent of a grid world, which is one cell.

    Attributes:
        channel, code: a channel, and the code in this channel that only the agent's cell has.
        heading_channel: channel of the agent's cell that holds the heading; None if there is no heading.
        headings: pairs of a heading code and the offset (row, column) of one step ahead; () without a heading.
    """

    channel: int
    code: int
    heading_channel: int | None
    headings: tuple[tuple[int, Offset], ...]

    def positions(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Row and column of the agent in each state, (T+1, 2)."""
        return unique_positions(states[..., self.channel] == self.code)

    def forward(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Offset of one step ahead of the agent in each state, (T+1, 2); (0, 0) for a code not in `headings`."""
        where = self.positions(states)
        codes = states[np.arange(len(states)), where[:, 0], where[:, 1], self.heading_channel]
        steps = np.zeros((len(states), 2), dtype=np.int64)
        for code, offset in self.headings:
            steps[codes == code] = offset
        return steps


@dataclass(frozen=True)
class Perception:
    """The agent and the background of a set of grid trajectories.

    Attributes:
        agent: the agent, or None if no cell moves like an agent.
        background: codes of cells without a thing (floor and walls), most frequent first.
    """

    agent: Agent | None
    background: tuple[Code, ...]

    def objects(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each cell holds a thing (not background, not the agent): (..., h, w) for (..., h, w, 3) states."""
        mask = np.ones(states.shape[:-1], dtype=np.bool_)
        for code in self.background:
            mask &= ~(states == np.asarray(code)).all(axis=-1)
        if self.agent is not None:
            mask &= states[..., self.agent.channel] != self.agent.code
        return mask


def unique_positions(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row and column of the only True in each of T masks: (T, 2) for (T, h, w)."""
    flat = mask.reshape(len(mask), -1).argmax(axis=1)
    return np.stack(np.unravel_index(flat, mask.shape[1:]), axis=1).astype(np.int64)


def find_agent(stacks: Sequence[NDArray[Any]]) -> Agent | None:
    """Find the agent of these trajectories, each a (T+1, h, w, 3) stack of states.

    The agent's code is in exactly one cell of every state, and moves by at most one cell at a time. If this holds for
    several codes, the agent has the code that moves most often. If no code moves like this, the result is None.
    """
    best: tuple[int, int, int] | None = None
    for channel in range(3):
        shared = set.intersection(*(set(np.unique(stack[..., channel]).tolist()) for stack in stacks))
        for code in sorted(shared):
            masks = [stack[..., channel] == code for stack in stacks]
            if not all((mask.sum(axis=(1, 2)) == 1).all() for mask in masks):
                continue
            steps = np.concatenate([np.abs(np.diff(unique_positions(mask), axis=0)).sum(axis=1) for mask in masks])
            # Other codes may be in exactly one cell, too: a goal square, or a thing that the agent carries along.
            moves = int((steps == 1).sum())
            if moves > 0 and (steps <= 1).all() and (best is None or moves > best[0]):
                best = (moves, channel, code)
    if best is None:
        return None
    _, channel, code = best
    heading_channel, headings = find_headings(stacks, channel, code)
    return Agent(channel, code, heading_channel, headings)


def find_headings(
    stacks: Sequence[NDArray[Any]], channel: int, code: int
) -> tuple[int | None, tuple[tuple[int, Offset], ...]]:
    """Find the channel that shows the agent's heading, and the offset of one step for each heading code.

    If no channel agrees with the agent's moves, return None and ().
    """
    best: tuple[float, int, dict[int, Offset]] | None = None
    for candidate in range(3):
        if candidate == channel:
            continue
        votes: dict[int, Counter[Offset]] = {}
        turns: Counter[tuple[int, int]] = Counter()
        seen: set[int] = set()
        for stack in stacks:
            where = unique_positions(stack[..., channel] == code)
            heading = stack[np.arange(len(stack)), where[:, 0], where[:, 1], candidate].astype(int).tolist()
            seen |= set(heading)
            for before, after, step in zip(heading, heading[1:], np.diff(where, axis=0).tolist(), strict=False):
                # After a move, the heading is the direction of the move. A turn does not change the position.
                if any(step):
                    votes.setdefault(after, Counter())[(step[0], step[1])] += 1
                elif before != after:
                    turns[(before, after)] += 1
        total = sum(sum(counter.values()) for counter in votes.values())
        if total == 0 or not 2 <= len(seen) <= 4:
            continue
        headings = {heading: counter.most_common(1)[0][0] for heading, counter in votes.items()}
        # 90 % agreement is enough: in some worlds the agent is also moved by other things, against its heading.
        agreement = sum(votes[heading][offset] for heading, offset in headings.items()) / total
        if agreement < 0.9 or len(set(headings.values())) != len(headings):
            continue
        _complete(headings, seen, turns)
        if best is None or agreement > best[0]:
            best = (agreement, candidate, headings)
    if best is None:
        return None, ()
    return best[1], tuple(sorted(best[2].items()))


def _complete(headings: dict[int, Offset], seen: set[int], turns: Counter[tuple[int, int]]) -> None:
    """Choose an unused offset for each heading code with which the agent never moved.

    Args:
        headings: offset by heading code. The function adds the chosen offsets.
        seen: all heading codes.
        turns: number of turns, by heading before and after.
    """
    for heading in sorted(seen - set(headings)):
        free = [offset for offset in OFFSETS if offset not in headings.values()]
        # The agent turns by 90 degrees at a time. So two headings may be opposite if no turn links them.
        neighbours = {b if a == heading else a for a, b in turns if heading in (a, b)}
        across = [
            offset
            for offset in free
            for other, (row, column) in headings.items()
            if offset == (-row, -column) and other not in neighbours
        ]
        headings[heading] = (across or free)[0]


def find_background(stacks: Sequence[NDArray[Any]], agent: Agent | None) -> tuple[Code, ...]:
    """Find the codes of cells without things: the most frequent code in cells that the agent has just left (floor), and
    the most frequent code on the border (walls)."""
    left: Counter[Code] = Counter()
    border: Counter[Code] = Counter()
    everything: Counter[Code] = Counter()
    for stack in stacks:
        # Cells are counted in first states only, because later states repeat most of them.
        cells, counts = np.unique(stack[0].reshape(-1, 3), axis=0, return_counts=True)
        everything.update({_code(cell): int(count) for cell, count in zip(cells, counts, strict=True)})
        edge = np.concatenate([stack[0][0], stack[0][-1], stack[0][1:-1, 0], stack[0][1:-1, -1]])
        border.update(_code(cell) for cell in edge)
        if agent is not None:
            where = agent.positions(stack)
            for t in np.flatnonzero(np.diff(where, axis=0).any(axis=1)).tolist():
                left[_code(stack[t + 1][tuple(where[t])])] += 1
    chosen = [counter.most_common(1)[0][0] for counter in (left, border) if counter]
    # If no agent leaves a cell, the most frequent code of all cells is taken for the floor.
    chosen += [] if agent is not None and left else [everything.most_common(1)[0][0]]
    if agent is not None:
        chosen = [code for code in chosen if code[agent.channel] != agent.code]
    return tuple(sorted(set(chosen), key=lambda code: (-everything[code], code)))


def perceive(stacks: Sequence[NDArray[Any]]) -> Perception:
    """Find the agent and the background of these trajectories, each a (T+1, h, w, 3) stack of states."""
    agent = find_agent(stacks)
    return Perception(agent, find_background(stacks, agent))


def _code(cell: NDArray[Any]) -> Code:
    first, second, third = cell.tolist()
    return int(first), int(second), int(third)


EVENTS = ("faced", "taken", "changed", "placed", "entered")
"""Events that happen to a thing:

* faced: the thing is in the cell ahead of the agent.
* taken: the thing disappears from its cell.
* changed: the code of the thing changes, and the thing stays in its cell.
* placed: the thing appears in a cell.
* entered: the agent stands on the cell where the thing was at the start."""
SIDES = ("ahead", "behind", "left", "right")
"""Sides on which a thing lies, seen from the agent's first cell and heading. Left and right are correct for grids
indexed [x, y] with y downwards, as in MiniGrid. In a mirrored or transposed grid, left and right are exchanged."""
HALVES = ("low rows", "high rows", "low columns", "high columns")
"""Halves of the grid, by the index of the row or column. If there is a middle row or column, it is in neither half."""


@dataclass(frozen=True)
class ThingRows:
    """A table with N rows. Each row is one thing in one state, with its features.

    Attributes:
        state: (N,) index of the state.
        event: (N,) index into EVENTS of the event that happens to the thing; -1 if the row is about no event.
        codes: (N, 3) codes of the thing in this state. For "taken", the codes are from the state before. For "entered",
            the codes are from the first state.
        sides: (N, 4) whether the thing lies on each of SIDES.
        halves: (N, 4) whether the thing lies in each of HALVES.
        cells: (N, 2) row and column of the thing.
        start: (M, 3) codes of the things in the first state.
    """

    state: NDArray[np.int64]
    event: NDArray[np.int64]
    codes: NDArray[np.int64]
    sides: NDArray[np.bool_]
    halves: NDArray[np.bool_]
    cells: NDArray[np.int64]
    start: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.state)


@dataclass(frozen=True)
class Scene:
    """A trajectory as a table of events.

    Attributes:
        words: words of the instruction, in order.
        length: number of states, T+1.
        happenings: the events, one per row. They begin at the second state, because an event needs a state before it.
        things: the things in the first state, one per row.
        states: states of the trajectory, (T+1, h, w, 3).
        objects: whether each cell holds a thing, (T+1, h, w).
    """

    words: tuple[str, ...]
    length: int
    happenings: ThingRows
    things: ThingRows
    states: NDArray[Any]
    objects: NDArray[np.bool_]


def look(states: NDArray[Any], words: tuple[str, ...], perception: Perception) -> Scene:
    """Convert a trajectory of (T+1, h, w, 3) states, and the words of its instruction, into a scene."""
    states = np.asarray(states, dtype=np.int64)
    objects = perception.objects(states)
    agent = perception.agent
    parts: list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []

    # The agent hides the thing in its cell. So a cell is compared only between states in which the agent is elsewhere.
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

    basis = None
    if agent is not None:
        where, steps = agent.positions(states), np.arange(1, len(states))
        if agent.heading_channel is not None:
            forward = agent.forward(states)
            basis = (where[0], forward[0])
            ahead = where[1:] + forward[1:]
            inside = ((ahead >= 0) & (ahead < states.shape[1:3])).all(axis=1)
            at, cells = steps[inside], ahead[inside]
            facing = objects[at, cells[:, 0], cells[:, 1]]
            at, cells = at[facing], cells[facing]
            parts.append((EVENTS.index("faced"), at, cells, states[at, cells[:, 0], cells[:, 1]]))
        over = objects[0, where[1:, 0], where[1:, 1]]
        cells = where[1:][over]
        parts.append((EVENTS.index("entered"), steps[over], cells, states[0, cells[:, 0], cells[:, 1]]))

    first = np.argwhere(objects[0])
    there = [(-1, np.zeros(len(first), np.int64), first, states[0][tuple(first.T)])]
    return Scene(
        words=words,
        length=len(states),
        happenings=_rows(parts, basis, states[0], objects[0]),
        things=_rows(there, basis, states[0], objects[0]),
        states=states,
        objects=objects,
    )


def _rows(
    parts: list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]],
    basis: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
    first: NDArray[np.int64],
    objects: NDArray[np.bool_],
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
    twice, most = 2 * cells, np.array(first.shape[:2]) - 1
    halves = np.stack(
        [half for axis in (0, 1) for half in (twice[:, axis] < most[axis], twice[:, axis] > most[axis])], 1
    )
    return ThingRows(state, event, codes, sides, halves, cells, first[objects])
