"""GAIL: the discriminator pays the learner for looking like the expert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from imitation.algorithms.adversarial.gail import GAIL
from imitation.rewards.reward_nets import RewardNet
from stable_baselines3.common.policies import ActorCriticPolicy

from grace_irl.rl.episodes import expert_episodes
from grace_irl.rl.method import PolicyProblem, Trained, Watch, unwatched
from grace_irl_baselines.adversarial import Adversarial
from grace_irl_baselines.nets import StateActionNet


@dataclass(frozen=True)
class Gail(Adversarial):
    """`imitation`'s GAIL (Ho and Ermon 2016): r(s, a) = -log(1 - D(s, a))."""

    steps_per_disc_update: int = 64
    demo_batch_size: int = 512
    disc_learning_rate: float = 1e-3
    disc_weight_decay: float = 0.0
    buffer_steps: int = 2_048
    hidden: tuple[int, ...] = (32, 32)

    name: ClassVar[str] = "gail"
    is_positive: ClassVar[bool] = True

    def check(self, problem: PolicyProblem) -> None:
        """Needs experts with actions."""
        expert_episodes(problem, self.name)

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """See `Method.train`."""
        return self.learn(problem, seed, watch, self.name, self._net, GAIL)

    def _net(self, policy: ActorCriticPolicy, _: float) -> RewardNet:
        return StateActionNet(policy, self.hidden)
