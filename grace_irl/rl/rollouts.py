"""Episodes of a trained policy, as trajectories with their true returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Role
from grace_irl.rl.environments import made_by
from grace_irl.rl.evaluation import Recorder, Rollout
from grace_irl.rl.observed import EnvironmentFactory, Observed, observed
from grace_irl.rl.trained import TrainedPolicy

LANES = 16
"""Maximum number of episodes that `play` plays in parallel."""


class Lane:
    """An environment that plays one episode after another."""

    def __init__(self, environment: Observed) -> None:
        self.environment = environment

    def begin(self, number: int, seed: int) -> None:
        """Start an episode. `number` is its index among all episodes of `play`."""
        self.number = number
        self.observation, _ = self.environment.reset(seed=seed)
        self._tape = Recorder(self.environment, f"{self.environment.view.metadata.environment} seed {seed}")

    def step(self, action: Any, log_prob: float) -> Rollout | None:
        """Make one step. Return the episode if it has ended, else None."""
        self.observation, reward, terminated, truncated, info = self.environment.step(action)
        self._tape.add(action, reward, info, log_prob)
        return self._tape.rollout(terminated=terminated, truncated=truncated) if terminated or truncated else None


def play(
    policy: TrainedPolicy,
    make: EnvironmentFactory,
    episodes: int,
    seed: int = 0,
    *,
    deterministic: bool | None = None,
) -> list[Rollout]:
    """Play episodes in parallel. The policy and torch's random state stay unchanged.

    Args:
        policy: the policy.
        make: factory of environments, which are closed at the end.
        episodes: number of episodes.
        seed: seed of the environments and of drawn actions. The same seed gives the same episodes.
        deterministic: whether to use the most probable action; None: as in the policy's settings.

    Returns:
        The episodes, in the order in which they started.
    """
    if deterministic is None:
        deterministic = policy.settings.deterministic
    seeds: NDArray[np.int64] = np.random.default_rng(seed).integers(2**31 - 1, size=episodes)
    played: list[Rollout | None] = [None] * episodes
    lanes = [Lane(observed(make, policy.observer)) for _ in range(min(LANES, episodes))]
    training = policy.network.training
    policy.network.set_training_mode(False)
    try:
        device = policy.network.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            for number, lane in enumerate(lanes):
                lane.begin(number, int(seeds[number]))
            running, started = list(lanes), len(lanes)
            while running:
                observations = np.stack([lane.observation for lane in running])
                actions, log_probs = policy.act(observations, deterministic=deterministic)
                for lane, action, log_prob in zip(tuple(running), actions, log_probs, strict=True):
                    rollout = lane.step(action, float(log_prob))
                    if rollout is None:
                        continue
                    played[lane.number] = rollout
                    if started < episodes:
                        lane.begin(started, int(seeds[started]))
                        started += 1
                    else:
                        running.remove(lane)
    finally:
        policy.network.train(training)
        for lane in lanes:
            lane.environment.close()
    return [rollout for rollout in played if rollout is not None]


def demonstrations(
    rollouts: Sequence[Rollout], make: EnvironmentFactory, role: Role = "negative", task: str | None = None
) -> Demonstrations:
    """Convert episodes to a set of demonstrations, in the form that `grace_irl.rl.collect.collect` returns.

    Args:
        rollouts: result of `play`.
        make: the factory of `play`, for the metadata of the states.
        role: role of the trajectories.
        task: task name; the environment's id by default.
    """
    environment, view = made_by(make)
    environment.close()
    name = task or view.metadata.environment
    return Demonstrations(view.metadata, tuple(Demonstration(each.trajectory, role, name) for each in rollouts))
