"""Vectorised environments of a problem."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from grace_irl.rl.method import PolicyProblem


@contextmanager
def vectorised(problem: PolicyProblem, seed: int) -> Iterator[VecEnv]:
    """The problem's environments in one process, closed at the end; seeds them and the global random states."""
    set_random_seed(seed)
    venv = DummyVecEnv([lambda: Monitor(problem.make_env()) for _ in range(problem.num_envs)])
    try:
        venv.seed(seed)
        yield venv
    finally:
        venv.close()


def normalised(venv: VecEnv, problem: PolicyProblem, discount: float) -> VecEnv:
    """The environments with rewards scaled as the problem says, whoever pays them; none is shifted."""
    if not problem.norm_reward:
        return venv
    return VecNormalize(venv, norm_obs=False, norm_reward=True, gamma=discount)
