"""Reward networks of GAIL and AIRL, and the forms "centred" and "positive" of their rewards (`Adversarial.pays`).

The networks use the same kind of feature extractor as the learner's policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from imitation.algorithms.adversarial.common import AdversarialTrainer
from imitation.rewards.reward_function import RewardFn
from imitation.rewards.reward_nets import NormalizedRewardNet, RewardNet, ShapedRewardNet
from imitation.util.networks import RunningNorm, build_mlp, evaluating
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import Tensor, nn
from torch.nn.functional import softplus

from grace_irl.rl.networks import NormalisedVector, RecordFeatures


class Reader(nn.Module):
    """Features of observations, by a new feature extractor of the same kind as the policy's.

    Vectors, and the numbers of a record, are normalised by running statistics of the discriminator's own inputs. A
    `NormalisedVector` is replaced, because only the policy would update its statistics.

    Args:
        policy: the policy. Its feature extractor is built again, with separate weights.
    """

    def __init__(self, policy: ActorCriticPolicy) -> None:
        super().__init__()
        self.extractor = policy.make_features_extractor()
        if isinstance(self.extractor, RecordFeatures):
            self.extractor.normalise(RunningNorm)
        elif isinstance(self.extractor, NormalisedVector):
            self.extractor = FlattenExtractor(policy.observation_space)
        self.size = int(self.extractor.features_dim)
        plain = isinstance(self.extractor, FlattenExtractor)
        self.normalise: nn.Module = RunningNorm(self.size) if plain else nn.Identity()

    def forward(self, observations: Tensor) -> Tensor:
        """Features `(batch, size)`."""
        features: Tensor = self.normalise(self.extractor(observations))
        return features


class StateActionNet(RewardNet):
    """A reward r(s, a), as an MLP on the features of the state s and on the action a.

    Args:
        policy: see `Reader`.
        hidden: units of each hidden layer.
    """

    def __init__(self, policy: ActorCriticPolicy, hidden: Sequence[int]) -> None:
        super().__init__(policy.observation_space, policy.action_space)
        self.reader = Reader(policy)
        size = get_flattened_obs_dim(policy.action_space)
        self.mlp = build_mlp(self.reader.size + size, hidden, squeeze_output=True)

    def forward(self, state: Tensor, action: Tensor, next_state: Tensor, done: Tensor) -> Tensor:  # noqa: ARG002
        """Rewards `(batch,)`."""
        rewards: Tensor = self.mlp(torch.cat((self.reader(state), action.flatten(1)), dim=1))
        return rewards


class Potential(nn.Module):
    """A potential h(s), `(batch,)`, as an MLP on the features of the state s."""

    def __init__(self, policy: ActorCriticPolicy, hidden: Sequence[int]) -> None:
        super().__init__()
        self.reader = Reader(policy)
        self.mlp = build_mlp(self.reader.size, hidden, squeeze_output=True)

    def forward(self, state: Tensor) -> Tensor:
        """Potentials `(batch,)`."""
        value: Any = self.mlp(self.reader(state))
        return value  # type: ignore[no-any-return]


def shaped(policy: ActorCriticPolicy, hidden: Sequence[int], discount: float) -> ShapedRewardNet:
    """The reward g(s, a) + discount * h(s') - h(s) of AIRL (Fu et al. 2018, equation 4).

    g is a `StateActionNet` and h a `Potential`. At the end of an episode, h(s') is 0.
    """
    return ShapedRewardNet(StateActionNet(policy, hidden), Potential(policy, hidden), discount)


def reward_of(trainer: AdversarialTrainer, pays: Literal["centred", "positive"]) -> RewardFn:
    """A trainer's reward of transitions, in one of two forms (`Adversarial.pays`)."""
    if pays == "positive":
        return Positive(trainer)
    # The normalisation wraps the complete reward. GAIL of `imitation` bypasses a normalisation inside its reward net.
    centred = NormalizedRewardNet(trainer.reward_train, RunningNorm).to(trainer.gen_algo.device)
    return centred.predict_processed


class Positive:
    """The positive reward -log(1 - D), where D is a trainer's discriminator at the time of the call.

    This is GAIL's own reward. For AIRL the logit of D is g(s, a) + gamma h(s') - h(s) - log pi(a|s) (`Airl`).

    Args:
        trainer: a trainer of `imitation`.
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
