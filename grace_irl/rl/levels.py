"""New levels in the style of BabyAI, because a language model may know BabyAI's own levels (GRACE, section A.3).

A level consists of its rooms, its instruction, and a planner that solves it. This module requires MiniGrid. `register`
registers the levels with Gymnasium as BabyAI-PlaceBetween-v0, BabyAI-OpenMatchingDoor-v0 and BabyAI-SortColors-v0.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

from minigrid.core.constants import COLOR_NAMES
from minigrid.core.world_object import Ball, WorldObj
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import OBJ_TYPES_NOT_DOOR, ActionInstr, ObjDesc, OpenInstr

LEFT, RIGHT = 0, 1


class SortColorsInstr(ActionInstr):
    """The task to bring the red ball to the right-hand room and the blue ball to the left-hand room.

    The task is done when both balls lie in their rooms after a drop.
    """

    def surface(self, env: Any) -> str:  # noqa: ARG002
        """The text of the mission."""
        return "put the red ball in the right room and put the blue ball in the left room"

    def verify_action(self, action: Any) -> str:
        """Return "success" if this action completed the task, else "continue"."""
        level: Any = self.env
        done = action == level.actions.drop and all(map(level.in_its_room, level.balls))
        return "success" if done else "continue"


class PlannedLevel(RoomGridLevel):
    """A level with a planner: `plan()` returns the next action of a solution, or raises `NoWayError`."""

    def act(self, target: Cell, action: Any) -> Any:
        """Return `action` if the agent faces the cell `target`, else the first action on a shortest path to face it."""
        step = step_towards(self, target)
        return action if step is None else step


class SortColors(PlannedLevel):
    """Two rooms with a door between them. The red ball starts in the left room, the blue ball in the right room."""

    def __init__(self, room_size: int = 6, **options: Any) -> None:
        super().__init__(room_size=room_size, num_rows=1, num_cols=2, **options)

    def gen_mission(self) -> None:
        """Place door, balls and agent, with no ball in front of the door."""
        self.door, _ = self.add_door(LEFT, 0, door_idx=0, locked=False)
        red, blue = Ball("red"), Ball("blue")
        self.balls = {red: RIGHT, blue: LEFT}
        for ball, goal in self.balls.items():
            self.place_in_room(LEFT + RIGHT - goal, 0, ball)
            if cell_of(ball.cur_pos) in self._beside_the_door():
                raise RejectSampling("a ball before the door")
        self.place_agent()
        self.check_objs_reachable()
        self.instrs = SortColorsInstr()

    def num_navs_needed(self, instr: Any) -> int:  # noqa: ARG002
        """Number of walks in a solution: to each ball and to its room. It determines MiniGrid's time limit."""
        return 4

    def in_its_room(self, ball: Any) -> bool:
        """Whether a ball lies inside its goal room. The cell of the door is not part of a room."""
        x, y = cell_of(ball.cur_pos)
        (left, top), (width, height) = (self.get_room(self.balls[ball], 0).top, self.get_room(self.balls[ball], 0).size)
        return bool(left < x < left + width - 1 and top < y < top + height - 1)

    def plan(self) -> Any:
        """The next action of a solution, which moves one ball after the other by shortest paths.

        Raises:
            NoWayError: there is no path, or no free cell in the ball's goal room.
        """
        if self.carrying is None:
            ball = next(ball for ball in self.balls if not self.in_its_room(ball))
            return self.act(cell_of(ball.cur_pos), self.actions.pickup)
        x, y = cell_of(self.agent_pos)
        near = sorted(self._free(self.balls[self.carrying]), key=lambda cell: abs(cell[0] - x) + abs(cell[1] - y))
        for cell in near:
            with suppress(NoWayError):
                return self.act(cell, self.actions.drop)
        raise NoWayError("no free cell in the room")

    def _beside_the_door(self) -> tuple[Cell, ...]:
        x, y = cell_of(self.door.cur_pos)
        return (x - 1, y), (x + 1, y)

    def _free(self, room: int) -> list[Cell]:
        """The cells of a room in which a ball may be dropped: empty, not beside the door, and without the agent."""
        (left, top), (width, height) = self.get_room(room, 0).top, self.get_room(room, 0).size
        cells = [(x, y) for x in range(left + 1, left + width - 1) for y in range(top + 1, top + height - 1)]
        taken = {cell_of(self.agent_pos), *self._beside_the_door()}
        return [cell for cell in cells if self.grid.get(*cell) is None and cell not in taken]


def between(one: Cell, other: Cell) -> list[Cell]:
    """The cells strictly between two cells in the same row or column; [] if the two share no row and no column."""
    (x, y), (u, v) = one, other
    if x == u:
        return [(x, row) for row in range(min(y, v) + 1, max(y, v))]
    if y == v:
        return [(column, y) for column in range(min(x, u) + 1, max(x, u))]
    return []


