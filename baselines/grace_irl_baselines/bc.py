"""Behaviour cloning: supervised learning of the experts' actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from imitation.algorithms.bc import BC
from stable_baselines3.common.policies import ActorCriticPolicy

from grace_irl.rl.curve import Watching
from grace_irl.rl.episodes import expert_episodes
from grace_irl.rl.learning import learning_venv
from grace_irl.rl.method import PolicyProblem, Trained, Watch, unwatched
from grace_irl_baselines.plumbing import as_transitions, logger


@dataclass(frozen=True)
class Bc:
    """Behaviour cloning of `imitation`, with the policy network of the problem's learner.

    The method uses no environment steps. The learning curve has one point, for the policy after all updates.

    Attributes:
        updates: number of gradient steps.
        batch_size: transitions in each gradient step.
        learning_rate: learning rate of Adam.
        ent_weight: weight of the policy's entropy, which is maximised.
        l2_weight: weight of half the sum of squared parameters, which is minimised.
    """

    updates: int = 5_000
    batch_size: int = 64
    learning_rate: float = 1e-3
    ent_weight: float = 1e-3
    l2_weight: float = 1e-6

    name: ClassVar[str] = "bc"
    reads_length: ClassVar[str] = ""

    def check(self, problem: PolicyProblem) -> None:
        """See `PolicyMethod.check`. The method needs experts with actions."""
        expert_episodes(problem, self.name, absorbing=False)

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """See `PolicyMethod.train`."""
        transitions = as_transitions(expert_episodes(problem, self.name, absorbing=False), self.batch_size)
        with learning_venv(problem.make_env, problem.num_envs, seed) as venv, logger(problem) as log:
            policy = problem.make_learner(venv, seed).policy
            _acquaint(policy, transitions.obs)
            cloning = BC(
                observation_space=venv.observation_space,
                action_space=venv.action_space,
                rng=np.random.default_rng(seed),
                policy=policy,
                demonstrations=transitions,
                batch_size=self.batch_size,
                optimizer_kwargs={"lr": self.learning_rate},
                ent_weight=self.ent_weight,
                l2_weight=self.l2_weight,
                device=policy.device,
                custom_logger=log,
            )
            cloning.train(n_batches=self.updates, progress_bar=False)
        policy.set_training_mode(False)
        Watching(problem, watch).end(0, policy)
        return Trained(policy)


def _acquaint(policy: ActorCriticPolicy, observations: Any) -> None:
    """Set the statistics of a policy that normalises its observations, from the experts' observations.

    A normalising policy collects its statistics in rollouts, but behaviour cloning has no rollouts.
    """
    seen, _ = policy.obs_to_tensor(observations)
    with torch.no_grad():
        for _ in range(2):  # the first pass collects the observations, the second adds them to the statistics
            policy.set_training_mode(True)
            policy(seen)
