"""Sets of records for the tests, and an environment that gives some."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.states.record import RECORD, RecordStates
from grace_irl.states.texts import pack


def everything(steps: int, seed: int) -> RecordStates:
    """A record of every type of part."""
    rng = np.random.default_rng(seed)
    return RecordStates(
        {
            "observation": rng.normal(size=(steps + 1, 3)),
            "goal/desired": rng.normal(size=(steps + 1, 2)).astype(np.float32),
            "mode": rng.integers(0, 3, steps + 1),
            "pixels": rng.integers(0, 255, (steps + 1, 6, 8, 3), dtype=np.uint8),
            "said": pack([f"hallo {step % 2} – é" for step in range(steps + 1)]),
        }
    )


def records() -> Demonstrations:
    """Experts and negatives of such records, of different lengths."""
    rng = np.random.default_rng(0)
    items = tuple(
        Demonstration(
            Trajectory(everything(steps, steps), rng.normal(size=(steps, 2)), extra_info="reach it"),
            "expert" if steps % 2 else "negative",
        )
        for steps in range(3, 9)
    )
    return Demonstrations(Metadata(RECORD.name, label="last"), items)


class Reach(gymnasium.Env[Any, Any]):
    """A point that is pushed to a goal."""

    def __init__(self) -> None:
        point = Box(-5, 5, (2,), np.float64)
        inner = Dict({"phase": Discrete(3)})
        self.observation_space = Dict({"achieved_goal": point, "desired_goal": point, "inner": inner})
        self.action_space = Box(-1, 1, (2,), np.float32)

    def _seen(self) -> dict[str, Any]:
        return {"achieved_goal": self.at, "desired_goal": self.goal, "inner": {"phase": self.steps % 3}}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.at, self.goal = self.np_random.uniform(-1, 1, 2), self.np_random.uniform(-1, 1, 2)
        self.steps = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 0.2 * np.clip(action, -1, 1)  # in place: simulators reuse their buffers
        self.steps += 1
        away = float(np.linalg.norm(self.at - self.goal))
        return self._seen(), -away, away < 0.1, self.steps >= 20, {}


def make() -> Reach:
    """An adapter: `--env FILE:make`."""
    return Reach()


def experts(count: int) -> Demonstrations:
    """Straight ways to the goal."""
    items = []
    for seed in range(count):
        environment = Reach()
        observation, _ = environment.reset(seed=seed)
        states, actions, over = [RECORD.copied(observation)], [], False
        while not over:
            actions.append(np.clip(3 * (environment.goal - environment.at), -1, 1).astype(np.float32))
            observation, _, over, _, _ = environment.step(actions[-1])
            states.append(RECORD.copied(observation))
        trajectory = Trajectory(RECORD.online(states), np.stack(actions), terminated=True, source=f"seed {seed}")
        items.append(Demonstration(trajectory, "expert"))
    return Demonstrations(Metadata(RECORD.name, label="last"), tuple(items))
