"""The learner of an expansion: it trains a policy on a reward and plays it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from grace_irl.config import ExpandConfig
from grace_irl.demos import memory
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.file import load_reward
from grace_irl.rewards.scale import Form
from grace_irl.rl.evaluation import Rollout
from grace_irl.work import Job, JobError, LocalExecutor, Tell

TASK = "grace_irl.runs.expand.learner:train_policy"
EVALUATIONS = 5
"""How often a training looks at its policy, and is saved."""
EPISODES = 10  # of each look


@dataclass(frozen=True)
class Learnt:
    """What one training gave.

    Attributes:
        policy: its file, in the folder of the training.
        steps: of the environment, taken.
        paid: mean return in training before each look at the policy, of the reward that was trained on; None where no
            episode ended.
    """

    policy: Path
    steps: int
    paid: tuple[float | None, ...] = ()


class Learner(Protocol):
    """Trains and plays policies; the same arguments give the same result, also after it was killed in the middle."""

    @property
    def carries(self) -> bool:
        """Whether a policy goes on where the reward is another one than it learnt from; known after `check`."""
        ...

    def check(self, demonstrations: Demonstrations) -> None:
        """Refuses an environment whose states are not those of the demonstrations.

        Raises:
            InputError: with what differs.
        """
        ...

    def train(
        self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None, *, shaped: bool = False
    ) -> Learnt:
        """Trains on a reward file; goes on with what is in `folder`.

        Args:
            reward: the file.
            steps: of the environment.
            seed: of everything.
            folder: for checkpoints.
            initial: a policy to start from; None: a new one.
            shaped: the reward rises towards goals: what is paid is its progress.

        Raises:
            GraceError: the reward fails.
        """
        ...

    def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
        """Plays episodes with a trained policy."""
        ...


def form_of(config: ExpandConfig, rule: str, *, reshaped: bool = False) -> Form:
    """The form in which a policy gets the reward; see `ExpandConfig.form`.

    Args:
        config: of the expansion.
        rule: which expert states are positive; "" is "all".
        reshaped: the reward is a version that rises towards the goal.
    """
    if config.form != "auto":
        return config.form
    if rule not in ("last", "goal"):
        return "soft"
    return "progress" if reshaped else "raw"


def train_policy(
    tell: Tell,
    *,
    environment: dict[str, Any],
    registered: str | None,
    reward: str,
    form: Form,
    trust: bool,
    allow_weak: bool,
    steps: int,
    seed: int,
    folder: str,
    initial: str | None,
    path: list[str],
) -> dict[str, Any]:
    """A training (`grace_irl.rl.ppo.train`): the task of an executor. The policy is in its folder.

    Args:
        tell: gets each look at the policy.
        environment: an `EnvironmentSpec`.
        registered: the environment's registration with Gymnasium, if code of the user's own made it.
        reward: its file.
        form: the form in which the policy gets it.
        trust: run the reward in this process.
        allow_weak: of the sandbox.
        steps: of the environment.
        seed: of everything.
        folder: for checkpoints.
        initial: a policy to start from; None: a new one.
        path: further places of the modules that the environment's name stands for.

    Returns:
        Environment steps taken, and what was paid before each look.
    """
    sys.path += [entry for entry in path if entry not in sys.path]
    from grace_irl.rl.environments import register
    from grace_irl.rl.learning import ProgramPay
    from grace_irl.rl.matching import EnvironmentSpec
    from grace_irl.rl.ppo import train
    from grace_irl.rl.trained import load_policy

    if registered is not None:
        register(registered)
    training = train(
        EnvironmentSpec(**environment),
        steps,
        reward=ProgramPay(load_reward(reward, trust=trust), form, allow_weak),
        seed=seed,
        evaluations=EVALUATIONS,
        episodes=EPISODES,
        out=folder,
        initial=None if initial is None else load_policy(initial),
        progress=lambda look: tell({"steps": look.steps, "mean": look.mean, "success": look.success}),
    )
    return {"steps": training.steps, "paid": [look.paid for look in training.curve]}


class PpoLearner:
    """PPO (`grace_irl.rl.ppo`) in the environment that the demonstrations are from, in a process of its own.

    Args:
        config: the environment, and how the reward runs.
        rule: which expert states are positive, "" where the demonstrations say.
        allow_weak: of the sandbox.
        note: gets each look at the policy, in one line.
    """

    def __init__(
        self, config: ExpandConfig, rule: str = "", *, allow_weak: bool = False, note: Callable[[str], None]
    ) -> None:
        self._config = config
        self._rule = rule
        self._allow_weak = allow_weak
        self._note = note

    @property
    def carries(self) -> bool:
        """See `ExpandConfig.carry`."""
        return self._continuous if self._config.carry == "auto" else self._config.carry == "always"

    def check(self, demonstrations: Demonstrations) -> None:
        """See `Learner`; finds the environment."""
        try:
            from grace_irl.rl.environments import registration
            from grace_irl.rl.matching import environment_for
            from grace_irl.rl.observed import acts_continuously
            from grace_irl.rl.ppo import train  # noqa: F401  what is missing is said before anything is written
        except ImportError as error:
            raise InputError(
                f"{error.name} is not installed; expected what PPO needs: pip install 'grace-irl[rl]'"
            ) from None
        self._make = environment_for(demonstrations, self._config.env)
        self._registered = registration(self._make.name)
        self._continuous = acts_continuously(self._make)
        self._rule = self._rule or demonstrations.metadata.label

    def train(
        self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None, *, shaped: bool = False
    ) -> Learnt:
        """See `Learner`."""
        from grace_irl.rl.ppo import POLICY

        def tell(look: dict[str, Any]) -> None:
            goal = "" if look["success"] is None else f", success {look['success']:.2f}"
            self._note(f"round {folder.parent.name}: {look['steps']} steps, true return {look['mean']:.4g}{goal}")

        folder.mkdir(parents=True, exist_ok=True)
        arguments = {
            "environment": asdict(self._make),
            "registered": self._registered,
            "reward": str(reward),
            "form": form_of(self._config, self._rule, reshaped=shaped),
            "trust": self._config.trust,
            "allow_weak": self._allow_weak,
            "steps": steps,
            "seed": seed,
            "folder": str(folder),
            "initial": None if initial is None else str(initial),
            "path": [os.path.abspath(entry) for entry in sys.path],
        }
        log = folder / "log.txt"
        with LocalExecutor(1, name="train") as executor:
            try:
                learnt = executor.submit(Job(TASK, arguments, log, memory.environment()), tell).result()
            except JobError as error:
                raise GraceError(f"the training of {folder.parent.name}: {error}: see {log}") from None
        return Learnt(folder / POLICY, learnt["steps"], tuple(learnt["paid"]))

    def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
        """See `Learner`."""
        from grace_irl.rl.rollouts import play
        from grace_irl.rl.trained import load_policy

        return play(load_policy(policy), self._make, episodes, seed)
