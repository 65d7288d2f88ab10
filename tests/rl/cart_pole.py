"""Experts of CartPole: a linear controller, which balances for all 500 steps."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.rl import environments
from grace_irl.rl.method import PolicyProblem
from grace_irl.rl.problems import make_problem

ENVIRONMENT = "CartPole-v1"


def make() -> Any:
    """A factory of environments."""
    return environments.make(ENVIRONMENT)


def play(seed: int, role: Role = "expert") -> Demonstration:
    """One episode of the controller, or of one that pushes to the left and falls."""
    environment, _ = make()
    observation, _ = environment.reset(seed=seed)
    states, actions, over = [observation], [], False
    terminated = truncated = False
    while not over:
        x, velocity, angle, rate = observation
        right = role == "expert" and angle + 0.3 * rate + 0.03 * x + 0.08 * velocity > 0
        actions.append(int(right))
        observation, _, terminated, truncated, _ = environment.step(actions[-1])
        states.append(observation)
        over = terminated or truncated
    environment.close()
    trajectory = Trajectory(
        np.stack(states), np.array(actions), terminated=terminated, truncated=truncated, source=f"episode {seed}"
    )
    return Demonstration(trajectory, role)


@functools.cache
def experts(count: int = 4) -> Demonstrations:
    """A set of experts."""
    return Demonstrations(Metadata("vector", environment=ENVIRONMENT), tuple(play(seed) for seed in range(count)))


def problem(steps: int, **options: Any) -> PolicyProblem:
    """Imitate them."""
    demonstrations = options.pop("demonstrations", None) or experts()
    return make_problem(demonstrations, make, steps, **options)
