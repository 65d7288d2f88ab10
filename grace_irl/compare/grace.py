"""GRACE as one of the methods: a reward recovered from the demonstrations, and the problem's learner on it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from grace_irl.compare.recovered import ProgramReward
from grace_irl.demos import require_roles
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.rewards.file import read_reward
from grace_irl.rl.method import Kept, PolicyProblem, Trained, Watch, unwatched
from grace_irl.runs import fit as fits
from grace_irl.runs.config import Config
from grace_irl.runs.expand import expansion
from grace_irl.runs.expand.learner import form_of
from grace_irl.runs.expand.round import episodes
from grace_irl.runs.run import Run


@dataclass(frozen=True)
class GraceTrained(Trained):
    """What GRACE has learnt.

    Attributes:
        search_seconds: wall seconds before the learner began; None where search and training take turns.
    """

    search_seconds: float | None = 0.0


@dataclass(frozen=True)
class Grace:
    """Recovers a reward by a search as `fit` does it, then trains as PPO on the true reward is trained.

    With expansion the environment steps are those of all rounds together, as many as every other method has, and the
    policies that are kept are those of the rounds.

    Attributes:
        config: of the search, of the form of the reward, of the sandbox and of expansion.
        folder: of the run, or of the expansion; goes on with what is there.
        demonstrations: as they were loaded.
        reward: a reward file instead of a search; None: search.
        note: is told of the search.
    """

    config: Config
    folder: Path
    demonstrations: Demonstrations
    reward: Path | None = None
    note: Callable[[str], None] | None = None

    name: ClassVar[str] = "grace"

    @property
    def reads_length(self) -> str:
        """Rewards of goals are low off the goal; one that marks all of an expert's states may pay for each step."""
        if (self.config.data.label or self.demonstrations.metadata.label or "all") != "all":
            return ""
        return "its reward may be positive wherever an expert goes, so that long episodes pay"

    def check(self, problem: PolicyProblem) -> None:
        """Needs experts and negatives, or a reward file."""
        if self.config.expand.rounds and problem.horizon:
            raise InputError(
                "--expand with --horizon: rounds of expansion play episodes as the environment ends them; expected "
                "one or the other"
            )
        if self.config.expand.rounds and self.reward is not None:
            raise InputError("--expand with --reward: rounds of expansion search; expected one or the other")
        if self.reward is None:
            require_roles(self.demonstrations)
        else:
            read_reward(self.reward)

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> GraceTrained:
        """See `Method.train`."""
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
        """Searches, or goes on where a search was killed."""
        parts = fits.Parts(demonstrations=self.demonstrations, note=self.note)
        expands = config.expand.rounds > 0
        began = (self.folder / "rounds" / "0" / "run" if expands else self.folder).exists()
        if not began:
            shutil.rmtree(self.folder, ignore_errors=True)  # killed before it was whole
            return (expansion.start if expands else fits.start)(config, self.folder, parts)
        workers = {"sandbox.workers": config.sandbox.workers}
        return (expansion.resume if expands else fits.resume)(self.folder, workers, parts=parts, vouched=config)

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
        """The reward of a run, or the file that was given."""
        rule = config.data.label or self.demonstrations.metadata.label
        path = self.reward if run is None else run.reward_path
        assert path is not None
        form = form_of(config.expand, rule, reshaped=run is not None and run.reshaped)
        return ProgramReward(path, config.expand.trust, config.sandbox.allow_weak, form)


def _played(run: Run) -> int:
    """Environment steps of the episodes that an expansion played."""
    return sum(played.num_steps for each in run.rounds[1:] for played in episodes(run.folder, each.number))
