"""Demonstrations whose goal states a model has to name, and a model that does, made up, for whole runs over HTTP."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory

CLEANING = "say in which states the task is done"
RESHAPING = "Write a version whose reward rises steadily"

PROGRAM = '''class Reward:
    """High where the first number is above {threshold}."""

    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state):
        return float(state[0] > {threshold})
'''


def goal_set(experts: int = 6, negatives: int = 4, *, marked: Sequence[int] = ()) -> Demonstrations:
    """Vectors; an expert's first number is above 1 in its last two states, a negative's never.

    Expert number n has n + 5 states, so that a prompt that says how long a trajectory is says which it is.

    Args:
        experts, negatives: trajectories.
        marked: experts whose goal states the data mark.
    """
    rng = np.random.default_rng(0)
    items = []
    roles: list[tuple[Role, int]] = [("expert", experts), ("negative", negatives)]
    for role, count in roles:
        for number in range(count):
            states = rng.uniform(-1.0, 0.5, size=(number + 5, 3)).round(3)
            goals = None
            if role == "expert":
                states[-2:, 0] += 3.0
                goals = (number + 3, number + 4) if number in marked else None
            items.append(Demonstration(Trajectory(states, source=f"{role} {number}"), role, goals=goals))
    return Demonstrations(Metadata("vector", label="goal"), tuple(items))


def last_two(length: int) -> str:
    """The right answer."""
    return f"The number jumps.\n\ntrajectory 1: {length - 1}, {length}"


class GoalModel:
    """Answers prompts of both kinds; counts the trajectories that it was asked about, by their length."""

    def __init__(self, say: Callable[[int], str] = last_two) -> None:
        self.say = say
        self.asked: list[int] = []
        self.prompts: list[str] = []
        self.programs = 0
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self._lock:
            if CLEANING not in prompt:
                self.programs += 1
                threshold = (0.2, 1.0, 1.5, 9.0)[self.programs % 4]
                return f"A threshold.\n\n```python\n{PROGRAM.format(threshold=threshold)}```\n"
            found = re.search(r"Trajectory 1: (\d+) states", prompt)
            assert found is not None
            self.asked.append(int(found[1]))
            self.prompts.append(prompt)
            return self.say(int(found[1]))
