"""Training on vector environments with a chosen reward, shared by all methods.

Every learner uses several environments in this process (`learning_venv`). A `Pay` selects the reward: the environments'
own reward or a recovered one. Rewards may be divided by the standard deviation of their returns (`normalised`).
Comparisons of methods train policies with `learn_on`. `grace_irl.rl.ppo.train` uses the other functions of this module,
and also writes checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from grace_irl.errors import InputError
from grace_irl.rewards.file import RewardFile
from grace_irl.rewards.sb3 import RewardVecEnv
from grace_irl.rewards.scale import FormChoice, Scale
from grace_irl.rl.actions import require_actions
from grace_irl.rl.curve import Watching
from grace_irl.rl.hyperparameters import Hyperparameters
from grace_irl.rl.method import Paid, PolicyProblem, Trained, TransitionReward, Watch
from grace_irl.rl.observers import Observer
from grace_irl.rl.settling import settling
from grace_irl.rl.trained import network_settings
from grace_irl.sandbox.protocol import Limits


class Pay(Protocol):
    """A function that wraps a vector environment, so that the environment returns a chosen reward."""

    def __call__(self, venv: VecEnv, gamma: float) -> VecEnv:
        """Wrap the environments; `gamma` is the learner's discount."""
        ...


def true_pay(venv: VecEnv, gamma: float) -> VecEnv:  # noqa: ARG001
    """A `Pay` that keeps the environments' own reward."""
    return venv


@dataclass(frozen=True)
class ProgramPay:
    """A `Pay` for the reward of a file. The file's program runs in this process if trusted, else in the sandbox.

    Attributes:
        reward: the file.
        form: form of the learner's reward, such as "raw" or "logit" (`grace_irl.rewards.scale.Scale`); "auto" for the
            file's default (`RewardFile.form`).
        allow_weak_sandbox: whether to accept tier E, a sandbox that does not protect the user's files
            (docs/sandbox.md).
        terms: whether the `info` of each step also holds the components of the reward (the program's `terms_fn`).
        limits: limits of the program in the sandbox.
    """

    reward: RewardFile
    form: FormChoice = "auto"
    allow_weak_sandbox: bool = False
    terms: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def scale(self) -> Scale:
        """The conversion of the program's reward to `form`, with the file's calibration.

        The conversion has a default discount. `__call__` replaces this discount by the learner's discount.
        """
        return self.reward.scaled(self.form)

    def __call__(self, venv: VecEnv, gamma: float) -> VecEnv:
        """See `Pay`."""
        runner = self.reward.runner(terms=self.terms, allow_weak_sandbox=self.allow_weak_sandbox, limits=self.limits)
        return RewardVecEnv(venv, runner, replace(self.scale, gamma=gamma))


@dataclass(frozen=True)
class NetPay:
    """A `Pay` for a reward of transitions between observations, such as the output of a reward network.

    Attributes:
        reward: the reward.
        paid: form of the learner's reward. Usually it equals the form in the method's own training (`Trained.paid`).
    """

    reward: TransitionReward
    paid: Paid = "reward"

    def __call__(self, venv: VecEnv, gamma: float) -> VecEnv:  # noqa: ARG002
        """See `Pay`."""
        return NetVecEnv(venv, self.reward, self.paid)


class NetVecEnv(VecEnvWrapper):
    """A vector environment that returns a given reward for transitions instead of its own reward.

    Args:
        venv: the vector environment to wrap, with automatic resets.
        reward: function that rewards transitions between observations.
        form: form of the returned reward ("reward", "centred" or "positive", see `Paid`).
    """

    def __init__(self, venv: VecEnv, reward: TransitionReward, form: Paid = "reward") -> None:
        super().__init__(venv)
        self._reward, self._form = reward, form
        self._statistics = RunningMeanStd(shape=())

    def reset(self) -> Any:
        """Start all episodes."""
        self._before: Any = self.venv.reset()
        return self._before

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the actions, because the reward needs them, and start the step."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Finish a step of all environments. The last reward of an episode is for the step to its final observation."""
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


