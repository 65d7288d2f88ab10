"""Learners on vector environments that pay a reward: the one way in which policies learn here.

Every learner steps environments side by side in this process (`learning_venv`). They pay their own reward or a
recovered one (`Pay`), which may be divided by the deviation of its returns (`normalised`). PPO with checkpoints is
`grace_irl.rl.ppo.train`; comparisons train in one piece (`learn_on`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from grace_irl.rewards.file import RewardFile
from grace_irl.rewards.sb3 import RewardVecEnv
from grace_irl.rewards.scale import Form, Scale
from grace_irl.rl.curve import Watching
from grace_irl.rl.hyperparameters import Hyperparameters
from grace_irl.rl.method import Paid, PolicyProblem, Trained, TransitionReward, Watch
from grace_irl.rl.observers import Observer
from grace_irl.rl.trained import network_settings


class Pay(Protocol):
    """Makes environments pay a reward."""

    def __call__(self, venv: VecEnv, gamma: float) -> VecEnv:
        """The environments, wrapped; `gamma` is the learner's discount."""
        ...


def true_pay(venv: VecEnv, gamma: float) -> VecEnv:  # noqa: ARG001
    """Leaves the environments their own reward."""
    return venv


@dataclass(frozen=True)
class ProgramPay:
    """Pays a reward file: in this process if the file is trusted, else by way of the sandbox. Implements `Pay`.

    Attributes:
        reward: the file.
        form: the form in which the learner gets it.
        allow_weak_sandbox: accept tier E (docs/sandbox.md).
    """

    reward: RewardFile
    form: Form = "raw"
    allow_weak_sandbox: bool = False

    @property
    def scale(self) -> Scale:
        """The form, with the file's calibration and the default discount."""
        return self.reward.scaled(self.form)

    def __call__(self, venv: VecEnv, gamma: float) -> VecEnv:
        """See `Pay`."""
        runner = self.reward.runner(allow_weak_sandbox=self.allow_weak_sandbox)
        return RewardVecEnv(venv, runner, replace(self.scale, gamma=gamma))


@dataclass(frozen=True)
class NetPay:
    """Pays a reward of transitions between observations. Implements `Pay`.

    Attributes:
        reward: of transitions.
        paid: the form in which it was learnt (`Trained.paid`).
    """

    reward: TransitionReward
    paid: Paid = "reward"

    def __call__(self, venv: VecEnv, gamma: float) -> VecEnv:  # noqa: ARG002
        """See `Pay`."""
        return NetVecEnv(venv, self.reward, self.paid)


class NetVecEnv(VecEnvWrapper):
    """Pays a reward of transitions.

    Args:
        venv: environments that start again by themselves.
        reward: of transitions between observations.
        form: the form in which it is paid.
    """

    def __init__(self, venv: VecEnv, reward: TransitionReward, form: Paid = "reward") -> None:
        super().__init__(venv)
        self._reward, self._form = reward, form
        self._statistics = RunningMeanStd(shape=())

    def reset(self) -> Any:
        """New episodes everywhere."""
        self._before: Any = self.venv.reset()
        return self._before

    def step_async(self, actions: NDArray[Any]) -> None:
        """Notes the actions, which the reward needs."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One step everywhere, paid by the reward; the end of an episode counts as it was reached."""
        observations, _, dones, infos = self.venv.step_wait()
        reached = np.array(observations)
        for slot in np.flatnonzero(dones):
            reached[slot] = infos[slot]["terminal_observation"]
        values = np.asarray(self._reward(self._before, self._actions, reached, dones), np.float64)
        if self._form == "positive":
            values = np.logaddexp(0.0, values)
        elif self._form == "centred":
            self._statistics.update(values)
            values = (values - self._statistics.mean) / np.sqrt(self._statistics.var + 1e-8)
        self._before = observations
        return observations, values.astype(np.float32), dones, infos


@contextmanager
def learning_venv(
    make_env: Callable[[], Any], count: int, seed: int, pay: Pay = true_pay, gamma: float = 0.99
) -> Iterator[VecEnv]:
    """Environments side by side in this process, with true returns in `info["episode"]`; closed at the end.

    Args:
        make_env: makes one.
        count: how many.
        seed: of the environments and of the global random states.
        pay: the reward.
        gamma: the learner's discount.
    """
    set_random_seed(seed)
    venv: VecEnv = DummyVecEnv([lambda: Monitor(make_env())] * count)
    try:
        venv = pay(venv, gamma)
        venv.seed(seed)
        yield venv
    finally:
        venv.close()


def normalised(venv: VecEnv, gamma: float, *, norm_reward: bool) -> VecEnv:
    """The environments, with rewards divided by the deviation of their discounted returns; none is shifted."""
    return VecNormalize(venv, norm_obs=False, norm_reward=True, gamma=gamma) if norm_reward else venv


def make_learner(observer: Observer, settings: Hyperparameters, *, device: str = "auto") -> Callable[..., PPO]:
    """Makes PPO for a vector environment and a seed: the same networks and settings whatever the reward.

    Args:
        observer: what the policy observes.
        settings: of PPO.
        device: of torch; "auto": a GPU if there is one and the observer gains from it.

    Returns:
        A function of a vector environment, a seed, and optionally a folder for TensorBoard (`log`).
    """
    policy_class, options = network_settings(observer, settings)
    if device == "auto":
        device = "cuda" if observer.wants_gpu and torch.cuda.is_available() else "cpu"

    def make(venv: VecEnv, seed: int, log: str | None = None) -> PPO:
        return PPO(
            policy_class,
            venv,
            seed=seed,
            device=device,
            policy_kwargs=options,
            tensorboard_log=log,
            **settings.ppo(),
        )

    return make


def learn_on(problem: PolicyProblem, seed: int, pay: Pay, watch: Watch, log: Logger | None = None) -> Trained:
    """Trains the problem's learner, for the problem's steps.

    Args:
        problem: its environments, learner, steps and normalisation.
        seed: of everything.
        pay: the reward.
        watch: looks at the policy.
        log: the learner writes to it; None: to what it has.

    Raises:
        GraceError: the reward fails.
    """
    watching = Watching(problem, watch)
    with learning_venv(problem.make_env, problem.num_envs, seed, pay, problem.gamma) as venv:
        learner = problem.make_learner(venv, seed)
        learner.set_env(normalised(venv, learner.gamma, norm_reward=problem.norm_reward))
        if log is not None:
            learner.set_logger(log)
        learner.learn(problem.steps, callback=watching)
    watching.end(learner.num_timesteps, learner.policy)
    return Trained(learner.policy, steps=learner.num_timesteps, kept=watching.kept)


@contextmanager
def one_thread() -> Iterator[None]:
    """Has torch use one thread: with more, threads wait for each other longer than networks of this size take."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
