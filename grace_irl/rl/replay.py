"""Replay of a stored episode of BabyAI, from its first state and its actions. This module requires MiniGrid."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from minigrid.core.actions import Actions
from minigrid.core.constants import DIR_TO_VEC, OBJECT_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.roomgrid import Room
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from numpy.typing import NDArray

from grace_irl.rl.levels import SortColors

WALL, AGENT = OBJECT_TO_IDX["wall"], OBJECT_TO_IDX["agent"]


class ReplayedLevel(RoomGridLevel):
    """A level of BabyAI, rebuilt from the array of one state. It has no instruction, and its episode never ends.

    The array does not show the contents of boxes, or an object that the agent carries or stands on. The level lacks
    these hidden objects. So the replayed states differ from the stored states once a hidden object becomes visible or
    changes the effect of an action.

    Args:
        state: a full grid `(width, height, 3)` with MiniGrid's own codes, agent included, as in `MiniGridView`.

    Raises:
        ValueError: the array is not a grid of BabyAI's rooms with exactly one agent.
    """

    in_its_room = SortColors.in_its_room  # for the verifier of SortColors

    def __init__(self, state: NDArray[Any]) -> None:
        types = state[..., 0]
        agents, side = np.argwhere(types == AGENT), room_side(types)
        if len(agents) != 1 or side is None:
            raise ValueError(f"{len(agents)} agents, rooms of side {side}")
        x, y = (int(place) for place in agents[0])
        if state[x, y, 2] not in range(len(DIR_TO_VEC)):
            raise ValueError(f"direction {state[x, y, 2]}")
        columns, rows = ((length - 1) // (side - 1) for length in types.shape)
        super().__init__(room_size=side, num_rows=rows, num_cols=columns, max_steps=sys.maxsize)
        try:
            self.grid, _ = Grid.decode(state)
        except (AssertionError, KeyError, IndexError) as error:  # codes that MiniGrid does not have
            raise ValueError(f"unknown code: {error}") from None
        for place, cell in enumerate(self.grid.grid):
            if cell is not None:
                cell.cur_pos = (place % self.grid.width, place // self.grid.width)
        corners = [[(column * (side - 1), row * (side - 1)) for column in range(columns)] for row in range(rows)]
        self.room_grid = [[Room(corner, (side, side)) for corner in line] for line in corners]
        self.agent_pos, self.agent_dir = (x, y), int(state[x, y, 2])
        self.carrying = None
        self.step_count = 0

    def gen_obs(self) -> Any:
        """Return an empty observation, because the replay uses none."""
        return {}

    def step(self, action: Any) -> Any:
        """Take a step without the verification of an instruction."""
        return super(RoomGridLevel, self).step(action)


def room_side(types: NDArray[Any]) -> int | None:
    """The side length of the rooms in cells, walls included; None if the cells do not form square rooms.

    BabyAI's rooms are squares that share their walls. The wall between two rooms is whole, has one door, or is missing.
    Corners and the world's border are always walls, and there is no wall inside a room. So at most one length fits.

    Args:
        types: codes of the objects' types, `(width, height)`.
    """
    walls = types == WALL
    width, height = types.shape
    if not (walls[[0, -1]].all() and walls[:, [0, -1]].all()):
        return None
    for step in range(2, math.gcd(width - 1, height - 1) + 1):
        if (width - 1) % step or (height - 1) % step or not walls[::step, ::step].all():
            continue
        inside = walls.copy()
        inside[::step] = inside[:, ::step] = False
        if not inside.any() and all(map(_is_side, _segments(walls, step))):
            return step + 1
    return None


def _segments(walls: NDArray[np.bool_], step: int) -> list[NDArray[np.bool_]]:
    """For each pair of neighbouring corners, whether the cells between the two corners are walls, `(step - 1,)`.

    Args:
        walls: whether each cell is a wall, `(width, height)`.
        step: distance of neighbouring corners, in cells.
    """
    lines = [line for each in (walls[:, ::step].T, walls[::step, :]) for line in each]
    return [line[start + 1 : start + step] for line in lines for start in range(0, len(line) - 1, step)]


def _is_side(segment: NDArray[np.bool_]) -> bool:
    """Whether the cells are a whole wall, a wall with one door, or no wall."""
    return not segment.any() or int((~segment).sum()) <= 1


def actions_of(actions: NDArray[Any] | None, steps: int) -> list[Actions] | None:
    """Convert stored actions to MiniGrid's type. Return None if actions are missing or unknown to MiniGrid."""
    if actions is None:
        return None
    try:
        numbers = np.asarray(actions, np.float64).reshape(steps, 1)
        if not np.equal(numbers, np.rint(numbers)).all():
            return None
        return [Actions(int(number)) for (number,) in numbers.tolist()]
    except (TypeError, ValueError, OverflowError):
        return None
