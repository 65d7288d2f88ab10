"""PPO on the environment's own reward, as the reference for all other methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stable_baselines3.common.logger import Logger, configure

from grace_irl.rl.learning import learn_on, true_pay
from grace_irl.rl.method import PolicyProblem, Trained, Watch, unwatched


@dataclass(frozen=True)
class PpoTrue:
    """The problem's learner, trained on the true reward. It uses no demonstrations."""

    name: ClassVar[str] = "ppo-true"
    reads_length: ClassVar[str] = ""

    def check(self, problem: PolicyProblem) -> None:
        """See `PolicyMethod.check`. The method accepts all problems."""

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> Trained:
        """See `PolicyMethod.train`."""
        log = configure(str(problem.log), ["tensorboard"]) if problem.log else Logger(None, [])
        try:
            return learn_on(problem, seed, true_pay, watch, log)
        finally:
            log.close()
