"""Choice of the favourite among the policies of one training.

The candidates are the last policy and the copies of the policy kept during the training. The favourite is the candidate
with the highest mean return under one reward, the signal. The signal is the final version of the recovered reward. For
PPO on the true reward, the signal is the environment's own reward. No other method uses the environment's own
reward for the choice.
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
    """The reward by which the policies of a training are compared.

    Attributes:
        pay: function that wraps a vector environment, so that the environment returns this reward.
        centred: whether the learner's reward was shifted to a running mean of 0. If so, the choice subtracts one
            constant from each reward: the mean reward per step over all episodes of all candidates.
    """

    pay: Pay
    centred: bool = False


@dataclass(frozen=True)
class Chosen:
    """The favourite policy of a training, with the returns of all candidates.

    Attributes:
        policy: the favourite, with its number of environment steps of training.
        paid: mean return of each candidate's episodes under the signal, in the order of the candidates.
        steps: environment steps that the choice used, over all candidates.
    """

    policy: Kept
    paid: tuple[float, ...]
    steps: int


def choose(
    policies: Sequence[Kept], problem: PolicyProblem, signal: Signal, episodes: int, seed: int, *, deterministic: bool
) -> Chosen:
    """Choose the policy with the highest mean return under the signal. In a tie, the later policy wins.

    Args:
        policies: the candidates, in the order of training. The last candidate is the last policy.
        problem: the problem of the training, which provides the environments.
        signal: the reward under which the candidates are compared.
        episodes: number of episodes of each policy.
        seed: seed of the environments and of drawn actions. Each policy gets the same seed.
        deterministic: whether to use the most probable action in each state instead of drawing one.

    Raises:
        GraceError: the reward fails on an episode.
    """
    # `count` divides `episodes`, so all environments play the same number of episodes.
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
    """A wrapper that counts environment steps, including those of unfinished episodes.

    The wrapper hides the wrappers of the single environments from `evaluate_policy`. If `evaluate_policy` found a
    `Monitor` there, it would take the monitor's returns: sums of the environment's own reward instead of the signal.
    """

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.steps = 0

    def env_is_wrapped(self, *_: Any, **__: Any) -> list[bool]:
        return [False] * self.num_envs

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        self.steps += self.num_envs
        return self.venv.step_wait()
