"""Choice of the favourite: the policy with the highest mean reward by the training's own signal.

The candidates are the policies kept along one training. The signal is the reward that the learner was trained on, as
it is at the end of training: the recovered reward in the form for learners. For PPO on the true reward it is the
environment's reward, which the choice of no other method uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from grace_irl.rl.learning import Pay
from grace_irl.rl.method import Kept, PolicyProblem


@dataclass(frozen=True)
class Signal:
    """The reward of a training.

    Attributes:
        pay: wrapper of environments that replaces their reward by this one.
        centred: whether the learner's reward was shifted to a running mean of 0. The choice then subtracts a mean
            from the reward of each step: the mean over all steps of all its episodes, the same for all policies.
    """

    pay: Pay
    centred: bool = False


@dataclass(frozen=True)
class Chosen:
    """The favourite.

    Attributes:
        policy: the policy, with its environment steps of training.
        paid: mean signal of an episode of each policy, in the order of the policies.
        steps: environment steps of the episodes of the choice.
    """

    policy: Kept
    paid: tuple[float, ...]
    steps: int


def choose(
    policies: Sequence[Kept], problem: PolicyProblem, signal: Signal, episodes: int, seed: int, *, deterministic: bool
) -> Chosen:
    """The policy with the highest mean signal of an episode. The later one wins a tie.

    Args:
        policies: policies kept along a training, and its last one.
        problem: the problem, for its environments.
        signal: the reward of the training.
        episodes: number of episodes of each policy.
        seed: seed of the environments and of the policies' draws, the same for each policy.
        deterministic: whether to use the most probable action in each state.

    Raises:
        GraceError: the reward fails on an episode.
    """
    # All environments (lanes) play the same number of episodes, so that no episode is left unused.
    count = max(lanes for lanes in range(1, problem.num_envs + 1) if episodes % lanes == 0)
    totals, lengths, steps = [], [], 0
    for each in policies:
        lanes: list[Callable[[], Any]] = [problem.make_env] * count
        with closing(_Counting(signal.pay(DummyVecEnv(lanes), problem.gamma))) as venv, torch.random.fork_rng():
            torch.manual_seed(seed)
            venv.seed(seed)
            found = evaluate_policy(each.policy, venv, episodes, deterministic, return_episode_rewards=True, warn=False)
            steps += venv.steps
        totals.append(np.mean(found[0]))
        lengths.append(np.mean(found[1]))
    mean = sum(totals) / sum(lengths) if signal.centred else 0.0
    paid = np.array(totals) - mean * np.array(lengths)
    best = max(range(len(policies)), key=lambda number: (np.nan_to_num(paid[number], nan=-np.inf), number))
    return Chosen(policies[best], tuple(paid.tolist()), steps)


class _Counting(VecEnvWrapper):
    """A counter of environment steps, including those of unfinished episodes."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.steps = 0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        self.steps += self.num_envs
        return self.venv.step_wait()
