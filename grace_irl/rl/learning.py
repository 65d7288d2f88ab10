"""Trains the learner of a `Problem` on a recovered reward, as every method of a comparison trains it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from grace_irl.atomic import part_of
from grace_irl.rewards.file import RewardFile
from grace_irl.rewards.scale import Form
from grace_irl.rl.method import Paid, Policy, Problem, Trained, TransitionReward, Watch
from grace_irl.rl.paid import NetVecEnv, ProgramVecEnv, StateInfo
from grace_irl.rl.watching import Watching

Pay = Callable[[VecEnv], VecEnv]
"""Wraps the environments of a problem so that they pay a recovered reward."""


def program_pay(reward: RewardFile, form: Form = "raw", *, allow_weak_sandbox: bool = False) -> Pay:
    """Pays what a reward file says: in this process where it is trusted, else by way of the sandbox."""
    return lambda venv: ProgramVecEnv(venv, reward.scorer(allow_weak_sandbox=allow_weak_sandbox), reward.scaled(form))


def net_pay(reward: TransitionReward, paid: Paid) -> Pay:
    """Pays what a reward of transitions says, in the form in which it was learnt (`Trained.paid`)."""
    return lambda venv: NetVecEnv(venv, reward, paid)


def learn_on(problem: Problem, seed: int, pay: Pay, watch: Watch) -> Trained:
    """Trains the problem's learner, for the problem's steps, on another reward than the environment's.

    Args:
        problem: its environments, learner, steps and normalisation.
        seed: of everything.
        pay: the reward.
        watch: looks at the policy.

    Raises:
        GraceError: the reward fails.
    """
    watching = Watching(problem, watch)
    with _environments(problem, seed, pay) as venv:
        learner = problem.make_learner(venv, seed)
        if problem.norm_reward:
            learner.set_env(VecNormalize(venv, norm_obs=False, norm_reward=True, gamma=learner.gamma))
        learner.learn(problem.steps, callback=watching)
    watching.end(learner.num_timesteps, learner.policy)
    return Trained(learner.policy, steps=learner.num_timesteps, kept=watching.kept)


@contextmanager
def one_thread() -> Iterator[None]:
    """With two or more, threads of torch wait for each other longer than networks of this size take."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def save_policy(policy: Policy, path: Path) -> None:
    """Keeps a policy in its own form, whole or not at all."""
    _kept(path, policy.save)


def save_net(reward: TransitionReward, path: Path) -> None:
    """Keeps a recovered reward net by torch's own `save`, a pickle: load only what is your own."""
    _kept(path, lambda part: torch.save(reward, part))


def _kept(path: Path, write: Callable[[str], Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(path)
    try:
        write(str(part))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _environments(problem: Problem, seed: int, pay: Pay) -> Iterator[VecEnv]:
    """The problem's environments, paid; seeds them and the global random states, as the baselines do."""
    set_random_seed(seed)
    venv: VecEnv = DummyVecEnv([lambda: Monitor(StateInfo(problem.make_env())) for _ in range(problem.num_envs)])
    try:
        venv = pay(venv)
        venv.seed(seed)
        yield venv
    finally:
        venv.close()
