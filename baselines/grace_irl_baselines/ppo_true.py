"""PPO on the environment's own reward: what the others are measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grace_irl.rl.curve import Watching
from grace_irl.rl.method import PolicyProblem, Trained, Watch, unwatched
from grace_irl_baselines.plumbing import logger, normalised, vectorised


@dataclass(frozen=True)
class PpoTrue:
    """The problem's learner on the true reward; it reads no demonstration."""

    name: ClassVar[str] = "ppo-true"
    reads_length: ClassVar[str] = ""

    def check(self, problem: PolicyProblem) -> None:
        """Nothing to refuse."""

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """See `Method.train`."""
        watching = Watching(problem, watch)
        with vectorised(problem, seed) as venv, logger(problem) as log:
            learner = problem.make_learner(venv, seed)
            learner.set_env(normalised(venv, problem, learner.gamma))
            learner.set_logger(log)
            learner.learn(problem.steps, callback=watching)
        watching.end(learner.num_timesteps, learner.policy)
        return Trained(learner.policy, steps=learner.num_timesteps, kept=watching.kept)
