"""Delivery of a program's rewards at the end of each rollout, because an on-policy learner does not need them earlier.

A program in the sandbox can then compute rewards while the environments and the policy go on. One message to the
sandbox carries many steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from grace_irl.rewards.sb3 import RewardVecEnv, Settled


class Settling(BaseCallback):
    """A callback that adds the rewards of a rollout to the learner's buffer, and computes the advantages again.

    The buffer then holds the same numbers as if every step had returned its reward. In the learner's list of callbacks,
    `Settling` must come first.

    Args:
        venv: the environments with the program's reward. The callback makes them defer their rewards.
        normaliser: wrapper that normalises the rewards, or None. The callback updates the wrapper's statistics.

    Attributes:
        settled: rewards of the last rollout, before normalisation.
        dones: whether an episode ended, for each step and each environment of the last rollout.
    """

    def __init__(self, venv: RewardVecEnv, normaliser: VecNormalize | None) -> None:
        super().__init__()
        self._venv, self._normaliser = venv, normaliser
        venv.defer()
        if normaliser is not None:
            normaliser.training = False  # its own updates would count the deferred rewards as 0
        self.settled = Settled(np.zeros((0, venv.num_envs), np.float32), [])
        self.dones: list[Any] = []

    def _on_training_start(self) -> None:
        self._returns = np.zeros(self._venv.num_envs)

    def _on_rollout_start(self) -> None:
        self.dones = []

    def _on_step(self) -> bool:
        self.dones.append(self.locals["dones"])
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.locals["rollout_buffer"]
        self.settled = self._venv.settle()
        # `+=`: at a time limit, the learner has already added the value of the last state to the buffer's reward.
        buffer.rewards += self._normalised()
        buffer.compute_returns_and_advantage(last_values=self.locals["values"], dones=self.locals["dones"])

    def _normalised(self) -> Any:
        """The rewards of each step, normalised as in `VecNormalize`."""
        normaliser = self._normaliser
        if normaliser is None:
            return self.settled.rewards
        found = []
        for rewards, dones in zip(self.settled.rewards, self.dones, strict=True):
            self._returns = self._returns * normaliser.gamma + rewards
            normaliser.ret_rms.update(self._returns)
            found.append(normaliser.normalize_reward(rewards))
            self._returns[dones] = 0
        return np.array(found)


def settling(learner: Any, paid_venv: VecEnv, venv: VecEnv) -> Settling | None:
    """A `Settling` for a learner; None unless the learner is on-policy and its reward comes from a program.

    Args:
        learner: the learner.
        paid_venv: the environments with the learner's reward.
        venv: `paid_venv`, or a wrapper that normalises the rewards of `paid_venv`.
    """
    if not isinstance(learner, OnPolicyAlgorithm) or not isinstance(paid_venv, RewardVecEnv):
        return None
    return Settling(paid_venv, venv if isinstance(venv, VecNormalize) else None)
