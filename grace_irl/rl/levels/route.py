"""The way to a cell of a grid that is seen whole: what the plans of our levels are made of."""

from __future__ import annotations

from collections import deque
from typing import Any

Cell = tuple[int, int]

_STEPS: tuple[Cell, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))  # by MiniGrid's direction


def cell_of(position: Any) -> Cell:
    """A position of MiniGrid's as a cell."""
    x, y = position
    return int(x), int(y)


def step_towards(level: Any, target: Cell) -> Any | None:
    """The first action on a shortest way to face a cell; None if the agent faces it.

    Closed doors on the way are opened. Everything else that stands in a cell is gone around.

    Args:
        level: a MiniGrid environment, unwrapped.
        target: what to face.

    Raises:
        NoWayError: the cell cannot be faced.
    """
    actions = level.actions
    start = (*cell_of(level.agent_pos), int(level.agent_dir))
    first: dict[tuple[int, int, int], Any] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        x, y, direction = state
        ahead = (x + _STEPS[direction][0], y + _STEPS[direction][1])
        if ahead == target:
            return first[state]
        moves = [((x, y, (direction - 1) % 4), actions.left), ((x, y, (direction + 1) % 4), actions.right)]
        cell = level.grid.get(*ahead)
        if cell is None or cell.can_overlap():
            moves.append(((*ahead, direction), actions.forward))
        elif cell.type == "door" and not cell.is_locked:
            moves.append(((*ahead, direction), actions.toggle))
        for reached, action in moves:
            if reached not in first:
                first[reached] = action if first[state] is None else first[state]
                queue.append(reached)
    raise NoWayError(f"no way to {target}")


class NoWayError(Exception):
    """Something that cannot be gone around is in the way."""
