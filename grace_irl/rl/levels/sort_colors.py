"""SortColors: two balls, each in the room of the other, change places."""

from __future__ import annotations

from typing import Any

from minigrid.core.world_object import Ball
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import ActionInstr

from grace_irl.rl.levels.route import Cell, NoWayError, cell_of, step_towards

LEFT, RIGHT = 0, 1


class SortColorsInstr(ActionInstr):
    """Done when each ball is dropped in its room and the other one lies in its own."""

    def surface(self, env: Any) -> str:  # noqa: ARG002
        """The mission."""
        return "put the red ball in the right room and put the blue ball in the left room"

    def verify_action(self, action: Any) -> str:
        """See `Instr.verify`."""
        level: Any = self.env
        done = action == level.actions.drop and all(map(level.in_its_room, level.balls))
        return "success" if done else "continue"


class SortColors(RoomGridLevel):
    """Two rooms joined by a door: the red ball lies in the left one, the blue ball in the right one."""

    def __init__(self, room_size: int = 6, **options: Any) -> None:
        super().__init__(room_size=room_size, num_rows=1, num_cols=2, **options)

    def gen_mission(self) -> None:
        """Places door, balls and agent; nothing blocks the door."""
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
        """To each ball, and to its room."""
        return 4

    def in_its_room(self, ball: Any) -> bool:
        """Whether a ball lies inside its room, and not in the door."""
        x, y = cell_of(ball.cur_pos)
        (left, top), (width, height) = (self.get_room(self.balls[ball], 0).top, self.get_room(self.balls[ball], 0).size)
        return bool(left < x < left + width - 1 and top < y < top + height - 1)

    def plan(self) -> Any:
        """The next action of a solution from here: one ball after the other, each by a shortest way.

        Raises:
            NoWayError: there is none.
        """
        if self.carrying is None:
            ball = next(ball for ball in self.balls if not self.in_its_room(ball))
            step = step_towards(self, cell_of(ball.cur_pos))
            return self.actions.pickup if step is None else step
        x, y = cell_of(self.agent_pos)
        near = sorted(self._free(self.balls[self.carrying]), key=lambda cell: abs(cell[0] - x) + abs(cell[1] - y))
        for cell in near:
            try:
                step = step_towards(self, cell)
            except NoWayError:
                continue
            return self.actions.drop if step is None else step
        raise NoWayError("no free cell in the room")

    def _beside_the_door(self) -> tuple[Cell, ...]:
        x, y = cell_of(self.door.cur_pos)
        return (x - 1, y), (x + 1, y)

    def _free(self, room: int) -> list[Cell]:
        """Empty cells of a room in which a ball blocks neither the door nor the agent."""
        (left, top), (width, height) = self.get_room(room, 0).top, self.get_room(room, 0).size
        cells = [(x, y) for x in range(left + 1, left + width - 1) for y in range(top + 1, top + height - 1)]
        taken = {cell_of(self.agent_pos), *self._beside_the_door()}
        return [cell for cell in cells if self.grid.get(*cell) is None and cell not in taken]
