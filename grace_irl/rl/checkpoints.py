"""Checkpoints for a training that was killed: weights, optimiser, normalisation, and the curve so far."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from grace_irl.atomic import write_atomically
from grace_irl.errors import InputError
from grace_irl.rl.checkpoint import read_weights
from grace_irl.rl.curve import Point, from_json, to_json


def digest(facts: Mapping[str, Any]) -> str:
    """SHA-256 (16 hex digits) of what makes a training the one that it is."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Checkpoint:
    """A training between two of its parts.

    Attributes:
        identity: digest of the settings.
        steps: environment steps so far.
        updates: gradient steps so far, as PPO counts them.
        policy, optimizer: `state_dict`s.
        returns: mean, variance and count of the discounted returns that rewards are divided by; or None.
        curve: the evaluations so far.
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
        """The training as it is."""
        returns = None
        if isinstance(venv, VecNormalize):
            statistics = venv.ret_rms
            returns = (float(statistics.mean), float(statistics.var), float(statistics.count))
        policy, optimizer = learner.policy.state_dict(), learner.policy.optimizer.state_dict()
        return cls(identity, learner.num_timesteps, learner._n_updates, policy, optimizer, returns, tuple(curve))

    def restore(self, learner: PPO, venv: VecEnv) -> tuple[Point, ...]:
        """Puts a new learner in its place; the curve so far."""
        learner.policy.load_state_dict(self.policy)
        learner.policy.optimizer.load_state_dict(self.optimizer)
        learner.num_timesteps, learner._n_updates = self.steps, self.updates
        if isinstance(venv, VecNormalize) and self.returns is not None:
            mean, variance, count = self.returns
            venv.ret_rms.mean, venv.ret_rms.var, venv.ret_rms.count = np.array(mean), np.array(variance), count
        return self.curve


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Writes it whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    buffer = io.BytesIO()
    torch.save({**vars(checkpoint), "curve": to_json(checkpoint.curve)}, buffer)
    write_atomically(path, buffer.getvalue())


def read_checkpoint(path: Path, identity: str) -> Checkpoint | None:
    """A checkpoint of `write_checkpoint`, by torch's weights-only loader; None if there is nothing.

    Raises:
        InputError: another training's, or not readable.
    """
    if not path.exists():
        return None
    try:
        found = read_weights(path.read_bytes())
        checkpoint = Checkpoint(**{**found, "curve": from_json(found["curve"])})
    except Exception as error:  # torch raises what its parts raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{path}: not a checkpoint ({lines[0][:200]}); expected what training wrote") from None
    if checkpoint.identity != identity:
        raise InputError(
            f"{path}: of a training with other settings; expected the same environment, reward, steps, seed and "
            "settings to go on with it, or another folder for a new one"
        )
    return checkpoint
