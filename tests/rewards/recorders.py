"""Programs that say what they were shown, and an environment whose states say where they are from."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

STEPS = """
SEEN = 0

class Reward:
    def __init__(self, extra_info=None):
        self.length = len(extra_info or "")
        self.states = []

    def reward_fn(self, state):
        global SEEN
        SEEN += 1
        self.states.append(state.copy())
        state[:] = -1
        return 1000.0 * self.length + 100.0 * (SEEN - len(self.states)) + len(self.states) - 1

    def terms_fn(self, state):
        return {"steps": len(self.states) - 1, "episode": float(state[0])}
"""
"""Rewards step t of an episode with t (the first state is step 0); a leak between episodes would add to it."""

EPISODE = """
class Reward:
    def reward_fn(self, state):
        self.first = getattr(self, "first", float(state[0]))
        return 10000.0 * float(self.first != state[0]) + float(state[0]) + float(state[1]) / 100
"""
"""Rewards a state with its episode's number and its time; 10000 more for a state of another episode."""

TRANSITION = """
class Reward:
    def reward_fn(self, state, action, next_state):
        return 100.0 * float(state[0] != next_state[0]) + float(next_state[1] - state[1]) + 10.0 * float(action)
"""

RANDOM = """
import random
import numpy as np

class Reward:
    def reward_fn(self, state):
        return random.random() + np.random.uniform()
"""


class Numbered(gymnasium.Env[Any, Any]):
    """States `(episode, step)`; episodes of `lengths` in turn end by termination, or by time where `truncated`."""

    def __init__(self, number: int, lengths: tuple[int, ...] = (3, 1, 5), *, truncated: bool = False) -> None:
        self.observation_space = Box(-1, 1e6, (2,), np.float64)
        self.action_space = Discrete(4)
        self._first, self._lengths, self._truncated = 100 * number, lengths, truncated
        self._episode = -1
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._episode += 1
        self._step = 0
        return self._state(), {"instruction": "x" * (self._episode % 2)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        over = self._step == self._lengths[self._episode % len(self._lengths)]
        ends = (False, over) if self._truncated else (over, False)
        return self._state(), 0.5, *ends, {}

    def _state(self) -> Any:
        return np.array([self._first + self._episode, self._step], np.float64)
