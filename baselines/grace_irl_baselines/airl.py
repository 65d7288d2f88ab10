"""AIRL: the discriminator's logit is a reward minus the learner's log-probability of the action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from imitation.algorithms.adversarial.airl import AIRL
from imitation.rewards.reward_nets import RewardNet
from stable_baselines3.common.policies import ActorCriticPolicy

from grace_irl_baselines.adversarial import Adversarial
from grace_irl_baselines.nets import shaped


@dataclass(frozen=True)
class Airl(Adversarial):
    """AIRL of `imitation` (Fu et al. 2018), with logit(D) = g(s, a) + gamma h(s') - h(s) - log pi(a|s).

    D is the discriminator's probability that a transition from state s by action a to state s' is an expert's. h is a
    learnt potential, pi the learner's policy, and gamma the learner's discount. The recovered reward is g.
    """

    name: ClassVar[str] = "airl"
    trainer: ClassVar[type[AIRL]] = AIRL
    is_positive: ClassVar[bool] = False

    def net(self, policy: ActorCriticPolicy, discount: float) -> RewardNet:
        """See `Adversarial.net`."""
        return shaped(policy, self.hidden, discount)
