"""GAIL: the reward is high for transitions that the discriminator classifies as an expert's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from imitation.algorithms.adversarial.gail import GAIL
from imitation.rewards.reward_nets import RewardNet
from stable_baselines3.common.policies import ActorCriticPolicy

from grace_irl_baselines.adversarial import Adversarial
from grace_irl_baselines.nets import StateActionNet


@dataclass(frozen=True)
class Gail(Adversarial):
    """GAIL of `imitation` (Ho and Ermon 2016), with the reward r(s, a) = -log(1 - D(s, a)).

    D(s, a) is the discriminator's probability that action a in state s is an expert's.
    """

    name: ClassVar[str] = "gail"
    trainer: ClassVar[type[GAIL]] = GAIL
    is_positive: ClassVar[bool] = True

    def net(self, policy: ActorCriticPolicy, discount: float) -> RewardNet:  # noqa: ARG002
        """See `Adversarial.net`."""
        return StateActionNet(policy, self.hidden)
