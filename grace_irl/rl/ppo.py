"""PPO of Stable-Baselines3 with checkpoints, on the environment's own reward or on a reward program."""

from __future__ import annotations

import hashlib
import io
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from grace_irl.atomic import write_atomically
from grace_irl.contents import require_no_links
from grace_irl.errors import InputError
from grace_irl.rl.checkpoint import read_weights
from grace_irl.rl.curve import Point, evaluated_at, from_json, to_json
from grace_irl.rl.environments import without_folder
from grace_irl.rl.evaluation import Performance, Rollout
from grace_irl.rl.hyperparameters import Hyperparameters, hyperparameters
from grace_irl.rl.learning import ProgramPay, learning_venv, make_learner, normalised, one_thread, true_pay
from grace_irl.rl.observed import EnvironmentFactory, observed
from grace_irl.rl.rollouts import play
from grace_irl.rl.settling import Settling, settling
from grace_irl.rl.trained import TrainedPolicy

POLICY, STATE, CURVE = "policy.pt", "training.pt", "curve.json"
"""Files in the folder of a training: the current policy, the checkpoint to resume from, and the learning curve."""

TENSORBOARD = "tensorboard"
"""Folder of TensorBoard's logs, inside the folder of a training. Stable-Baselines3 writes the logs."""


@dataclass(frozen=True)
class Training:
    """Result of a training.

    Attributes:
        policy: the policy at the end.
        curve: evaluations during training, the last one at the end.
        steps: environment steps of training: the requested number, rounded up to whole rollouts.
    """

    policy: TrainedPolicy
    curve: tuple[Point, ...]
    steps: int


def train(
    make: EnvironmentFactory,
    steps: int,
    *,
    reward: ProgramPay | None = None,
    seed: int = 0,
    settings: Hyperparameters | None = None,
    evaluations: int = 10,
    episodes: int = 20,
    out: str | Path | None = None,
    initial: TrainedPolicy | None = None,
    device: str = "auto",
    progress: Callable[[Point], None] | None = None,
    score: Callable[[Rollout], float] | None = None,
) -> Training:
    """Train a policy.

    Training is divided into parts. Each part starts with new episodes and with random generators seeded by `seed` and
    the number of the part, and ends with an evaluation. So a training that was killed and resumed returns the same
    policy, bit for bit, as an uninterrupted training. This holds on a CPU, with the same machine and package versions.

    Args:
        make: factory of an environment and its view.
        steps: environment steps, rounded up to whole rollouts.
        reward: the reward to train on; None: the environment's own.
        seed: seed of all random generators.
        settings: settings of PPO; None: those of `hyperparameters` for the environment.
        evaluations: number of evaluations, evenly spaced, at most one for each rollout. The policy is saved after each.
        episodes: episodes of each evaluation, always on the environment's own reward.
        out: folder for checkpoints, and for TensorBoard's logs if it is installed. A training that was interrupted in
            this folder is resumed. None: no files.
        initial: a policy to start from instead of a new one. It must have the same observer and layer sizes as a new
            policy.
        device: torch device; "auto" is a GPU if there is one and the observer's networks gain from it. Small networks
            are faster on a CPU.
        progress: callback that receives the new point of the curve after each evaluation.
        score: function that scores an episode of an evaluation, for `Point.score`.

    Raises:
        InputError: `steps`, `evaluations` or `episodes` is below 1, `initial` does not fit, or the folder holds another
            training or symbolic links.
        GraceError: the reward program failed.
    """
    for name, value in (("steps", steps), ("evaluations", evaluations), ("episodes", episodes)):
        if value < 1:
            raise InputError(f"{name} {value}; expected at least 1")
    first = observed(make)
    observer, metadata = first.observer, first.view.metadata
    first.close()
    settings = settings or hyperparameters(metadata.environment, metadata.kind)
    if initial is not None and (initial.observer, initial.settings.net_arch) != (observer, settings.net_arch):
        raise InputError(
            f"the policy to start from observes {initial.observer}, with layers {initial.settings.net_arch}; expected "
            f"{observer} and {settings.net_arch}: start from one that was trained in this environment, or from none"
        )
    told = {"steps": steps, "seed": seed, "evaluations": evaluations, "episodes": episodes, "settings": repr(settings)}
    told |= {"observer": repr(observer), "initial": _weights(initial)}
    told |= {"reward": (reward.reward.source, repr(reward.scale)) if reward else ""}
    # The file of an environment may move. Checkpoints of older versions name its folder.
    names = dict.fromkeys((without_folder(metadata.environment), metadata.environment))
    identity, *older = (digest({**told, "environment": name}) for name in names)
    folder = None if out is None else Path(out)
    if folder is not None:
        require_no_links(folder)
    saved = read_checkpoint(folder / STATE, identity, *older) if folder is not None else None
    with (
        one_thread(),
        learning_venv(
            lambda: observed(make, observer), settings.n_envs, seed, reward or true_pay, settings.gamma
        ) as paid_venv,
    ):
        learner = make_learner(observer, settings, device=device)(paid_venv, seed, _log_folder(folder))
        venv = normalised(paid_venv, settings.gamma, norm_reward=settings.norm_reward)
        learner.set_env(venv)
        settles = settling(learner, paid_venv, venv)
        if initial is not None:
            learner.policy.load_state_dict(initial.network.state_dict())
        policy = TrainedPolicy(learner.policy, observer, settings, metadata.environment)
        curve: list[Point] = []
        if saved is not None:
            curve = list(saved.restore(learner, venv))
        seconds = curve[-1].seconds if curve else 0.0
        ends = dict.fromkeys(evaluated_at(steps, evaluations, settings.rollout))  # at most one for each rollout
        for part, until in enumerate(ends):
            if curve and until <= curve[-1].steps:
                continue
            begun = time.monotonic()
            paid, terms = _learn(learner, venv, settles, until, seed, part)
            seconds += time.monotonic() - begun
            rollouts = play(policy, make, episodes, seed=_number(seed, part, 1))
            found = Performance.of(rollouts).point(learner.num_timesteps)
            scored = None if score is None else float(np.mean([score(each) for each in rollouts]))
            curve.append(replace(found, paid=paid, seconds=seconds, score=scored, terms=terms))
            if folder is not None:
                policy.save(folder / POLICY)
                # The checkpoint marks this part as done, so it is written last.
                write_atomically(folder / CURVE, to_json(curve) + "\n")
                Checkpoint.of(learner, venv, curve, identity).write(folder / STATE)
            if progress is not None:
                progress(curve[-1])
        learner.policy.set_training_mode(False)
        return Training(policy, tuple(curve), learner.num_timesteps)


