"""Learners, which train policies on a recovered reward and play episodes with them. `PpoLearner` is the only learner.

In an expansion, rewards and policies alternate. The episodes of each policy are further negatives for the next reward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from grace_irl.config import ExpandConfig, SandboxConfig
from grace_irl.demos import memory
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.file import load_reward
from grace_irl.rewards.scale import FormChoice
from grace_irl.rl import TRAINING_IMPORTS
from grace_irl.rl.evaluation import Rollout
from grace_irl.runs.sandbox import limits_of
from grace_irl.sandbox.protocol import Limits
from grace_irl.work import Job, JobError, Tell, Workplace

TASK = "grace_irl.runs.expand.learner:train_policy"  # the function that a separate process calls
EVALUATIONS = 5
"""Number of evaluations of the policy during training; each saves a checkpoint."""
EPISODES = 10  # episodes per evaluation


@dataclass(frozen=True)
class Learnt:
    """The result of one training.

    Attributes:
        policy: the file of the policy, in the training's folder.
        steps: number of environment steps of the training.
        paid: mean return of training episodes under the recovered reward, one value per evaluation of the policy. A
            value is None if no episode ended since the previous evaluation.
    """

    policy: Path
    steps: int
    paid: tuple[float | None, ...] = ()


class Learner(Protocol):
    """A learner of policies. The same arguments give the same result, even after an interruption."""

    @property
    def carries(self) -> bool:
        """Whether training under a new reward starts from an earlier policy. Call `check` first."""
        ...

    def check(self, demonstrations: Demonstrations) -> None:
        """Refuse an environment whose states do not match the demonstrations.

        Raises:
            InputError: the states differ. The message describes the difference.
        """
        ...

    def train(self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None) -> Learnt:
        """Train a policy on a reward. If `folder` has a checkpoint, continue from the last one.

        Args:
            reward: the reward file.
            steps: number of environment steps of this training, including those before a checkpoint.
            seed: seed of all random generators.
            folder: folder for checkpoints.
            initial: file of the policy to start from; None for a new policy.

        Raises:
            GraceError: the reward fails.
        """
        ...

    def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
        """Play episodes with a trained policy, and return them.

        Args:
            policy: the file of the policy.
            episodes: number of episodes.
            seed: seed of all random generators.
        """
        ...


def train_policy(
    tell: Tell,
    *,
    environment: dict[str, Any],
    code: dict[str, Any],
    reward: str,
    form: FormChoice,
    trust: bool,
    allow_weak: bool,
    limits: dict[str, Any],
    steps: int,
    seed: int,
    folder: str,
    initial: str | None,
    device: str,
) -> dict[str, Any]:
    """Train a policy by PPO, and save it in the folder. `PpoLearner` calls this function in a separate process.

    Args:
        tell: callback for each evaluation of the policy.
        environment: the fields of an `EnvironmentSpec`.
        code: the place of the environment's code (`grace_irl.rl.environments.code_of`).
        reward: the reward file.
        form: the form of the reward for training (`ExpandConfig.form`).
        trust: whether the reward runs in the training process, without a sandbox.
        allow_weak: whether a weak sandbox is allowed.
        limits: the fields of `Limits`, for the program in the sandbox.
        steps: number of environment steps of this training, including those before a checkpoint.
        seed: seed of all random generators.
        folder: folder for checkpoints.
        initial: file of the policy to start from; None for a new policy.
        device: torch device (`grace_irl.rl.learning.make_learner`).

    Returns:
        The fields `steps` and `paid` of `Learnt`, by name.
    """
    from grace_irl.rl.environments import find_code
    from grace_irl.rl.learning import ProgramPay
    from grace_irl.rl.matching import EnvironmentSpec
    from grace_irl.rl.ppo import train
    from grace_irl.rl.trained import load_policy

    find_code(**code)
    training = train(
        EnvironmentSpec(**environment),
        steps,
        reward=ProgramPay(load_reward(reward, trust=trust), form, allow_weak, limits=Limits(**limits)),
        seed=seed,
        evaluations=EVALUATIONS,
        episodes=EPISODES,
        out=folder,
        initial=None if initial is None else load_policy(initial),
        device=device,
        progress=lambda look: tell({"steps": look.steps, "mean": look.mean, "success": look.success}),
    )
    return {"steps": training.steps, "paid": [look.paid for look in training.curve]}


class PpoLearner:
    """PPO (`grace_irl.rl.ppo`) in the environment of the demonstrations, in a separate process.

    Args:
        config: the settings of the expansion.
        sandbox: settings of the sandbox.
        note: callback for one line about each evaluation of the policy.
        workplace: place where the trainings run.
        device: torch device (`grace_irl.rl.learning.make_learner`).
    """

    def __init__(
        self,
        config: ExpandConfig,
        *,
        sandbox: SandboxConfig = SandboxConfig(),
        note: Callable[[str], None],
        workplace: Workplace = Workplace(),
        device: str = "auto",
    ) -> None:
        self._config = config
        self._sandbox = sandbox
        self._note = note
        self._workplace = workplace
        self._device = device

    @property
    def carries(self) -> bool:
        """Whether training under a new reward starts from an earlier policy.

        The setting `expand.carry` decides. With "auto", the result is True for continuous actions only.
        """
        return self._continuous if self._config.carry == "auto" else self._config.carry == "always"

    def check(self, demonstrations: Demonstrations) -> None:
        """Find the environment of the demonstrations; see `Learner.check`."""
        try:
            from grace_irl.rl.environments import code_of
            from grace_irl.rl.matching import environment_for
            from grace_irl.rl.observed import acts_continuously
            from grace_irl.rl.ppo import train  # noqa: F401  a missing package is reported before anything is written
        except ImportError as error:
            raise InputError(
                f"{error.name} is not installed; expected what PPO needs: pip install 'grace-irl[rl]'"
            ) from None
        self._make = environment_for(demonstrations, self._config.env)
        self._code = code_of(self._make.name)
        self._continuous = acts_continuously(self._make)

    def train(self, reward: Path, steps: int, seed: int, folder: Path, initial: Path | None) -> Learnt:
        """Train a policy in a separate process; see `Learner.train`."""
        from grace_irl.rl.ppo import POLICY

        def tell(look: dict[str, Any]) -> None:
            goal = "" if look["success"] is None else f", success {look['success']:.2f}"
            self._note(f"round {folder.parent.name}: {look['steps']} steps, true return {look['mean']:.4g}{goal}")

        folder.mkdir(parents=True, exist_ok=True)
        arguments = {
            "environment": asdict(self._make),
            "code": self._code,
            "reward": str(reward.absolute()),
            "form": self._config.form,
            "trust": self._config.trust,
            "allow_weak": self._sandbox.allow_weak,
            "limits": asdict(limits_of(self._sandbox)),
            "steps": steps,
            "seed": seed,
            "folder": str(folder.absolute()),
            "initial": None if initial is None else str(initial.absolute()),
            "device": self._device,
        }
        log = folder / "log.txt"
        job = Job(TASK, arguments, log, memory.environment(), TRAINING_IMPORTS)
        with self._workplace.executor(1, name="train") as executor:
            try:
                learnt = executor.submit(job, tell).result()
            except JobError as error:
                raise GraceError(f"the training of round {folder.parent.name}: {error}: see {log}") from None
        return Learnt(folder / POLICY, learnt["steps"], tuple(learnt["paid"]))

    def play(self, policy: Path, episodes: int, seed: int) -> Sequence[Rollout]:
        """Play episodes with a trained policy; see `Learner.play`."""
        from grace_irl.rl.rollouts import play
        from grace_irl.rl.trained import load_policy

        return play(load_policy(policy), self._make, episodes, seed)
