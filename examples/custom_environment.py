"""An environment of one's own: collect demonstrations, recover a reward, and train on it.

    python examples/custom_environment.py

The last lines of `corridor` are all that grace-irl needs to know of the environment. Its command line takes the same:

    grace-irl collect --env examples/custom_environment.py:corridor --policy random --episodes 20 --role negative \\
        --out random.parquet
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

import grace_irl
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.rl.environments import FunctionView

LENGTH = 12


class Corridor(gymnasium.Env[Any, Any]):
    """Walk to the door, which is somewhere to the right or to the left."""

    def __init__(self) -> None:
        self.observation_space = Dict({"me": Box(0, LENGTH), "door": Box(0, LENGTH)})
        self.action_space = Discrete(2)  # left, right

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new place for both."""
        super().reset(seed=seed, options=options)
        self.me, self.door = map(int, self.np_random.choice(LENGTH, 2, replace=False))
        self.left = 2 * LENGTH
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; 1 at the door, where it ends."""
        self.me = int(np.clip(self.me + (1 if action else -1), 0, LENGTH - 1))
        self.left -= 1
        there = self.me == self.door
        return self._observation(), float(there), there, self.left == 0, {}

    def _observation(self) -> dict[str, Any]:
        return {"me": np.array([self.me], np.float32), "door": np.array([self.door], np.float32)}


def corridor() -> tuple[gymnasium.Env[Any, Any], FunctionView]:
    """The environment, and how its observations become the states that programs see."""
    fields = ("me", "door")
    view = FunctionView(
        Metadata("vector", fields, "Corridor-v0", "corridor", "last"),
        of=lambda _, seen: np.concatenate([seen[name] for name in fields]),
        reached=lambda terminated, reward: terminated and reward > 0,
    )
    return Corridor(), view


def demonstrations(experts: int, negatives: int) -> Demonstrations:
    """Episodes that walk straight to the door, and episodes that wander and do not find it."""
    environment, view = corridor()
    rng = np.random.default_rng(0)
    items: list[Demonstration] = []
    for number in range(10_000):
        kept = {role: sum(item.role == role for item in items) for role in ("expert", "negative")}
        if kept["expert"] >= experts and kept["negative"] >= negatives:
            break
        expert = kept["expert"] < experts
        observation, _ = environment.reset(seed=number)
        states, terminated, truncated = [view.state(environment, observation)], False, False
        while not (terminated or truncated):
            me, door = states[-1]
            action = int(door > me) if expert else int(rng.integers(2))
            observation, _, terminated, truncated, _ = environment.step(action)
            states.append(view.state(environment, observation))
        if expert or not terminated:
            trajectory = Trajectory(np.stack(states), terminated=terminated, truncated=truncated)
            items.append(Demonstration(trajectory, "expert" if expert else "negative", "corridor"))
    return Demonstrations(view.metadata, tuple(items))


def main(steps: int = 20_000) -> float:
    """Recovers a reward, trains on it, and returns the success of the policy."""
    from grace_irl.rl.learning import ProgramPay
    from grace_irl.rl.ppo import train

    with tempfile.TemporaryDirectory() as folder:
        # 40 experts show doors everywhere. A reward does not look beyond the places that experts show.
        run = grace_irl.fit(demonstrations(40, 40), out=Path(folder) / "run", max_seconds=60)
        print(run.best.source)
        reward = grace_irl.load_reward(run.reward_path)  # not trusted: it runs in the sandbox
        training = train(corridor, steps, reward=ProgramPay(reward), evaluations=2, episodes=100)
    success = training.curve[-1].success or 0.0
    print(f"success {success:.2f} after {training.steps} steps on the recovered reward")
    return success


if __name__ == "__main__":
    main()