class PaidReturns(BaseCallback):
    """A callback that collects the return of each training episode: the sum of the rewards before normalisation.

    It also collects the mean of each component of the reward over all steps, if the reward has components.

    Args:
        settling: the callback that delivers the rewards at the end of each rollout; None if every step returns its
            reward.
    """

    def __init__(self, settling: Settling | None = None) -> None:
        super().__init__()
        self._settling = settling
        self.ended: list[float] = []
        self._sums: dict[str, float] = {}
        self._counted = 0

    @property
    def terms(self) -> dict[str, float]:
        """The mean of each component of the reward over all steps, by name. A step without it counts 0."""
        return {name: total / self._counted for name, total in self._sums.items()}

    def _on_training_start(self) -> None:
        self._running = np.zeros(self.training_env.num_envs)

    def _on_step(self) -> bool:
        if self._settling is None:
            normaliser = self.model.get_vec_normalize_env()
            rewards = self.locals["rewards"] if normaliser is None else normaliser.get_original_reward()
            self._add(rewards, self.locals["dones"])
        return True

    def _on_rollout_end(self) -> None:
        if self._settling is None:
            return
        settled = self._settling.settled
        for rewards, dones in zip(settled.rewards, self._settling.dones, strict=True):
            self._add(rewards, dones)
        for terms in settled.terms:
            for name, value in terms.items():
                self._sums[name] = self._sums.get(name, 0.0) + value
        self._counted += len(settled.terms)

    def _add(self, rewards: NDArray[np.float32], dones: NDArray[np.bool_]) -> None:
        """Add the rewards of one step, and close the returns of the episodes that end in this step."""
        self._running += rewards
        for index in np.flatnonzero(dones):
            self.ended.append(float(self._running[index]))
            self._running[index] = 0.0


