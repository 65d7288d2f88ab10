"""AIRL: the discriminator's logit is a reward less the learner's log-probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from imitation.algorithms.adversarial.airl import AIRL
from imitation.rewards.reward_nets import RewardNet
from stable_baselines3.common.policies import ActorCriticPolicy

from grace_irl.rl.episodes import expert_episodes
from grace_irl.rl.method import PolicyProblem, Trained, Watch, unwatched
from grace_irl_baselines.adversarial import Adversarial
from grace_irl_baselines.nets import shaped


@dataclass(frozen=True)
class Airl(Adversarial):
    """`imitation`'s AIRL (Fu et al. 2018): logit D = g(s, a) + gamma h(s') - h(s) - log pi(a|s).

    The recovered reward is g.
    """

    steps_per_disc_update: int = 64
    demo_batch_size: int = 512
    disc_learning_rate: float = 1e-3
    disc_weight_decay: float = 0.0
    buffer_steps: int = 2_048
    hidden: tuple[int, ...] = (32, 32)

    name: ClassVar[str] = "airl"
    is_positive: ClassVar[bool] = False

    def check(self, problem: PolicyProblem) -> None:
        """Needs experts with actions."""
        expert_episodes(problem, self.name)

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """See `Method.train`."""
        return self.learn(problem, seed, watch, self.name, self._net, AIRL)

    def _net(self, policy: ActorCriticPolicy, discount: float) -> RewardNet:
        return shaped(policy, self.hidden, discount)
