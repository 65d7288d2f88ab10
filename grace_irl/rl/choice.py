"""Choice of the favourite: of the policies kept along a training, the one that its own signal pays most.

The signal is what the learner was paid, as it is at the end of training: the recovered reward, in the form in which
policies get it, or the environment's own reward for PPO on the true reward. No other method's choice sees that one.
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
    """The rewards of the learner of a training.

    Attributes:
        pay: wraps environments so that they pay it.
        centred: the learner was paid it shifted to a running mean of 0; here the mean is over all episodes that are
            played for a choice, the same for every policy.
    """

    pay: Pay
    centred: bool = False


@dataclass(frozen=True)
class Chosen:
    """The favourite.

    Attributes:
        policy: with the environment steps of training that it has had.
        paid: mean payment of an episode of each policy, in their order.
        steps: environment steps that were played to choose.
    """

    policy: Kept
    paid: tuple[float, ...]
    steps: int


def choose(
    policies: Sequence[Kept], problem: PolicyProblem, signal: Signal, episodes: int, seed: int, *, deterministic: bool
) -> Chosen:
    """The policy whose episodes are paid most; the later one of equals.

    Args:
        policies: kept along a training, the last one among them.
        problem: whose environments they play in.
        signal: what counts.
        episodes: of each policy.
        seed: of the environments and of the policies' draws, the same for each policy.
        deterministic: take each state's likeliest action.

    Raises:
        GraceError: the reward fails on an episode.
    """
    # As many episodes in each lane, so that none plays on for nothing.
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
    """Counts environment steps, those of episodes that are not played to their end among them."""

    def __init__(self, venv: VecEnv) -> None:
        super().__init__(venv)
        self.steps = 0

    def reset(self) -> VecEnvObs:
        return self.venv.reset()

    def step_wait(self) -> VecEnvStepReturn:
        self.steps += self.num_envs
        return self.venv.step_wait()