def _learn(
    learner: PPO, venv: VecEnv, settles: Settling | None, until: int, seed: int, part: int
) -> tuple[float | None, dict[str, float]]:
    """Train for one part, to `until` steps in total.

    Returns:
        The mean return of the ended episodes (None if no episode ended), and the mean of each component of the reward.
    """
    number = _number(seed, part, 0)
    random.seed(number)
    np.random.seed(number % 2**32)
    torch.manual_seed(number)
    venv.seed(number)
    learner._last_obs = None  # makes `learn` reset the environments
    paid = PaidReturns(settles)
    callbacks: list[BaseCallback] = [paid] if settles is None else [settles, paid]
    learner.learn(until - learner.num_timesteps, callback=callbacks, reset_num_timesteps=False)
    return (float(np.mean(paid.ended)) if paid.ended else None), paid.terms


def _log_folder(folder: Path | None) -> str | None:
    """The folder of TensorBoard's logs; None if the training has no folder, or if TensorBoard is not installed."""
    if folder is None or find_spec("tensorboard") is None:
        return None
    return str(folder / TENSORBOARD)


def _number(seed: int, part: int, purpose: int) -> int:
    """A separate seed for each part and purpose. Purpose 0 is training, purpose 1 is evaluation."""
    return int(np.random.SeedSequence((seed, part, purpose)).generate_state(1)[0] >> 1)


def _weights(policy: TrainedPolicy | None) -> str:
    if policy is None:
        return ""
    return digest({name: value.cpu().numpy().tobytes().hex() for name, value in policy.network.state_dict().items()})


def digest(facts: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the SHA-256 of the facts that identify a training, such as its seed."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training between two parts: weights, optimiser, normalisation, and the curve so far.

    Attributes:
        identity: digest that identifies the training by its arguments, settings, reward and initial policy.
        steps: environment steps so far.
        updates: value of PPO's counter of updates.
        policy, optimizer: `state_dict` of the policy and of its optimiser.
        returns: mean, variance and count of the discounted returns, for the normalisation of rewards; None if rewards
            are not normalised.
        curve: evaluations so far.
    """

    identity: str
    steps: int
    updates: int
    policy: dict[str, Any]
    optimizer: dict[str, Any]
    returns: tuple[float, float, float] | None
    curve: tuple[Point, ...]

    @classmethod
    def of(cls, learner: PPO, venv: VecEnv, curve: Sequence[Point], identity: str) -> Checkpoint:
        """The current state of a training."""
        returns = None
        if isinstance(venv, VecNormalize):
            statistics = venv.ret_rms
            returns = (float(statistics.mean), float(statistics.var), float(statistics.count))
        policy, optimizer = learner.policy.state_dict(), learner.policy.optimizer.state_dict()
        return cls(identity, learner.num_timesteps, learner._n_updates, policy, optimizer, returns, tuple(curve))

    def restore(self, learner: PPO, venv: VecEnv) -> tuple[Point, ...]:
        """Load this state into a new learner and its environments. Return the curve so far."""
        learner.policy.load_state_dict(self.policy)
        learner.policy.optimizer.load_state_dict(self.optimizer)
        learner.num_timesteps, learner._n_updates = self.steps, self.updates
        if isinstance(venv, VecNormalize) and self.returns is not None:
            mean, variance, count = self.returns
            venv.ret_rms.mean, venv.ret_rms.var, venv.ret_rms.count = np.array(mean), np.array(variance), count
        return self.curve

    def write(self, path: Path) -> None:
        """Write the checkpoint atomically.

        Raises:
            InputError: the file cannot be written.
        """
        buffer = io.BytesIO()
        torch.save({**vars(self), "curve": to_json(self.curve)}, buffer)
        write_atomically(path, buffer.getvalue())


def read_checkpoint(path: Path, *identities: str) -> Checkpoint | None:
    """Read a checkpoint of a training with one of these identities; None if there is no file.

    Torch's weights-only loader reads the file.

    Raises:
        InputError: the file is not readable, or belongs to another training.
    """
    if not path.exists():
        return None
    try:
        found = read_weights(path.read_bytes())
        checkpoint = Checkpoint(**{**found, "curve": from_json(found["curve"])})
    except Exception as error:  # torch raises errors of many types
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{path}: not a checkpoint ({lines[0][:200]}); expected what training wrote") from None
    if checkpoint.identity not in identities:
        raise InputError(
            f"{path}: of a training with other settings; expected the same environment, reward, steps, seed and "
            "settings to go on with it, or another folder for a new one"
        )
    return checkpoint
