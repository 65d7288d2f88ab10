"""PPO on the environment's own reward, as the reference for all other methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from grace_irl.rl.learning import learn_on, true_pay
from grace_irl.rl.method import PolicyProblem, Trained, Watch, unwatched
from grace_irl_baselines.plumbing import logger


@dataclass(frozen=True)
class PpoTrue:
    """The problem's learner, trained on the true reward. It uses no demonstrations."""

    name: ClassVar[str] = "ppo-true"
    reads_length: ClassVar[str] = ""

    def check(self, problem: PolicyProblem) -> None:
        """See `PolicyMethod.check`. The method accepts all problems."""

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """See `PolicyMethod.train`."""
        with logger(problem) as log:
            return learn_on(problem, seed, true_pay, watch, log)
