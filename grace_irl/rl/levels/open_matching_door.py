"""OpenMatchingDoor: open the door that has the colour of the key."""

from __future__ import annotations

from typing import Any

from minigrid.core.constants import COLOR_NAMES
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.envs.babyai.core.verifier import ObjDesc, OpenInstr

from grace_irl.rl.levels.route import cell_of, step_towards

DOORS = 4


class OpenMatchingInstr(OpenInstr):
    """Opens a door of this colour, which the mission does not name; opening another door fails, as otherwise trying all
    of them would do."""

    def __init__(self, color: str) -> None:
        super().__init__(ObjDesc("door", color), strict=True)

    def surface(self, env: Any) -> str:  # noqa: ARG002
        """The mission."""
        return "open the door matching the key"


class OpenMatchingDoor(RoomGridLevel):
    """A room with a door of another colour in each wall, and one key, of the colour of one of them."""

    def __init__(self, room_size: int = 7, **options: Any) -> None:
        super().__init__(room_size=room_size, **options)

    def gen_mission(self) -> None:
        """Places doors, key and agent in the room in the middle."""
        colors = self._rand_subset(sorted(COLOR_NAMES), DOORS)
        doors = [self.add_door(1, 1, place, color, locked=False)[0] for place, color in enumerate(colors)]
        door = self._rand_elem(doors)
        self.add_object(1, 1, "key", door.color)
        self.place_agent(1, 1)
        self.check_objs_reachable()
        self.instrs = OpenMatchingInstr(door.color)

    def plan(self) -> Any:
        """The next action of a shortest solution from here.

        Raises:
            NoWayError: there is none.
        """
        (door,) = self.instrs.desc.obj_set
        step = step_towards(self, cell_of(door.cur_pos))
        return self.actions.toggle if step is None else step
