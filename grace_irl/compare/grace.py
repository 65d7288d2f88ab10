"""GRACE as a method of a comparison: it recovers a reward from demonstrations and trains the problem's learner on it.

The recovered reward also selects the favourite among the policies kept during training (`grace_irl.rl.choice`).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from grace_irl.compare.standings import ORACLE
from grace_irl.config import Config
from grace_irl.demos.label_rule import RuleChoice, require_roles_for
from grace_irl.demos.trajectory import Demonstrations, LabelRule, Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.check import read
from grace_irl.rewards.file import RewardFile, load_reward, read_reward
from grace_irl.rl.method import Kept, Paid, PolicyProblem, Trained, TransitionReward, Watch, unwatched
from grace_irl.runs import fit as fits
from grace_irl.runs.expand import expansion
from grace_irl.runs.expand.expanding import place_of
from grace_irl.runs.expand.learner import form_of
from grace_irl.runs.expand.round import episodes
from grace_irl.runs.run import Run

REASON = "as the comparison has it"
"""Reason for the label rule, as each search of a comparison records it. The rule selects positive expert states."""

if TYPE_CHECKING:
    from grace_irl.rewards.scale import Form
    from grace_irl.rl.choice import Signal
    from grace_irl.rl.learning import Pay


@dataclass(frozen=True)
class ProgramReward:
    """The reward file that `grace` recovered. Implements `TransitionReward`, for environments without instructions.

    Attributes:
        path: the reward file.
        trust: whether the program runs in this process during training.
        allow_weak: whether to accept tier E, a sandbox that does not protect the user's files (docs/sandbox.md).
        form: form in which a learner gets the reward, such as "soft" (`grace_irl.rewards.scale`).
    """

    path: Path
    trust: bool = False
    allow_weak: bool = False
    form: Form = "raw"

    @property
    def file(self) -> RewardFile:
        """The loaded reward file."""
        return load_reward(self.path, trust=self.trust)

    def __call__(
        self,
        state: NDArray[Any],
        action: NDArray[Any],
        next_state: NDArray[Any],
        done: NDArray[np.bool_],  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Rewards `(batch,)` of transitions. The program sees each transition as an episode of two states."""
        taken = action if read(self.file.source).takes_action else None
        episodes = [
            Trajectory(np.stack(pair), None if taken is None else taken[number : number + 1])
            for number, pair in enumerate(zip(state, next_state, strict=True))
        ]
        rewards = self.file.rewards(episodes, workers=1, allow_weak_sandbox=self.allow_weak)
        return np.array([each[1] for each in rewards])


@dataclass(frozen=True)
class Recovered:
    """The reward that a method recovered.

    Attributes:
        reward: the reward; None if the method recovers none.
        paid: form of reward that the method's own learner received. Only rewards that are networks have one.
    """

    reward: TransitionReward | None
    paid: Paid = "reward"

    def pay(self, form: Paid | None = None) -> Pay:
        """The wrapper that makes environments return this reward (`Pay`).

        Args:
            form: form of the reward if it is a network; None for `paid`. A program keeps `ProgramReward.form`.
        """
        from grace_irl.rl.learning import NetPay, ProgramPay

        assert self.reward is not None
        if isinstance(self.reward, ProgramReward):
            return ProgramPay(self.reward.file, self.reward.form, self.reward.allow_weak)
        return NetPay(self.reward, form or self.paid)

    def signal(self, method: str) -> Signal | None:
        """The reward that selects the favourite among a method's policies; None if the method recovered no reward.

        The method `ORACLE`, which is PPO on the true reward, selects by the true reward.
        """
        from grace_irl.rl.choice import Signal
        from grace_irl.rl.learning import true_pay

        if method == ORACLE:
            return Signal(true_pay)
        if self.reward is None:
            return None
        centred = self.paid == "centred"
        return Signal(self.pay("reward" if centred else None), centred)


@dataclass(frozen=True)
class GraceTrained(Trained):
    """GRACE's result: a reward and its policies.

    Attributes:
        search_seconds: wall seconds of the search before training; None if search and training alternate.
    """

    search_seconds: float | None = 0.0