class Unmonitored(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that leaves out `info["episode"]`, in which Stable-Baselines3 expects a `Monitor`'s dict."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take one step."""
        observation, reward, terminated, truncated, info = super().step(action)
        info = {key: value for key, value in info.items() if key != "episode"} if "episode" in info else info
        return observation, reward, terminated, truncated, info


@contextmanager
def learning_venv(
    make_env: Callable[[], Any], count: int, seed: int, pay: Pay = true_pay, gamma: float = 0.99
) -> Iterator[VecEnv]:
    """A context with a vector environment in this process.

    At the last step of an episode, `info["episode"]["r"]` is the episode's true return.

    Args:
        make_env: factory of one environment.
        count: number of environments.
        seed: seed of the environments and of the global random states.
        pay: wrapper that sets the reward.
        gamma: the learner's discount.
    """
    set_random_seed(seed)
    venv: VecEnv = DummyVecEnv([lambda: Monitor(Unmonitored(make_env()))] * count)
    try:
        venv = pay(venv, gamma)
        venv.seed(seed)
        yield venv
    finally:
        venv.close()


def normalised(venv: VecEnv, gamma: float, *, norm_reward: bool) -> VecEnv:
    """If `norm_reward`, divide rewards by the standard deviation of their discounted returns, and clip them to ±10.

    The mean of the rewards is not subtracted.
    """
    return VecNormalize(venv, norm_obs=False, norm_reward=True, gamma=gamma) if norm_reward else venv


def make_learner(observer: Observer, settings: Hyperparameters, *, device: str = "auto") -> Callable[..., PPO]:
    """A factory of PPO, with the same networks and settings for every reward.

    Args:
        observer: the observer of the policy.
        settings: settings of PPO.
        device: torch device; "auto" is a GPU if there is one and the observer's networks gain from it.

    Returns:
        A function that makes a learner from a vector environment, a seed, and optionally a TensorBoard folder (`log`).
        The function raises InputError for actions that PPO cannot learn, and for the device "cuda" without a GPU.
    """
    policy_class, options = network_settings(observer, settings)
    if device == "auto":
        device = "cuda" if observer.wants_gpu and torch.cuda.is_available() else "cpu"

    def make(venv: VecEnv, seed: int, log: str | None = None) -> PPO:
        require_actions(venv.action_space)
        require_device(device)
        learner = PPO(
            policy_class,
            venv,
            seed=seed,
            device=device,
            policy_kwargs=options,
            tensorboard_log=log,
            **settings.ppo(),
        )
        if log is None:  # the default logger would create an empty temporary folder at each `learn`
            learner.set_logger(Logger(None, []))
        return learner

    return make


def require_device(device: str) -> None:
    """Check that this machine has a GPU if the torch device is "cuda".

    Raises:
        InputError: there is no GPU.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda, and torch finds no GPU; expected cpu, or auto, which takes a GPU if it helps")


class AfterUpdates(BaseCallback):
    """A callback that shows the policy to a `Watching` after each step, except the last step of a rollout.

    PPO updates the policy after the last step of a rollout. So the callback shows the updated policy at the start of
    the next rollout. After the last rollout, the caller shows it (`Watching.end`).

    Args:
        watching: the schedule by which a `Watch` is called and copies of the policy are kept.
    """

    def __init__(self, watching: Watching) -> None:
        super().__init__()
        self._watching = watching

    def _on_step(self) -> bool:
        rollout = getattr(self.model, "n_steps", 0) * self.model.n_envs
        if not rollout or self.model.num_timesteps % rollout:
            self._watching.at(self.model.num_timesteps, self.model.policy)
        return True

    def _on_rollout_start(self) -> None:
        self._watching.at(self.model.num_timesteps, self.model.policy)


def learn_on(problem: PolicyProblem, seed: int, pay: Pay, watch: Watch, log: Logger | None = None) -> Trained:
    """Train the problem's learner for the problem's number of environment steps, rounded up to whole rollouts.

    Args:
        problem: the problem, which provides environments, learner, steps and normalisation.
        seed: seed of all random generators.
        pay: wrapper that sets the reward.
        watch: callback that looks at the policy during training.
        log: logger for the learner; None keeps the learner's own.

    Raises:
        GraceError: the reward fails.
    """
    watching = Watching(problem, watch)
    with learning_venv(problem.make_env, problem.num_envs, seed, pay, problem.gamma) as venv:
        learner = problem.make_learner(venv, seed)
        scaled = normalised(venv, learner.gamma, norm_reward=problem.norm_reward)
        learner.set_env(scaled)
        settles = settling(learner, venv, scaled)
        if log is not None:
            learner.set_logger(log)
        callbacks = [*([settles] if settles else []), AfterUpdates(watching)]
        learner.learn(problem.steps, callback=callbacks)
    watching.end(learner.num_timesteps, learner.policy)
    return Trained(learner.policy, steps=learner.num_timesteps, kept=watching.kept)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread. For small networks, synchronising several threads costs more time than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
