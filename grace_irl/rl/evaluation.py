"""Measures a policy on the true reward, in the same way whatever taught it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError
from grace_irl.rl.curve import Point
from grace_irl.rl.environments import quiet
from grace_irl.rl.method import Policy

SUCCESS = ("is_success", "success")
"""Keys of the information of an episode's last step, as in Stable-Baselines3 and in Gymnasium-Robotics' mazes: whether
the goal was reached."""
COMPONENTS = "reward_"
"""Start of the keys of the environment's own reward components, as in Gymnasium's MuJoCo environments."""


@dataclass
class EpisodeSums:
    """The environment's account of one episode so far.

    Attributes:
        total: the true return.
        length: steps until the episode ended, or was absorbed (`grace_irl.rl.horizon`).
        success: whether it reached the goal; None if the environment has none.
        components: sums of what the environment names in `info` as parts of its reward (`reward_forward`,
            `reward_survive`, `reward_ctrl`, …).
    """

    total: float = 0.0
    length: int = 0
    success: bool | None = None
    components: dict[str, float] = field(default_factory=dict)

    def add(self, reward: float, info: Mapping[str, Any]) -> None:
        """Counts one step."""
        self.total += reward
        self.length += not info.get("absorbed", False)
        told = next((info[key] for key in SUCCESS if key in info), None)
        if told is not None:
            self.success = bool(told)
        for key, value in info.items():
            if key.startswith(COMPONENTS) and np.ndim(value) == 0:
                self.components[key] = self.components.get(key, 0.0) + float(value)


@dataclass(frozen=True, eq=False)
class Rollout:
    """One episode that a policy played, with what the environment said of it (`EpisodeSums`).

    Attributes:
        trajectory: what happened, with the environment's own rewards and the policy's log-probabilities.
        total, success, components: as of `EpisodeSums`.
    """

    trajectory: Trajectory
    total: float
    success: bool | None = None
    components: dict[str, float] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Steps."""
        return self.trajectory.num_steps


@dataclass(frozen=True, eq=False)
class Performance:
    """Episodes of one policy.

    Attributes:
        returns: `(episodes,)` undiscounted true returns.
        lengths: `(episodes,)` steps until the episode ended, or was absorbed (`grace_irl.rl.horizon`).
        successes: `(episodes,)`; None if the environment has no goal.
        components: `(episodes,)` sums of each component of the reward that the environment names, by name:
            `reward_forward`, `reward_survive` and `reward_ctrl` in Hopper-v5.
    """

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    successes: NDArray[np.bool_] | None = None
    components: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(cls, episodes: Sequence[Rollout | EpisodeSums]) -> Performance:
        """The numbers of episodes."""
        names = list(dict.fromkeys(name for each in episodes for name in each.components))
        known = [each.success for each in episodes if each.success is not None]
        return cls(
            np.array([each.total for each in episodes]),
            np.array([each.length for each in episodes]),
            np.array(known) if len(known) == len(episodes) else None,
            {name: np.array([each.components.get(name, 0.0) for each in episodes]) for name in names},
        )

    def point(self, steps: int) -> Point:
        """A point of a learning curve, after that many steps of training."""
        return Point(
            steps,
            len(self.returns),
            float(self.returns.mean()),
            float(self.returns.std()),
            None if self.successes is None else float(self.successes.mean()),
            float(self.lengths.mean()),
            {name: float(sums.mean()) for name, sums in sorted(self.components.items())},
        )


def evaluate(
    policy: Policy,
    make_env: Callable[[], Any],
    episodes: int,
    seed: int,
    *,
    deterministic: bool = False,
    at_once: int = 20,
) -> Performance:
    """Plays episodes with a policy.

    The episodes' seeds are those of `grace_irl.rl.rollouts.play`, whatever the policy, so that methods meet the same
    levels. Neither the policy nor torch's random state is changed: one that learns goes on as if nobody had looked.
    Unlike `play` it takes whatever predicts, recurrent policies too, and keeps sums alone: no states, no probabilities.

    Args:
        policy: acts in batches.
        make_env: makes one environment.
        episodes: how many.
        seed: of the environments, and of the policy's draws.
        deterministic: take each state's likeliest action instead of drawing one.
        at_once: environments that are open at the same time.

    Raises:
        InputError: fewer than one episode.
    """
    if episodes < 1:
        raise InputError(f"{episodes} evaluation episodes; expected at least 1")
    import torch

    seeds: list[int] = np.random.default_rng(seed).integers(2**31 - 1, size=episodes).tolist()
    records: list[EpisodeSums] = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for first in range(0, episodes, at_once):
            records += _play(policy, make_env, seeds[first : first + at_once], deterministic)
    return Performance.of(records)


def _play(policy: Policy, make_env: Callable[[], Any], seeds: list[int], deterministic: bool) -> list[EpisodeSums]:
    """One episode per seed, all at once; an environment whose episode has ended is not stepped any more."""
    with ExitStack() as stack:
        environments = [stack.enter_context(closing(make_env())) for _ in seeds]
        records = [EpisodeSums() for _ in seeds]
        with quiet():
            observations = [each.reset(seed=seed)[0] for each, seed in zip(environments, seeds, strict=True)]
        running = list(range(len(environments)))
        memory: Any = None
        starts = np.ones(len(running), bool)
        while running:
            actions, memory = policy.predict(np.stack(observations), memory, starts, deterministic)
            going, observations = [], []
            for number, action in zip(running, actions, strict=True):
                observation, reward, terminated, truncated, info = environments[number].step(action)
                records[number].add(float(reward), info)
                if not (terminated or truncated):
                    going.append(number)
                    observations.append(observation)
            if memory is not None and len(going) < len(running):
                kept = [running.index(number) for number in going]
                memory = tuple(part[:, kept] for part in memory)
            running, starts = going, np.zeros(len(going), bool)
    return records
