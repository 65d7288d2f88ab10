"""The pay of the learner of GAIL and AIRL, in place of the method's own reward."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from imitation.algorithms.adversarial.common import AdversarialTrainer
from imitation.rewards.reward_function import RewardFn
from imitation.rewards.reward_nets import NormalizedRewardNet
from imitation.util.networks import RunningNorm, evaluating
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from torch.nn.functional import softplus


def reward_of(trainer: AdversarialTrainer, pays: Literal["centred", "positive"]) -> RewardFn:
    """The reward of transitions in one of these forms (`Adversarial.pays`)."""
    if pays == "positive":
        return Positive(trainer)
    # Around what is paid: imitation's GAIL passes by a normalisation inside of the net that it is given.
    centred = NormalizedRewardNet(trainer.reward_train, RunningNorm).to(trainer.gen_algo.device)
    return centred.predict_processed


class Positive:
    """-log(1 - D(s, a)), above 0 everywhere, of a trainer's discriminator at the time of the call.

    For GAIL that is its reward. AIRL's discriminator has another logit, g(s, a) + gamma h(s') - h(s) - log pi(a|s).

    Args:
        trainer: of `imitation`.
    """

    def __init__(self, trainer: AdversarialTrainer) -> None:
        self._trainer = trainer

    def __call__(
        self, state: NDArray[Any], action: NDArray[Any], next_state: NDArray[Any], done: NDArray[np.bool_]
    ) -> NDArray[Any]:
        """Rewards `(batch,)`."""
        net, policy = self._trainer.reward_train, self._trainer.policy
        assert isinstance(policy, ActorCriticPolicy)
        with torch.no_grad(), evaluating(net):
            taken = torch.as_tensor(action, device=net.device)
            _, log_pi, _ = policy.evaluate_actions(torch.as_tensor(state, device=net.device), taken)
            logits = self._trainer.logits_expert_is_high(*net.preprocess(state, action, next_state, done), log_pi)
            rewards: NDArray[Any] = softplus(logits).cpu().numpy()
        return rewards
