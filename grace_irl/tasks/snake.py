"""Snake on a grid, with five numbers as observation. Different rewards train policies with different scores."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Metadata
from grace_irl.rl.environments import FunctionView

SIZE = 10
"""Number of rows and columns of the grid."""
HUNGER = 100
"""Number of steps without food after which an episode is truncated."""
MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))
"""The steps (x, y) of the actions up, down, left and right."""
FIELDS = ("head_x", "head_y", "food_x", "food_y", "length")


class Snake(gymnasium.Env[NDArray[np.float64], Any]):
    """The game Snake. The snake dies at a wall and at its own body.

    An observation is (head x, head y, food x, food y, length), which does not show the body. An action is up, down,
    left or right. If an action points back into the neck, the snake goes straight on. The reward is 1 for food and -1
    for death. `info["apples"]` counts the food eaten so far in the episode.
    """

    observation_space = Box(0.0, float(SIZE * SIZE), (len(FIELDS),), np.float64)
    action_space = Discrete(len(MOVES))

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start an episode: a snake of three cells in the middle, which goes to the right."""
        super().reset(seed=seed)
        middle = SIZE // 2
        self._body = [(middle - back, middle) for back in range(3)]
        self._going = MOVES.index((1, 0))
        self._apples, self._hungry = 0, 0
        self._place_food()
        return self._observation(), {"apples": 0}

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Move by one cell."""
        x, y = MOVES[int(action)]
        if (x + MOVES[self._going][0], y + MOVES[self._going][1]) != (0, 0):
            self._going = int(action)
        x, y = MOVES[self._going]
        head = (self._body[0][0] + x, self._body[0][1] + y)
        ate = head == self._food
        body = self._body if ate else self._body[:-1]
        dead = head in body or not (0 <= head[0] < SIZE and 0 <= head[1] < SIZE)
        if not dead:
            self._body = [head, *body]
        self._hungry = 0 if ate else self._hungry + 1
        won = False
        if ate and not dead:
            self._apples += 1
            won = len(self._body) == SIZE * SIZE
            if not won:
                self._place_food()
        cut = self._hungry >= HUNGER and not dead
        return self._observation(), float(ate) - float(dead), dead or won, cut, {"apples": self._apples}

    def _place_food(self) -> None:
        free = [(x, y) for x in range(SIZE) for y in range(SIZE) if (x, y) not in self._body]
        self._food = free[int(self.np_random.integers(len(free)))]

    def _observation(self) -> NDArray[np.float64]:
        return np.array([*self._body[0], *self._food, len(self._body)], np.float64)


def make() -> tuple[Snake, FunctionView]:
    """Make the game and its view."""
    return Snake(), FunctionView(Metadata("vector", FIELDS, "Snake", "vector"))
