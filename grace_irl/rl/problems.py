"""Construction of the `PolicyProblem` that all methods of a comparison receive.

Further functions warn about episodes of different lengths, and save policies and reward networks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from grace_irl.atomic import part_of
from grace_irl.demos.trajectory import Demonstrations, Trajectory
from grace_irl.rl.actions import require_actions
from grace_irl.rl.horizon import FixedHorizon
from grace_irl.rl.hyperparameters import Hyperparameters, hyperparameters
from grace_irl.rl.learning import make_learner
from grace_irl.rl.method import Policy, PolicyMethod, PolicyProblem, TransitionReward
from grace_irl.rl.observed import EnvironmentFactory, observed
from grace_irl.rl.observers import observe_trajectory


def make_problem(
    demonstrations: Demonstrations,
    make: EnvironmentFactory,
    steps: int,
    *,
    settings: Hyperparameters | None = None,
    horizon: int = 0,
    watches: int = 10,
    keeps: tuple[int, ...] = (),
    device: str = "auto",
    log: Path | None = None,
) -> PolicyProblem:
    """The problem for all methods, with the observations, networks and settings of this package's PPO.

    Args:
        demonstrations: expert and negative demonstrations.
        make: factory of one environment and its view.
        steps: environment steps of training.
        settings: settings of PPO; None: those of the environment (`hyperparameters`).
        horizon: steps of every episode, if all episodes have the same length (`grace_irl.rl.horizon`); 0 if episodes
            keep their own lengths.
        watches: number of calls of a method's callback (`Watch`) during training, but at most one for each rollout.
        keeps: environment steps after which a method keeps a copy of its policy. Numbers within the first rollout
            become the end of it, because no learner has updated its policy before.
        device: torch device; "auto" is a GPU if there is one and the observer's networks gain from it.
        log: folder for the methods' logs; None: no logs.

    Raises:
        InputError: a number is out of range, or PPO cannot handle the environment's states or actions.
    """
    with closing(observed(make)) as first:
        require_actions(first.action_space)
        observer, metadata = first.observer, first.view.metadata
    settings = settings or hyperparameters(metadata.environment, metadata.kind)

    def make_env() -> Any:
        environment = observed(make, observer)
        return FixedHorizon(environment, horizon) if horizon else environment

    def observe(trajectory: Trajectory) -> NDArray[Any]:
        return observe_trajectory(observer, trajectory)

    seen = observer.flagged() if horizon else observer
    return PolicyProblem(
        demonstrations=demonstrations,
        make_env=make_env,
        observe=observe,
        make_learner=make_learner(seen, settings, device=device),
        steps=steps,
        num_envs=settings.n_envs,
        gamma=settings.gamma,
        norm_reward=settings.norm_reward,
        watches=max(1, min(watches, steps // settings.rollout)),
        keeps=tuple(dict.fromkeys(max(each, settings.rollout) for each in keeps if steps > settings.rollout)),
        horizon=horizon,
        log=log,
    )


PROBES = 5
"""Number of episodes with random actions by which `ends_early` tests whether episodes can end early."""
PROBED = 10_000
"""Number of steps after which such an episode counts as one that reaches no terminal state."""


def ends_early(problem: PolicyProblem) -> str:
    """A clause with the evidence that episodes can end early; "" without evidence, or if the problem has a horizon.

    The evidence is a terminal state in an expert's episode, else in one of a few episodes with random actions. An
    expert's terminal state at the time limit is ignored, because recordings often mark a time limit as terminal.
    """
    if problem.horizon:
        return ""
    experts = [item.trajectory for item in problem.demonstrations.select(role="expert", split="train")]
    with closing(problem.make_env()) as environment:
        limit = getattr(environment.spec, "max_episode_steps", None) or math.inf
        ended = sum(trajectory.terminated and trajectory.num_steps < limit for trajectory in experts)
        if ended:
            return f"{ended} of {len(experts)} experts' episodes reach a terminal state"
        environment.action_space.seed(0)
        ended = sum(_terminates(environment, seed) for seed in range(PROBES))
    return f"{ended} of {PROBES} episodes of random actions reach a terminal state" if ended else ""


def length_warnings(problem: PolicyProblem, methods: tuple[PolicyMethod, ...]) -> tuple[str, ...]:
    """One warning line for each method whose reward depends on the length of episodes (docs/baselines.md).

    The result is () if `ends_early` finds no evidence that episodes can end early.
    """
    concerned = [method for method in methods if method.reads_length]
    why = ends_early(problem) if concerned else ""
    return tuple(
        f"{method.name}: episodes vary in length ({why}) and {method.reads_length}: its result may depend more on "
        "the length than on the reward; --horizon gives all episodes the same length"
        for method in concerned
        if why
    )


def _terminates(environment: Any, seed: int) -> bool:
    from grace_irl.rl.environments import quiet

    with quiet():
        environment.reset(seed=seed)
    for _ in range(PROBED):
        _, _, terminated, truncated, _ = environment.step(environment.action_space.sample())
        if terminated or truncated:
            return bool(terminated)
    return False


def save_policy(policy: Policy, path: Path) -> None:
    """Save a policy in its own format, atomically."""
    _kept(path, policy.save)


def save_net(reward: TransitionReward, path: Path) -> None:
    """Save a recovered reward network as a pickle (`torch.save`). A pickle can run code, so load only your own."""
    _kept(path, lambda part: torch.save(reward, part))


def _kept(path: Path, write: Callable[[str], Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(path)
    try:
        write(str(part))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
