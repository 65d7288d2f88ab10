"""PlaceBetween: pick one object up and drop it strictly between two others, on their row or column."""

from __future__ import annotations

from typing import Any

from minigrid.core.constants import COLOR_NAMES
from minigrid.core.world_object import WorldObj
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import OBJ_TYPES_NOT_DOOR, ActionInstr

from grace_irl.rl.levels.route import Cell, NoWayError, cell_of, step_towards


def between(one: Cell, other: Cell) -> list[Cell]:
    """The cells strictly between two cells of a row or a column; none if they share neither."""
    (x, y), (u, v) = one, other
    if x == u:
        return [(x, row) for row in range(min(y, v) + 1, max(y, v))]
    if y == v:
        return [(column, y) for column in range(min(x, u) + 1, max(x, u))]
    return []


class PlaceBetweenInstr(ActionInstr):
    """Done when the object itself is dropped strictly between the two others.

    If one of the others is moved so that the object lies between them, nobody has put it there, and the episode
    goes on.

    Args:
        moved: the object to be moved.
        ends: the two others.
    """

    def __init__(self, moved: WorldObj, ends: tuple[WorldObj, WorldObj]) -> None:
        super().__init__()
        self.moved = moved
        self.ends = ends

    def surface(self, env: Any) -> str:  # noqa: ARG002
        """The mission."""
        moved, one, other = (f"the {each.color} {each.type}" for each in (self.moved, *self.ends))
        return f"put {moved} between {one} and {other}"

    def reset_verifier(self, env: Any) -> None:
        """See `Instr.reset_verifier`."""
        super().reset_verifier(env)
        self._carried: WorldObj | None = None

    def verify_action(self, action: Any) -> str:
        """See `Instr.verify`."""
        before, self._carried = self._carried, self.env.carrying
        dropped = action == self.env.actions.drop and before is self.moved and self._carried is None
        return "success" if dropped and cell_of(self.moved.cur_pos) in self.cells() else "continue"

    def cells(self) -> list[Cell]:
        """Cells for the object; none while one of the others is carried, or once it was a box and was opened."""
        one, other = self.ends
        return between(cell_of(one.cur_pos), cell_of(other.cur_pos)) if all(map(self._lies, self.ends)) else []

    def _lies(self, end: WorldObj) -> bool:
        """Whether an object stands in a cell: MiniGrid keeps the position of a box that is gone."""
        return self.env.carrying is not end and self.env.grid.get(*cell_of(end.cur_pos)) is end


class PlaceBetween(RoomGridLevel):
    """One room with three different objects, two of which share a row or a column with an empty cell between them."""

    def __init__(self, room_size: int = 8, **options: Any) -> None:
        super().__init__(room_size=room_size, num_rows=1, num_cols=1, **options)

    def gen_mission(self) -> None:
        """Places the objects and the agent."""
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
        """Steps to the object, and to its goal."""
        return 2

    def plan(self) -> Any:
        """The next action of a shortest solution from here.

        Raises:
            NoWayError: there is none.
        """
        instruction = self.instrs
        if self.carrying is None:
            return self._act(cell_of(instruction.moved.cur_pos), self.actions.pickup)
        cells = instruction.cells()
        empty = [cell for cell in cells if self.grid.get(*cell) is None]
        if not empty:
            raise NoWayError("no empty cell between the two others")
        x, y = cell_of(self.agent_pos)
        # the cell under the agent comes last: it would have to step aside
        target = min(empty, key=lambda cell: (cell == (x, y), abs(cell[0] - x) + abs(cell[1] - y)))
        return self._act(target, self.actions.drop)

    def _act(self, target: Cell, action: Any) -> Any:
        step = step_towards(self, target)
        return action if step is None else step
