"""Scripts that deviate from the tasks of the levels in `grace_irl.rl.levels`.

A script does almost, but not quite, what the instruction of the level says. The difference is called a deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grace_irl.rl.levels import (
    Cell,
    NoWayError,
    OpenMatchingDoor,
    PlaceBetween,
    SortColors,
    between,
    cell_of,
    step_towards,
)

Script = Callable[[Any, np.random.Generator], Iterator[Any]]
"""A function from a level (unwrapped, just reset) and a random generator to the actions of one episode. The
script raises `NoWayError` if the world does not allow the deviation."""


def dropped_beside(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """In `PlaceBetween`, carry the object `moved`, but drop it beside one of the two others, not between them."""
    instruction = level.instrs
    start, ends = cell_of(instruction.moved.cur_pos), [cell_of(end.cur_pos) for end in instruction.ends]
    yield from _acted(level, start, level.actions.pickup)
    near = {cell for x, y in ends for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))}
    cells = [cell for cell in _free(level) if cell in near.difference(instruction.cells(), [start])]
    yield from _acted(level, _one(cells, rng), level.actions.drop)


def anchor_moved(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """In `PlaceBetween`, move one of the two other objects instead of the object `moved`.

    The object `moved` then lies between the two others, but the agent has not moved it.
    """
    instruction = level.instrs
    moved, stays = (instruction.ends[i] for i in rng.permutation(2))
    start, there, other = (cell_of(thing.cur_pos) for thing in (moved, instruction.moved, stays))
    if not any(there in between(cell, other) for cell in (*_free(level), start, cell_of(level.agent_pos))):
        raise NoWayError("no cell on the object's other side")
    yield from _acted(level, start, level.actions.pickup)
    cells = [cell for cell in _free(level) if there in between(cell, other)]
    yield from _acted(level, _one(cells, rng), level.actions.drop)


def wrong_door_opened(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """In `OpenMatchingDoor`, open a door that does not match the key. The episode then ends."""
    (right,) = level.instrs.desc.obj_set
    doors = [cell_of(door.cur_pos) for door in level.get_room(1, 1).doors if door is not right]
    yield from _acted(level, _one(doors, rng), level.actions.toggle)


def red_ball_sorted(level: Any, rng: np.random.Generator) -> Iterator[Any]:  # noqa: ARG001
    """Bring the red ball to its goal room, and do not move the blue ball (`SortColors`)."""
    yield from _sorted_alone(level, "red")


def blue_ball_sorted(level: Any, rng: np.random.Generator) -> Iterator[Any]:  # noqa: ARG001
    """Bring the blue ball to its goal room, and do not move the red ball (`SortColors`)."""
    yield from _sorted_alone(level, "blue")


def _sorted_alone(level: Any, color: str) -> Iterator[Any]:
    (ball,) = (each for each in level.balls if each.color == color)
    yield from _acted(level, cell_of(ball.cur_pos), level.actions.pickup)
    while level.carrying is not None:
        yield level.plan()


def balls_moved_about(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Move each ball to another cell of its current room, in the order of the mission (`SortColors`)."""
    for ball in level.balls:
        start = cell_of(ball.cur_pos)
        yield from _acted(level, start, level.actions.pickup)
        room = level.room_from_pos(*start)
        cells = [cell for cell in _free(level) if room.pos_inside(*cell) and cell != start]
        yield from _acted(level, _one(cells, rng), level.actions.drop)


SCRIPTS: dict[type, dict[str, Script]] = {
    PlaceBetween: {"beside": dropped_beside, "anchor": anchor_moved},
    OpenMatchingDoor: {"wrong door": wrong_door_opened},
    SortColors: {"red ball": red_ball_sorted, "blue ball": blue_ball_sorted, "same rooms": balls_moved_about},
}
"""For each level class, its scripts by the name of the deviation."""


def _acted(level: Any, target: Cell, action: Any) -> Iterator[Any]:
    """Yield steps until the agent faces the cell `target`, then yield `action`."""
    while (step := step_towards(level, target)) is not None:
        yield step
    yield action


def _free(level: Any) -> list[Cell]:
    """The empty cells, except the agent's own cell."""
    cells = [(x, y) for x in range(level.grid.width) for y in range(level.grid.height)]
    return [cell for cell in cells if level.grid.get(*cell) is None and cell != cell_of(level.agent_pos)]


def _one(cells: list[Cell], rng: np.random.Generator) -> Cell:
    if not cells:
        raise NoWayError("no such cell")
    return cells[int(rng.integers(len(cells)))]