@dataclass(frozen=True)
class Grace:
    """GRACE: recover a reward by the search of `fit`, then train the problem's learner on it.

    With expansion, training consists of rounds. Each round adds negatives, changes the reward and keeps its policy. All
    rounds together train for as many environment steps as any other method.

    Attributes:
        config: settings of the search, the form of the reward, the sandbox and expansion.
        folder: folder of the run or of the expansion, which is resumed if it exists.
        demonstrations: the demonstrations as loaded.
        reward: a reward file to use instead of a search; None: search.
        note: function that is called with each line about the search; None: no lines.
    """

    config: Config
    folder: Path
    demonstrations: Demonstrations
    reward: Path | None = None
    note: Callable[[str], None] | None = None

    name: ClassVar[str] = "grace"

    @property
    def _rule(self) -> LabelRule:
        return self.config.data.label or self.demonstrations.metadata.label or "all"

    @property
    def reads_length(self) -> str:
        """See `PolicyMethod`. With the label rule "all", a policy may earn by long episodes alone."""
        if self._rule != "all":
            return ""
        return "its reward may be positive wherever an expert goes, so that long episodes pay"

    def check(self, problem: PolicyProblem) -> None:
        """See `PolicyMethod.check`. A search needs experts, and under the label rule "all" also negatives."""
        if self.config.expand.rounds and problem.horizon:
            raise InputError(
                "--expand with --horizon: in rounds of expansion the environment ends episodes, not a horizon; "
                "expected one or the other"
            )
        if self.config.expand.rounds and self.reward is not None:
            raise InputError(
                "--expand with --reward: rounds of expansion search for rewards themselves; expected one or the other"
            )
        if self.reward is None:
            require_roles_for(RuleChoice(self._rule, REASON), self.demonstrations)
        else:
            read_reward(self.reward)

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> GraceTrained:
        """See `PolicyMethod.train`."""
        config = self.config.model_copy(update={"seed": seed})
        if config.expand.rounds:
            return self._expanded(self._run(config), config, watch)
        from grace_irl.rl.learning import ProgramPay, learn_on

        begun = time.monotonic()
        run = None if self.reward else self._run(config)
        took = time.monotonic() - begun
        reward = self._reward(config, run)
        pay = ProgramPay(reward.file, reward.form, reward.allow_weak)
        trained = learn_on(problem, seed, pay, watch)
        return GraceTrained(trained.policy, reward, trained.steps, kept=trained.kept, search_seconds=took)

    def _run(self, config: Config) -> Run:
        """Start a search, or resume one that was killed."""
        parts = fits.Parts(demonstrations=self.demonstrations, note=self.note, reason=REASON)
        first = place_of(self.folder, 0) / "run" if config.expand.rounds else self.folder
        if not first.exists():
            shutil.rmtree(self.folder, ignore_errors=True)  # A killed process may have left an incomplete folder.
            return expansion.start(config, self.folder, parts)
        workers = {"sandbox.workers": config.sandbox.workers}
        return expansion.resume(self.folder, workers, parts=parts, vouched=config)

    def _expanded(self, run: Run, config: Config, watch: Watch) -> GraceTrained:
        from grace_irl.rl.trained import load_policy

        rounds, steps = run.rounds[1:], 0
        kept: list[Kept] = []
        for each in rounds:
            steps += each.steps
            kept.append(Kept(steps, load_policy(run.folder / each.policy)))
            watch(steps, kept[-1].policy)
        note = (
            f"expansion of {len(rounds)} rounds ({run.reason}); the episodes played as negatives took {_played(run)} "
            "steps, which are not among those of training"
        )
        reward, (*before, last) = self._reward(config, run), kept
        return GraceTrained(last.policy, reward, steps, (note,), kept=tuple(before), search_seconds=None)

    def _reward(self, config: Config, run: Run | None) -> ProgramReward:
        """The reward of a run, or the given reward file if there is no run."""
        path = self.reward if run is None else run.reward_path
        assert path is not None
        form = form_of(config.expand, self._rule, reshaped=run is not None and run.reshaped)
        return ProgramReward(path, config.expand.trust, config.sandbox.allow_weak, form)


def _played(run: Run) -> int:
    """Environment steps of the episodes that an expansion added as negatives."""
    return sum(played.num_steps for each in run.rounds[1:] for played in episodes(run.folder, each.number))
