"""Reward nets that read observations with the networks of the learner's policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from imitation.rewards.reward_nets import RewardNet, ShapedRewardNet
from imitation.util.networks import RunningNorm, build_mlp
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import Tensor, nn


class Reader(nn.Module):
    """Features of observations: a new network of the policy's kind; what the policy takes as it is, is normalised.

    Args:
        policy: whose features extractor is built again, with weights of its own.
    """

    def __init__(self, policy: ActorCriticPolicy) -> None:
        super().__init__()
        self.extractor = policy.make_features_extractor()
        self.size = int(self.extractor.features_dim)
        plain = isinstance(self.extractor, FlattenExtractor)
        self.normalise: nn.Module = RunningNorm(self.size) if plain else nn.Identity()

    def forward(self, observations: Tensor) -> Tensor:
        """Features `(batch, size)`."""
        features: Tensor = self.normalise(self.extractor(observations))
        return features


class StateActionNet(RewardNet):
    """r(s, a), or r(s): an MLP on the features of the state and on the action.

    Args:
        policy: see `Reader`.
        hidden: units of each hidden layer.
        use_action: whether the action counts.
    """

    def __init__(self, policy: ActorCriticPolicy, hidden: Sequence[int], *, use_action: bool = True) -> None:
        super().__init__(policy.observation_space, policy.action_space)
        self.use_action = use_action
        self.reader = Reader(policy)
        size = get_flattened_obs_dim(policy.action_space) if use_action else 0
        self.mlp = build_mlp(self.reader.size + size, hidden, squeeze_output=True)

    def forward(self, state: Tensor, action: Tensor, next_state: Tensor, done: Tensor) -> Tensor:  # noqa: ARG002
        """Rewards `(batch,)`."""
        features = self.reader(state)
        if self.use_action:
            features = torch.cat((features, action.flatten(1)), dim=1)
        rewards: Tensor = self.mlp(features)
        return rewards


class Potential(nn.Module):
    """h(s), `(batch,)`: an MLP on the features of the state."""

    def __init__(self, policy: ActorCriticPolicy, hidden: Sequence[int]) -> None:
        super().__init__()
        self.reader = Reader(policy)
        self.mlp = build_mlp(self.reader.size, hidden, squeeze_output=True)

    def forward(self, state: Tensor) -> Tensor:
        """See the class."""
        value: Any = self.mlp(self.reader(state))
        return value  # type: ignore[no-any-return]


def shaped(
    policy: ActorCriticPolicy, hidden: Sequence[int], discount: float, *, use_action: bool = True
) -> ShapedRewardNet:
    """g(s, a) + discount h(s') - h(s), the potential of an episode's end being 0 (Fu et al. 2018, equation 4)."""
    return ShapedRewardNet(StateActionNet(policy, hidden, use_action=use_action), Potential(policy, hidden), discount)
