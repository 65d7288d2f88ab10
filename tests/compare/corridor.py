"""A corridor in which a scripted learner stands in for PPO: each of its policies always does one thing.

Experts walk to the right, negatives to the left. The environment's own reward pays for walking to the left, so that
whoever chooses by it chooses another policy than the recovered reward.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete

from grace_irl.demos import save
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.rl.environments import FunctionView
from grace_irl.rl.hyperparameters import hyperparameters
from grace_irl.rl.observers import VectorObserver
from grace_irl.rl.ppo import POLICY
from grace_irl.rl.trained import TrainedPolicy, build_network
from grace_irl.runs.expand.learner import Learnt, PpoLearner

LENGTH = 20
LEFT, SLOWLY, RIGHT = range(3)
SPEEDS = (-1.0, 0.5, 1.0)
MAKE = f"{Path(__file__)}:make"
SETTINGS = ("search.population=1", "search.generations=0", "search.elite=0")
SEARCH = [word for setting in SETTINGS for word in ("--set", setting)]


class Corridor(gymnasium.Env[Any, Any]):
    """Place and pace; 20 steps."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    action_space = Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._steps = self.np_random.normal(), 0
        return np.array([self._place, 0.0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        pace = SPEEDS[int(action)] + 0.1 * self.np_random.normal()
        self._place += pace
        return np.array([self._place, pace]), -SPEEDS[int(action)], False, self._steps == LENGTH, {}


def make() -> tuple[Any, FunctionView]:
    return Corridor(), FunctionView(Metadata("vector", (), "Corridor-v0", "vector"))


def write_demonstrations(folder: Path, count: int = 4) -> Path:
    """Experts and negatives, as many of each."""
    roles: tuple[tuple[Role, int], ...] = (("expert", RIGHT), ("negative", LEFT))
    for role, action in roles:
        items = tuple(Demonstration(_played(action, seed), role) for seed in range(count))
        save(Demonstrations(Metadata("vector", ("place", "pace"), label="all"), items), folder / f"{role}.parquet")
    return folder


def _played(action: int, seed: int) -> Trajectory:
    corridor = Corridor()
    states = [corridor.reset(seed=seed + 100 * action)[0]]
    states += [corridor.step(action)[0] for _ in range(LENGTH)]
    return Trajectory(np.stack(states), np.full(LENGTH, action), truncated=True, source=f"{action} {seed}")


def always(action: int) -> TrainedPolicy:
    """A policy that does one thing."""
    observer, settings = VectorObserver(2), hyperparameters("Corridor-v0", "vector")
    network = build_network(observer, Discrete(3), settings)
    with torch.no_grad():
        for parameter in network.action_net.parameters():
            parameter.zero_()
        network.action_net.bias[action] = 50.0
    return TrainedPolicy(network, observer, settings, "Corridor-v0")


class Scripted(PpoLearner):
    """A learner whose policies walk slowly to the right after the second round, and else to the left."""

    def train(
        self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None, *, shaped: bool = False
    ) -> Learnt:
        folder.mkdir(parents=True, exist_ok=True)
        always(SLOWLY if folder.parent.name == "2" else LEFT).save(folder / POLICY)
        return Learnt(folder / POLICY, steps, (0.0,))
