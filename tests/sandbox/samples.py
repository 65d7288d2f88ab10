"""Programs and trajectories that the tests of a sandbox share."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.protocol import Mode

MODES: tuple[Mode, ...] = ("batch", "strict")
BOTH = pytest.mark.parametrize("mode", MODES)

COUNTER = """
class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info
        self.n = 0

    def reward_fn(self, state):
        self.n += 1
        return 100 * len(self.extra_info) + self.n + float(state[0])

    def debug_fn(self, state):
        return f"{self.n}: {state[0]:g}"
"""

TRANSITION = """
class Reward:
    def reward_fn(self, state, action, next_state):
        return float(next_state[0] - state[0]) + 10 * float(action)

    def debug_fn(self, state):
        return f"at {state[0]:g}"
"""


def vectors(count: int = 3, length: int = 4, *, actions: bool = False) -> list[Trajectory]:
    """Trajectories of different lengths whose first number tells them apart."""
    made = []
    for number in range(count):
        states = np.arange(2 * (length + number), dtype=np.float32).reshape(-1, 2) + 1000 * number
        taken = np.arange(len(states) - 1) if actions else None
        made.append(Trajectory(states, actions=taken, extra_info="x" * number))
    return made


def one(body: str) -> str:
    """A program whose reward_fn has this body."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"import numpy as np\n\nclass Reward:\n    def reward_fn(self, state):\n{lines}\n"