class PlaceBetweenInstr(ActionInstr):
    """The task to drop an object strictly between two others, in the same row or column.

    The task is done when the agent drops the object `moved` there. Moving one of the two others does not count.

    Args:
        moved: the object to move.
        ends: the two other objects.
    """

    def __init__(self, moved: WorldObj, ends: tuple[WorldObj, WorldObj]) -> None:
        super().__init__()
        self.moved = moved
        self.ends = ends

    def surface(self, env: Any) -> str:  # noqa: ARG002
        """The text of the mission."""
        moved, one, other = (f"the {each.color} {each.type}" for each in (self.moved, *self.ends))
        return f"put {moved} between {one} and {other}"

    def reset_verifier(self, env: Any) -> None:
        """Prepare for a new episode."""
        super().reset_verifier(env)
        self._carried: WorldObj | None = None

    def verify_action(self, action: Any) -> str:
        """Return "success" if this action completed the task, else "continue"."""
        before, self._carried = self._carried, self.env.carrying
        dropped = action == self.env.actions.drop and before is self.moved and self._carried is None
        return "success" if dropped and cell_of(self.moved.cur_pos) in self.cells() else "continue"

    def cells(self) -> list[Cell]:
        """Cells between the two objects `ends`.

        The result is [] if the agent carries one of these objects, or if one of them was a box and has been opened.
        """
        one, other = self.ends
        return between(cell_of(one.cur_pos), cell_of(other.cur_pos)) if all(map(self._lies, self.ends)) else []

    def _lies(self, end: WorldObj) -> bool:
        """Whether an object lies in its cell `cur_pos`. MiniGrid does not clear the `cur_pos` of an opened box."""
        return self.env.carrying is not end and self.env.grid.get(*cell_of(end.cur_pos)) is end


class PlaceBetween(PlannedLevel):
    """One room with three different objects. Two of them share a row or column, with an empty cell in between."""

    def __init__(self, room_size: int = 8, **options: Any) -> None:
        super().__init__(room_size=room_size, num_rows=1, num_cols=1, **options)

    def gen_mission(self) -> None:
        """Place the objects and the agent."""
        kinds = [(kind, color) for kind in OBJ_TYPES_NOT_DOOR for color in sorted(COLOR_NAMES)]
        chosen = self._rand_subset(kinds, 3)
        moved, *ends = (self.add_object(0, 0, kind, color)[0] for kind, color in chosen)
        cells = between(cell_of(ends[0].cur_pos), cell_of(ends[1].cur_pos))
        if not any(self.grid.get(*cell) is None for cell in cells):
            raise RejectSampling("no empty cell between the two others")
        if cell_of(moved.cur_pos) in cells:
            raise RejectSampling("the object lies between the others already")
        self.place_agent(0, 0)
        self.check_objs_reachable()
        self.instrs = PlaceBetweenInstr(moved, (ends[0], ends[1]))

    def num_navs_needed(self, instr: Any) -> int:  # noqa: ARG002
        """Number of walks in a solution: to the object and to its goal. It determines MiniGrid's time limit."""
        return 2

    def plan(self) -> Any:
        """The next action of a solution, by shortest paths.

        Raises:
            NoWayError: there is no path, or no empty goal cell.
        """
        instruction = self.instrs
        if self.carrying is None:
            return self.act(cell_of(instruction.moved.cur_pos), self.actions.pickup)
        cells = instruction.cells()
        empty = [cell for cell in cells if self.grid.get(*cell) is None]
        if not empty:
            raise NoWayError("no empty cell between the two others")
        x, y = cell_of(self.agent_pos)
        # The agent's own cell comes last, because the agent would have to leave it first.
        target = min(empty, key=lambda cell: (cell == (x, y), abs(cell[0] - x) + abs(cell[1] - y)))
        return self.act(target, self.actions.drop)


DOORS = 4


class OpenMatchingInstr(OpenInstr):
    """The task to open the door that has the colour of the key. The mission does not name the colour.

    The episode fails when the agent opens another door, so that the agent cannot simply try all doors.
    """

    def __init__(self, color: str) -> None:
        super().__init__(ObjDesc("door", color), strict=True)

    def surface(self, env: Any) -> str:  # noqa: ARG002
        """The text of the mission."""
        return "open the door matching the key"


class OpenMatchingDoor(PlannedLevel):
    """Nine rooms, with four doors and a key in the central room.

    Each wall of the central room has one door. The doors have different colours. The key has the colour of one door.
    """

    def __init__(self, room_size: int = 7, **options: Any) -> None:
        super().__init__(room_size=room_size, **options)

    def gen_mission(self) -> None:
        """Place doors, key and agent in the central room."""
        colors = self._rand_subset(sorted(COLOR_NAMES), DOORS)
        doors = [self.add_door(1, 1, place, color, locked=False)[0] for place, color in enumerate(colors)]
        door = self._rand_elem(doors)
        self.add_object(1, 1, "key", door.color)
        self.place_agent(1, 1)
        self.check_objs_reachable()
        self.instrs = OpenMatchingInstr(door.color)

    def plan(self) -> Any:
        """The next action of a shortest solution.

        Raises:
            NoWayError: there is no path.
        """
        (door,) = self.instrs.desc.obj_set
        return self.act(cell_of(door.cur_pos), self.actions.toggle)


LEVELS = {f"BabyAI-{level.__name__}-v0": level for level in (PlaceBetween, OpenMatchingDoor, SortColors)}


def register() -> None:
    """Register the levels with Gymnasium. Further calls have no effect."""
    import gymnasium

    for name, level in LEVELS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=f"{level.__module__}:{level.__name__}")


Cell = tuple[int, int]

_STEPS: tuple[Cell, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))  # change of (x, y) by a step right, down, left, up


def cell_of(position: Any) -> Cell:
    """The cell (x, y) of a position in MiniGrid, with Python integers."""
    x, y = position
    return int(x), int(y)


def step_towards(level: Any, target: Cell) -> Any | None:
    """The first action on a shortest path to face the cell `target`; None if the agent already faces this cell.

    The path opens doors that are closed but not locked, and avoids all other objects. To open a door and enter its cell
    counts as one step.

    Args:
        level: a MiniGrid environment, unwrapped.
        target: the cell to face.

    Raises:
        NoWayError: no path exists.
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
    """The planner finds no path or no empty goal cell, because objects are in the way."""
