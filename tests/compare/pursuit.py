"""A plane on which a hand moves to a goal: an environment with a goal in its states, as vectors with named fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.rl.environments import FunctionView

MAKE = f"{Path(__file__)}:make"
FIELDS = ("hand_x", "hand_y", "goal_x", "goal_y")
STEP = 0.1
NEAR = 0.15
LENGTH = 30
MOVES = np.array([(0.0, 0.0), (STEP, 0.0), (-STEP, 0.0), (0.0, STEP), (0.0, -STEP)])


class Pursuit(gymnasium.Env[Any, Any]):
    """The hand begins somewhere, and the episode ends when it is within `NEAR` of the goal, or after `LENGTH` steps."""

    observation_space = Box(-np.inf, np.inf, (4,), np.float64)
    action_space = Discrete(len(MOVES))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._hand, self._goal, self._steps = self.np_random.uniform(-1, 1, 2), self.np_random.uniform(-1, 1, 2), 0
        return np.concatenate([self._hand, self._goal]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        self._hand = self._hand + MOVES[int(action)]
        there = bool(np.hypot(*(self._hand - self._goal)) <= NEAR)
        state = np.concatenate([self._hand, self._goal])
        return state, float(there), there, self._steps == LENGTH and not there, {"success": there}


def make() -> tuple[Any, FunctionView]:
    return Pursuit(), FunctionView(Metadata("vector", FIELDS, "Pursuit-v0", "vector"))


def nearer(state: Any, rng: np.random.Generator) -> int:
    """The move that brings the hand nearest to the goal; every fifth is a random one."""
    if rng.random() < 0.2:
        return int(rng.integers(1, len(MOVES)))
    return int(np.argmin(np.hypot(*(state[:2] + MOVES - state[2:]).T)))


def write_demonstrations(folder: Path, count: int) -> Path:
    """Experts that reach the goal, and as many episodes of random moves that do not."""
    items: dict[Role, list[Demonstration]] = {"expert": [], "negative": []}
    rng = np.random.default_rng(0)
    for number in range(100 * count):
        role: Role = "expert" if number % 2 else "negative"
        found = _played(role == "expert", number, rng)
        if found.terminated == (role == "expert") and len(items[role]) < count:
            items[role].append(Demonstration(found, role))
    for role, of_role in items.items():
        metadata = Metadata("vector", FIELDS, label="last")
        save(Demonstrations(metadata, tuple(of_role)), folder / f"{role}.parquet")
    return folder


def _played(expert: bool, seed: int, rng: np.random.Generator) -> Trajectory:
    environment = Pursuit()
    states, actions, terminated, truncated = [environment.reset(seed=seed)[0]], [], False, False
    while not terminated and not truncated:
        actions.append(nearer(states[-1], rng) if expert else int(rng.integers(1, len(MOVES))))
        state, _, terminated, truncated, _ = environment.step(actions[-1])
        states.append(state)
    found = np.stack(states)
    return Trajectory(found, np.array(actions), terminated=terminated, truncated=truncated, source=f"{expert} {seed}")
