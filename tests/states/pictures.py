"""Pictures of a red ball on a shaded ground, which is to go into the green corner: a little world of images."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory

SIDE, CORNER = 20, 14
MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))

REACHED = """
import numpy as np


class Reward:
    def __init__(self, extra_info=None):
        self.told = extra_info

    def reward_fn(self, state):
        red = (state[:, :, 0] - state[:, :, 1] > 100) & (state[:, :, 2] < 100)
        rows, columns = np.nonzero(red)
        if not len(rows):
            return 0.0
        return float(rows.mean() > 17 and columns.mean() > 17)
"""
"""High where the ball lies in the corner; wrong if differences of bytes wrap around."""


def picture(row: int, column: int) -> NDArray[np.uint8]:
    """The ball with its upper left pixel here; a ball has 4 x 4 pixels."""
    ground = np.add.outer(np.arange(SIDE), np.arange(SIDE)) * 3
    image = np.stack([ground, ground, 90 + ground // 2], axis=2).astype(np.uint8)
    image[CORNER:, CORNER:] = (30, 160, 40)
    image[row : row + 4, column : column + 4] = (200, 20, 30)
    return image


def balls(experts: int = 6, negatives: int = 4, kind: str = "image") -> Demonstrations:
    """Experts that end in the corner, and negatives that do not."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(experts + negatives):
        row, column = (int(n) for n in rng.integers(0, 5, 2))
        states, actions = [picture(row, column)], []
        while number < experts and (row, column) != (16, 16):
            move = 0 if row < 16 and (column == 16 or rng.random() < 0.5) else 1
            row, column = min(row + 4 * (move == 0), 16), min(column + 4 * (move == 1), 16)
            states.append(picture(row, column))
            actions.append(move)
        for _ in range(6 if number >= experts else 0):
            row, column = (int(n) for n in rng.integers(0, 9, 2))
            states.append(picture(row, column))
            actions.append(2)
        trajectory = Trajectory(
            np.stack(states),
            np.array(actions),
            "into the corner",
            terminated=number < experts,
            truncated=number >= experts,
            source=f"ball {number}",
            kind=kind,
        )
        items.append(Demonstration(trajectory, "expert" if number < experts else "negative"))
    return Demonstrations(Metadata(kind, label="last", view=kind), tuple(items))


class Ball(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """The same world as an environment, which knows the true reward."""

    observation_space = gymnasium.spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self) -> None:
        self.row = self.column = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.row, self.column = (int(n) * 4 for n in self.np_random.integers(0, 3, 2))
        return picture(self.row, self.column), {}

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        down, right = MOVES[int(action)]
        self.row, self.column = np.clip([self.row + 4 * down, self.column + 4 * right], 0, 16).tolist()
        there = self.row == self.column == 16
        return picture(self.row, self.column), float(there), there, False, {}


def make() -> gymnasium.Env[NDArray[np.uint8], np.int64]:
    """An adapter: `tests.states.pictures:make`."""
    return gymnasium.wrappers.TimeLimit(Ball(), 20)
