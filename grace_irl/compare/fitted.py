"""The methods of `grace-irl fit` in a comparison. Each method searches for a reward and trains a policy on the reward.

The reward also selects the favourite among the policies kept during training (`grace_irl.rl.choice`).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.compare.budgets import milestones_of
from grace_irl.compare.folder import Milestone, Used, read_curve
from grace_irl.compare.settings import ORACLE
from grace_irl.config import Config, SandboxConfig
from grace_irl.demos.components import require_same
from grace_irl.demos.label_rule import RuleChoice, require_roles_for
from grace_irl.demos.labels import Problem
from grace_irl.demos.trajectory import Demonstrations, LabelRule, Trajectory
from grace_irl.errors import InputError
from grace_irl.methods.grace import discriminator
from grace_irl.methods.registry import method_of
from grace_irl.methods.trained import policy_evaluator
from grace_irl.programs.check import read
from grace_irl.programs.export import fields_of, label_of, reads_of, threshold_of
from grace_irl.rewards.file import RewardFile, load_reward, read_reward
from grace_irl.rl.method import Kept, Paid, PolicyProblem, Trained, TransitionReward, Watch, unwatched
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import flat
from grace_irl.runs.effects import author_of
from grace_irl.runs.expand import expansion
from grace_irl.runs.expand.expanding import place_of
from grace_irl.runs.expand.round import episodes
from grace_irl.runs.run import Run, opened
from grace_irl.runs.sandbox import limits_of

REASON = "as the comparison has it"
"""Reason that each search of a comparison records for its label rule. The label rule selects positive expert states."""

if TYPE_CHECKING:
    from grace_irl.rewards.scale import Form
    from grace_irl.rl.choice import Signal
    from grace_irl.rl.learning import Pay


@dataclass(frozen=True)
class ProgramReward:
    """The reward file that a search found, or that the user gave in place of a search.

    The class implements `TransitionReward`, for environments without instructions.

    Attributes:
        path: the reward file.
        trust: whether the program runs in this process during training.
        sandbox: settings of the sandbox in which the program runs if it is not trusted.
        form: form in which a learner gets the reward, such as "soft" (`grace_irl.rewards.scale`).
    """

    path: Path
    trust: bool = False
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
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
        rewards = self.file.rewards(
            episodes, workers=1, allow_weak_sandbox=self.sandbox.allow_weak, limits=limits_of(self.sandbox)
        )
        return np.array([each[1] for each in rewards])

    def pay(self) -> Pay:
        """The wrapper that makes environments return this reward (`Pay`)."""
        from grace_irl.rl.learning import ProgramPay

        return ProgramPay(self.file, self.form, self.sandbox.allow_weak, limits=limits_of(self.sandbox))


@dataclass(frozen=True)
class Recovered:
    """The reward that a method recovered.

    Attributes:
        reward: the reward; None if the method recovers none.
        paid: form in which the method's own learner received the reward, if the reward is a network (`Paid`).
    """

    reward: TransitionReward | None
    paid: Paid = "reward"

    def pay(self, form: Paid | None = None) -> Pay:
        """The wrapper that makes environments return this reward (`Pay`).

        Args:
            form: form in which a learner receives the reward of a network; None: `paid`. A program has its own form
                (`ProgramReward.form`).
        """
        from grace_irl.rl.learning import NetPay

        assert self.reward is not None
        if isinstance(self.reward, ProgramReward):
            return self.reward.pay()
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
class FittedPolicy(Trained):
    """The result of a method of `grace-irl fit`: a reward and the policies trained on it.

    Attributes:
        used: resources that the search used.
        search_seconds: wall seconds of the search in this process, before training; None if search and training
            alternate.
    """

    used: Used = field(default_factory=Used)
    search_seconds: float | None = 0.0


@dataclass(frozen=True)
class Fitted:
    """A method of `grace-irl fit`: find a reward by a search, then train the problem's learner on the reward.

    With expansion, training consists of rounds. Each round trains and keeps a policy, adds negatives and may change the
    reward. All rounds together have the same budget of environment steps as any other method.

    Attributes:
        name: name in `--methods`: `grace`, or another method of `grace-irl fit`.
        config: settings of the search, the form of the reward, the sandbox and expansion.
        folder: folder of the run or of the expansion, which is resumed if it exists.
        demonstrations: the demonstrations as loaded; may be empty if the method does not need them.
        reward: a reward file to use instead of a search; None: search.
        note: function that receives each line about the search; None: no lines.
        device: torch device of the trainings in an expansion (`grace_irl.rl.learning.make_learner`).
    """

    name: str
    config: Config
    folder: Path
    demonstrations: Demonstrations
    reward: Path | None = None
    note: Callable[[str], None] | None = None
    device: str = "auto"

    @property
    def _rule(self) -> LabelRule:
        own = label_of(read_reward(self.reward)) if self.reward is not None else ""
        return own or self.config.data.label or self.demonstrations.metadata.label or "all"

    @property
    def separates(self) -> bool:
        """Whether the search looks for a reward that separates experts from negatives."""
        return method_of(self.config).needs.demonstrations

    @property
    def reads_length(self) -> str:
        """See `PolicyMethod`. With the label rule "all", a policy may earn by long episodes alone."""
        if self._rule != "all" or not self.separates:
            return ""
        return "its reward may be positive wherever an expert goes, so that long episodes pay"

    def check(self, problem: PolicyProblem) -> None:
        """See `PolicyMethod.check`.

        A search that separates experts from negatives needs experts, and under the label rule "all" also negatives. Any
        other search with the proposer "synthesis" needs a task for which this proposer can write programs.
        """
        if self.config.expand.rounds and problem.horizon:
            raise InputError(
                "--expand with --horizon: in rounds of expansion the environment ends episodes, not a horizon; "
                "expected one or the other"
            )
        if self.config.expand.rounds and self.reward is not None:
            raise InputError(
                "--expand with --reward: rounds of expansion search for rewards themselves; expected one or the other"
            )
        given = None if self.reward is None else read_reward(self.reward)
        lacking = not self.separates if given is None else threshold_of(given) is None
        if self.config.expand.form == "guided" and lacking:
            raise InputError(
                f"{self.name}: the form 'guided' for {self.reward or f'rewards of method {self.config.method!r}'}, "
                "without a THRESHOLD; expected another form (--expand-form)"
            )
        if given is not None:
            known = self.demonstrations.metadata.fields
            require_same(known, fields_of(given), "the demonstrations", f"--reward {self.reward}")
            for item in self.demonstrations.items[:1]:
                states = item.trajectory.states
                reads_of(given).require(item.trajectory.state_kind, states, f"--reward {self.reward}: demonstrations")
        elif self.separates:
            require_roles_for(RuleChoice(self._rule, REASON), self.demonstrations)
        elif (writer := method_of(self.config).writer) is not None and author_of(self.config) == "synthesis":
            writer(Problem(self.demonstrations.metadata, self._rule, ()), self.config)

    def train(self, problem: PolicyProblem, seed: int, watch: Watch = unwatched) -> FittedPolicy:
        """See `PolicyMethod.train`."""
        config = self.config.model_copy(update={"seed": seed})
        if config.expand.rounds:
            return self._expanded(self._run(config), config, watch)
        from grace_irl.rl.learning import learn_on

        begun = time.monotonic()
        run = None if self.reward else self._run(config)
        took = time.monotonic() - begun
        reward = self._reward(config, run)
        trained = learn_on(problem, seed, reward.pay(), watch)
        used = Used() if run is None else used_by(self.folder, run.seconds)
        return FittedPolicy(
            trained.policy, reward, trained.steps, _warned(run), kept=trained.kept, used=used, search_seconds=took
        )

    def _run(self, config: Config) -> Run:
        """Start a search, or resume one that was killed."""
        demonstrations = self.demonstrations if self.demonstrations.items else None
        parts = Parts(demonstrations=demonstrations, note=self.note, reason=REASON, rest=False, device=self.device)
        first = place_of(self.folder, 0) / "run" if config.expand.rounds else self.folder
        if not first.exists():
            shutil.rmtree(self.folder, ignore_errors=True)  # A killed process may have left an incomplete folder.
            return expansion.start(config, self.folder, parts)
        workers = {key: value for key, value in flat(config).items() if key in SHARES}
        return expansion.resume(self.folder, workers, parts=parts, vouched=config)

    def _expanded(self, run: Run, config: Config, watch: Watch) -> FittedPolicy:
        from grace_irl.rl.trained import load_policy

        rounds, steps = run.rounds[1:], 0
        kept: list[Kept] = []
        for each in rounds:
            steps += each.steps
            kept.append(Kept(steps, load_policy(run.folder / each.policy)))
            watch(steps, kept[-1].policy)
        played = _played(run)
        note = (
            f"expansion of {len(rounds)} rounds ({run.reason}); the episodes played as negatives took {played} "
            "steps, which are not among those of training"
        )
        reward, (*before, last) = self._reward(config, run), kept
        used = replace(used_by(self.folder, None), steps=played, measure="", milestones=())
        return FittedPolicy(
            last.policy, reward, steps, (note, *_warned(run)), kept=tuple(before), used=used, search_seconds=None
        )

    def _reward(self, config: Config, run: Run | None) -> ProgramReward:
        """The reward of a run, or the given reward file if there is no run.

        With `expand.form` "auto", the form follows from the label rule (`RewardFile.form_by`).
        """
        path = self.reward if run is None else run.reward_path
        assert path is not None
        chosen = config.expand.form
        form = load_reward(path).form_by(self._rule) if chosen == "auto" else chosen
        return ProgramReward(path, config.expand.trust, config.sandbox, form)


def _warned(run: Run | None) -> tuple[str, ...]:
    """A note with the codes of the warnings about the reward of a run; none without warnings."""
    codes = ", ".join(dict.fromkeys(each.code for each in run.warnings)) if run else ""
    return (f"warnings about the reward: {codes}",) if codes else ()


SHARES = ("sandbox.workers", "policy.trainings")
"""Settings of a search that limit its number of processes. They do not affect its result."""


def _played(run: Run) -> int:
    """Environment steps of the episodes that an expansion added as negatives."""
    return sum(played.num_steps for each in run.rounds[1:] for played in episodes(run.folder, each.number))


def used_by(folder: Path, seconds: float | None) -> Used:
    """Count the resources that a search has used, from its folder: a run, or the runs of an expansion.

    Args:
        folder: folder of the run or of the expansion.
        seconds: wall seconds of the search; None if unknown.
    """
    from grace_irl.rl.ppo import CURVE
    from grace_irl.tasks.training import TRAININGS

    asked = calls = tokens_in = tokens_out = 0
    writers: list[str] = []
    measure = ""
    milestones: tuple[Milestone, ...] = ()
    databases = sorted(folder.rglob("run.db"))
    for database in databases:
        with opened(database.parent) as (store, config):
            writers.append(_writer(config))
            if len(databases) == 1:
                measure, milestones = _measure(config), milestones_of(store, folder / TRAININGS)
            asked += len(store.told())
            for _, _, answer in store.proposals():
                # The first answer of a call holds the prompt, the tokens and the time of the call.
                calls += bool(answer.prompt and (answer.tokens_in or answer.seconds))
                tokens_in, tokens_out = tokens_in + answer.tokens_in, tokens_out + answer.tokens_out
    trainings = folder / TRAININGS
    trained = sum(each.is_dir() for each in trainings.iterdir()) if trainings.is_dir() else 0
    curves = [read_curve(path) for path in trainings.glob(f"*/*/{CURVE}")]
    steps = sum(int(curve[-1]["steps"]) for curve in curves if curve)
    writer = ", ".join(dict.fromkeys(writers))
    return Used(asked, trained, calls, tokens_in, tokens_out, steps, seconds, writer, measure, milestones)


def _measure(config: Config) -> str:
    """The quantity that the scores of a run measure (`Used.measure`); "" for evaluators of other distributions."""
    evaluator = method_of(config).evaluator
    return "score" if evaluator is policy_evaluator else "fitness" if evaluator is discriminator else ""


def _writer(config: Config) -> str:
    """The name of a run's proposer, with its model or recording, and the programs that come before its own."""
    author, proposer = author_of(config), config.proposer
    source = {"llm": config.model.name, "replay": Path(proposer.recording).name}.get(author, "")
    named = f"{author} ({source})" if source else author
    first = f" after {proposer.seed_synthesis} programs of synthesis" if proposer.seed_synthesis else ""
    return f"{named}{' after given programs' if proposer.start_from else ''}{first}"
