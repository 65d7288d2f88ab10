"""Perception of a grid world from data: who moves, which way a heading points, what is background.

Nothing here knows a code table. The agent is the code that stands in exactly one cell of every state and moves one
cell at a time; its heading is the channel of its cell that says which way it moves; background is what it leaves
behind and what the border is made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Code = tuple[int, int, int]
Offset = tuple[int, int]
OFFSETS: tuple[Offset, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))


@dataclass(frozen=True)
class Agent:
    """The one thing that moves.

    Attributes:
        channel, code: its cell is the only one whose `channel` holds `code`.
        heading_channel: the channel of its cell that holds the heading, or None if nothing turns.
        headings: heading code -> one step ahead, as (row, column); empty without a heading.
    """

    channel: int
    code: int
    heading_channel: int | None
    headings: tuple[tuple[int, Offset], ...]

    def positions(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Row and column of the agent in each state; shape (T+1, 2)."""
        return unique_positions(states[..., self.channel] == self.code)


@dataclass(frozen=True)
class Perception:
    """Facts that a set of grid trajectories shows.

    Attributes:
        agent: who acts, or None if nothing fits.
        background: cell codes that are not objects (floor and walls), commonest first.
    """

    agent: Agent | None
    background: tuple[Code, ...]

    def objects(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """True if a cell is neither background nor the agent; shape states.shape[:-1]."""
        mask = np.ones(states.shape[:-1], dtype=np.bool_)
        for code in self.background:
            mask &= ~(states == np.asarray(code)).all(axis=-1)
        if self.agent is not None:
            mask &= states[..., self.agent.channel] != self.agent.code
        return mask


def unique_positions(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row and column of the single True of each (h, w) mask of a (T, h, w) stack; shape (T, 2)."""
    flat = mask.reshape(len(mask), -1).argmax(axis=1)
    return np.stack(np.unravel_index(flat, mask.shape[1:]), axis=1).astype(np.int64)


def find_agent(stacks: Sequence[NDArray[Any]]) -> Agent | None:
    """The (channel, code) that stands in exactly one cell of every state and moves one cell at a time, most often."""
    best: tuple[int, int, int] | None = None
    for channel in range(3):
        shared = set.intersection(*(set(np.unique(stack[..., channel]).tolist()) for stack in stacks))
        for code in sorted(shared):
            masks = [stack[..., channel] == code for stack in stacks]
            if not all((mask.sum(axis=(1, 2)) == 1).all() for mask in masks):
                continue
            steps = np.concatenate([np.abs(np.diff(unique_positions(mask), axis=0)).sum(axis=1) for mask in masks])
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
    """The channel of the agent's cell whose code says which way the next step goes, and what each code says."""
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
                if any(step):
                    votes.setdefault(after, Counter())[(step[0], step[1])] += 1
                elif before != after:
                    turns[(before, after)] += 1
        total = sum(sum(counter.values()) for counter in votes.values())
        if total == 0 or not 2 <= len(seen) <= 4:
            continue
        headings = {heading: counter.most_common(1)[0][0] for heading, counter in votes.items()}
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
    """Gives headings that never moved an offset no other heading has: opposite to one that it never turns into."""
    for heading in sorted(seen - set(headings)):
        free = [offset for offset in OFFSETS if offset not in headings.values()]
        # A turn goes to a neighbouring direction, so a heading that is never reached in one turn lies opposite.
        neighbours = {b if a == heading else a for a, b in turns if heading in (a, b)}
        across = [
            offset
            for offset in free
            for other, (row, column) in headings.items()
            if offset == (-row, -column) and other not in neighbours
        ]
        headings[heading] = (across or free)[0]


def find_background(stacks: Sequence[NDArray[Any]], agent: Agent | None) -> tuple[Code, ...]:
    """Codes of cells that are not things: what the agent leaves behind and what most of the border is made of."""
    left: Counter[Code] = Counter()
    border: Counter[Code] = Counter()
    everything: Counter[Code] = Counter()
    for stack in stacks:
        cells, counts = np.unique(stack[0].reshape(-1, 3), axis=0, return_counts=True)
        everything.update({_code(cell): int(count) for cell, count in zip(cells, counts, strict=True)})
        edge = np.concatenate([stack[0][0], stack[0][-1], stack[0][1:-1, 0], stack[0][1:-1, -1]])
        border.update(_code(cell) for cell in edge)
        if agent is not None:
            where = agent.positions(stack)
            for t in np.flatnonzero(np.diff(where, axis=0).any(axis=1)).tolist():
                left[_code(stack[t + 1][tuple(where[t])])] += 1
    chosen = [counter.most_common(1)[0][0] for counter in (left, border) if counter]
    # Without an agent nothing is left behind: the commonest code of all stands in for the floor.
    chosen += [] if agent is not None and left else [everything.most_common(1)[0][0]]
    if agent is not None:
        chosen = [code for code in chosen if code[agent.channel] != agent.code]
    return tuple(sorted(set(chosen), key=lambda code: (-everything[code], code)))


def perceive(stacks: Sequence[NDArray[Any]]) -> Perception:
    """Perceives the world of these trajectories; each is a (T+1, h, w, 3) stack of states."""
    agent = find_agent(stacks)
    return Perception(agent, find_background(stacks, agent))


def _code(cell: NDArray[Any]) -> Code:
    first, second, third = cell.tolist()
    return int(first), int(second), int(third)
