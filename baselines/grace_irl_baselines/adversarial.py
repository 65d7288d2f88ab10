"""The shared part of GAIL and AIRL: alternating updates of learner and discriminator in one call of `learn`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from imitation.algorithms.adversarial.common import AdversarialTrainer
from imitation.data.buffer import ReplayBuffer
from imitation.data.rollout import flatten_trajectories_with_rew
from imitation.data.types import dataclass_quick_asdict
from imitation.rewards.reward_nets import RewardNet
from imitation.rewards.reward_wrapper import RewardVecEnvWrapper
from imitation.util.networks import training
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.policies import ActorCriticPolicy

from grace_irl.rl.curve import Watching
from grace_irl.rl.episodes import expert_episodes
from grace_irl.rl.learning import AfterUpdates, learning_venv, normalised
from grace_irl.rl.method import Paid, PolicyProblem, Trained, Watch, unwatched
from grace_irl_baselines.nets import reward_of
from grace_irl_baselines.plumbing import as_transitions, logger


@dataclass(frozen=True)
class Adversarial(ABC):
    """The base of GAIL and AIRL, with the settings of the discriminator. The problem provides the learner.

    `pays` selects the learner's reward:

    - "reward": the method's own reward.
    - "centred": the method's own reward, shifted to a running mean of 0 and scaled to a standard deviation of 1.
    - "positive": -log(1 - D), where D is the discriminator's probability that a transition is an expert's. This reward
      is positive everywhere, and is GAIL's own reward.
    - "auto": "centred" for the label rules "last" and "goal", else "positive". A label rule says which expert states
      are positive examples. Under "last" and "goal", an episode can end with success, so a positive reward would be an
      incentive not to finish. Under "all", experts do not end episodes early, so a positive reward is harmless.

    Rewards of all these forms are then scaled like those of other methods (`PolicyProblem.norm_reward`).

    Attributes:
        steps_per_disc_update: environment steps per gradient step of the discriminator. All gradient steps for a
            rollout take place after the rollout.
        demo_batch_size: number of experts' transitions in each gradient step. The step also uses the same number of the
            learner's transitions.
        disc_learning_rate: learning rate of Adam for the discriminator.
        disc_weight_decay: weight decay of Adam for the discriminator.
        buffer_steps: number of the learner's latest steps in the buffer from which the discriminator's batches are
            drawn. The buffer holds at least one whole rollout.
        hidden: units of each hidden layer of the discriminator.
        pays: form of the learner's reward.
    """

    steps_per_disc_update: int = 64
    demo_batch_size: int = 512
    disc_learning_rate: float = 1e-3
    disc_weight_decay: float = 0.0
    buffer_steps: int = 2_048
    hidden: tuple[int, ...] = (32, 32)
    pays: Literal["auto", "reward", "centred", "positive"] = "auto"

    reads_length: ClassVar[str] = (
        "unless its reward is shifted, most states have rewards of one sign, so long episodes earn more, or less if it "
        "is negative, whatever the policy does"
    )
    name: ClassVar[str]
    trainer: ClassVar[type[AdversarialTrainer]]
    is_positive: ClassVar[bool]
    """Whether the method's own reward is above 0 everywhere."""

    @abstractmethod
    def net(self, policy: ActorCriticPolicy, discount: float) -> RewardNet:
        """Make the reward network, for the learner's policy and discount."""

    def check(self, problem: PolicyProblem) -> None:
        """See `PolicyMethod.check`. The method needs experts with actions."""
        expert_episodes(problem, self.name)

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """Train learner and discriminator in alternation for the problem's steps; see `PolicyMethod.train`."""
        transitions = as_transitions(expert_episodes(problem, self.name), self.demo_batch_size)
        watching = Watching(problem, watch)
        with learning_venv(problem.make_env, problem.num_envs, seed) as venv, logger(problem) as log:
            learner = problem.make_learner(venv, seed)
            trainer = self.trainer(
                demonstrations=transitions,
                demo_batch_size=self.demo_batch_size,
                venv=venv,
                gen_algo=learner,
                reward_net=self.net(learner.policy, learner.gamma),
                disc_opt_kwargs={"lr": self.disc_learning_rate, "weight_decay": self.disc_weight_decay},
                custom_logger=log,
                allow_variable_horizon=True,  # False refuses episodes of different lengths; here, `reads_length` warns
            )
            pays = self._pays(problem)
            if pays != "reward":
                assert isinstance(trainer.venv_wrapped, RewardVecEnvWrapper)
                trainer.venv_wrapped.reward_fn = reward_of(trainer, pays)
            learner.set_env(normalised(trainer.venv_train, learner.gamma, norm_reward=problem.norm_reward))
            rollout = learner.n_steps * problem.num_envs
            updates = max(1, round(rollout / self.steps_per_disc_update))
            rounds = Rounds(trainer, updates, max(self.buffer_steps, rollout))
            assert trainer.gen_callback is not None
            learner.learn(problem.steps, callback=CallbackList([rounds, trainer.gen_callback, AfterUpdates(watching)]))
        watching.end(learner.num_timesteps, learner.policy)
        reward = NetReward(trainer.reward_test)
        return Trained(learner.policy, reward, learner.num_timesteps, paid=pays, kept=watching.kept)

    def _pays(self, problem: PolicyProblem) -> Paid:
        pays: Paid = "centred" if problem.demonstrations.metadata.label in ("last", "goal") else "positive"
        if self.pays != "auto":
            pays = self.pays
        return "reward" if pays == "positive" and self.is_positive else pays


class Rounds(BaseCallback):
    """A callback that trains the discriminator on each rollout, after the learner's own update on the rollout.

    A round is one rollout with both updates. The trainers of `imitation` instead call `learn` in every round. Then a
    schedule of the learner, such as a falling learning rate, would run from start to end in every round.

    Args:
        trainer: the trainer of the discriminator.
        updates: gradient steps of the discriminator in each round.
        capacity: maximum number of the learner's transitions in the buffer.
    """

    def __init__(self, trainer: AdversarialTrainer, updates: int, capacity: int) -> None:
        super().__init__()
        self._trainer, self._updates = trainer, updates
        self._buffer = ReplayBuffer(capacity, trainer.venv)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        """Train the discriminator on the previous rollout, if any. The learner has already been updated on it."""
        found, _ = self._trainer.venv_buffering.pop_trajectories()
        if found:
            self._buffer.store(flatten_trajectories_with_rew(found))
            self._discriminate()

    def _on_training_end(self) -> None:
        self._on_rollout_start()

    def _discriminate(self) -> None:
        for _ in range(self._updates):
            drawn = dataclass_quick_asdict(self._buffer.sample(self._trainer.demo_batch_size))
            with training(self._trainer.reward_train):
                self._trainer.train_disc(gen_samples=drawn)


@dataclass(frozen=True)
class NetReward:
    """A recovered reward net as a `TransitionReward`."""

    net: RewardNet

    def __call__(
        self, state: NDArray[Any], action: NDArray[Any], next_state: NDArray[Any], done: NDArray[np.bool_]
    ) -> NDArray[Any]:
        """Rewards `(batch,)` of the net, without shift or scale."""
        rewards: NDArray[Any] = self.net.predict(state, action, next_state, done)
        return rewards
