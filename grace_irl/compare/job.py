"""One job of a comparison: one method with one seed. An executor calls `work` in a process for each job."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grace_irl.atomic import write_atomically
from grace_irl.compare.contest import Contest, Judge
from grace_irl.compare.fitted import FittedPolicy, ProgramReward, Recovered
from grace_irl.compare.folder import (
    PLAYED,
    ComparisonFolder,
    Favourite,
    JobFolder,
    JobResult,
    TrainingOutcome,
    Used,
    not_finite,
    read_result,
    write_result,
)
from grace_irl.compare.settings import ORACLE, digest_of, read_settings
from grace_irl.errors import GraceError, InputError
from grace_irl.packages import versions_of
from grace_irl.rl.environments import find_code
from grace_irl.rl.method import Kept, Policy, PolicyMethod, PolicyProblem, Trained, TransitionReward, Watch
from grace_irl.runs.folder import RunLock, worked_on
from grace_irl.work import Tell
from grace_irl.work.process import missing
from grace_irl.work.stored import STALE_S

if TYPE_CHECKING:
    from grace_irl.rl.curve import Point


EVALUATION = 7919
"""Offset from the job's seed to the seed of the last evaluation. It is the same for all methods. So in jobs with the
same seed, the policies of all methods start this evaluation from the same initial states."""


PACKAGES = ("numpy", "torch", "stable-baselines3", "imitation", "gymnasium", "minigrid", "mujoco")
"""Packages whose versions affect results."""


class Looks:
    """Evaluations of a policy during training, written to a file as a learning curve. Implements `Watch`.

    Args:
        judge: the evaluation.
        path: file of the learning curve.
        episodes: number of episodes of each evaluation.
        seed: seed of the job.

    Attributes:
        seconds: wall seconds of all evaluations so far.
    """

    def __init__(self, judge: Judge, path: Path, episodes: int, seed: int) -> None:
        self._judge, self._path, self._episodes, self._seed = judge, path, episodes, seed
        self._points: list[Point] = []
        self.seconds = 0.0
        write_atomically(path, "[]")  # replaces the curve of an earlier attempt

    def __call__(self, steps: int, policy: Policy) -> None:
        """See `Watch`."""
        from grace_irl.rl.curve import to_json

        begun = time.monotonic()
        number = self._seed + (len(self._points) + 2) * EVALUATION  # differs from the seed of the last evaluation
        self._points.append(self._judge.point(policy, steps, self._episodes, number))
        write_atomically(self._path, to_json(self._points))
        self.seconds += time.monotonic() - begun


CHOICE = 104_729
"""Offset from the job's seed to the seed of the episodes that choose the favourite, the policy of a training that the
recovered reward pays most (`grace_irl.rl.choice`). Evaluations use other episodes."""

LOCK_S = STALE_S + 15.0
"""Seconds to wait for the lock of a job. If a comparison dies, its jobs may run on for up to `STALE_S` seconds."""
LOCK_LOOK_S = 0.5


def run_job(folder: Path, method: str, seed: int, workers: int | None = None, digest: str = "") -> JobResult:
    """Run one job, and write its result. If the job fails, the result holds the reason.

    Args:
        folder: folder of the comparison.
        method, seed: method and seed of the job.
        workers: number of sandbox processes of the search, unless the settings contain this number.
        digest: digest of the settings that the user confirmed; "" accepts any settings.
    """
    place = ComparisonFolder(folder).job(method, seed)
    place.path.mkdir(parents=True, exist_ok=True)
    with _lock(place.path / "lock"):
        try:
            settings = read_settings(folder)
            if digest and settings.digest() != digest:
                raise InputError(
                    f"{folder}: its settings changed while it was worked on; expected those that it began with"
                )
            contest = Contest.of(settings, workers).marked(folder).drawn(seed)
            result = _Job(contest, place, method, seed).result()
        except GraceError as error:
            result = _failed(place, method, seed, str(error))
        except ImportError as error:
            traceback.print_exc()
            result = _failed(place, method, seed, missing(error))
        except Exception as error:  # a defect of one job must not stop the others
            traceback.print_exc()
            result = _failed(place, method, seed, f"{type(error).__name__}: {error}")
    return result


def work(
    tell: Tell,  # noqa: ARG001
    folder: str,
    method: str,
    seed: int,
    workers: int,
    digest: str,
    code: dict[str, Any] | None = None,
) -> None:
    """Task of an executor: call `run_job`, which writes the result to the folder of the job.

    Args:
        tell: function for messages, which is not called.
        folder, method, seed, workers, digest: as for `run_job`.
        code: place of the user's code (`grace_irl.rl.environments.code_of`).
    """
    if code is not None:
        find_code(**code)
    run_job(Path(folder), method, seed, workers, digest)


def _failed(place: JobFolder, method: str, seed: int, why: str) -> JobResult:
    """Add the reason of a failure to the job's earlier result, and write the new result."""
    result = replace(read_result(place.result) or JobResult(method, seed), failure=" ".join(why.split()))
    write_result(place.result, result)
    return result


def _lock(path: Path) -> RunLock:
    """Acquire a job's lock, within `LOCK_S` seconds. The job of a killed comparison may hold it for `STALE_S` seconds.

    Raises:
        InputError: another process still holds the lock.
    """
    until = time.monotonic() + LOCK_S
    while True:
        try:
            return RunLock(path)
        except InputError:
            if time.monotonic() > until:
                raise
            if not worked_on(path.parent):  # no process holds the lock: try once more, and raise the error
                return RunLock(path)
            time.sleep(LOCK_LOOK_S)


@dataclass(frozen=True)
class _Job:
    """One method with one seed."""

    contest: Contest
    place: JobFolder
    name: str
    seed: int

    def result(self) -> JobResult:
        """Train and evaluate; then train on the recovered reward in the transfer environments. Save each result.

        Raises:
            GraceError: the job failed.
        """
        from grace_irl.rl.learning import one_thread

        with one_thread():
            method = self.contest.method(self.name, self.place.fit, print)
            problem = self.contest.problem(self.seed)
            method.check(problem)
            recovered, result = self._before() or self._learnt(method, problem)
            for environment in self.contest.settings.comparison.transfer:
                if environment not in result.carried:
                    result = self._with_transfer(result, method, recovered, problem, environment)
                    write_result(self.place.result, result)
        return result

    def _before(self) -> tuple[Recovered, JobResult] | None:
        """The reward and the result of an earlier process of this job; None if training must be repeated.

        If there is an earlier result to reuse, only trainings in transfer environments remain. A reward network is
        never reused, because loading its file could run code.
        """
        found = read_result(self.place.result)
        if found is None or not found.outcomes or self.place.net.exists():
            return None
        if not self.place.program.exists():
            return Recovered(None), found  # the method recovers no reward
        if not found.form:
            return None
        fit = self.contest.settings.fit
        # The program is not trusted: somebody may have changed its file since the earlier process wrote it.
        program = ProgramReward(self.place.program, False, fit.sandbox, found.form)
        return Recovered(program), found

    def _learnt(self, method: PolicyMethod, problem: PolicyProblem) -> tuple[Recovered, JobResult]:
        """Train and evaluate in the comparison's own environment."""
        judge = self.contest.judge(problem)
        trained, outcome = self._measured(judge, lambda watch: method.train(problem, self.seed, watch))
        recovered = Recovered(trained.reward, trained.paid)
        outcome, unchosen = self._with_favourite(judge, trained, recovered, outcome)
        outcome, notes = self._with_reward(problem, trained.reward, outcome)
        form = trained.reward.form if isinstance(trained.reward, ProgramReward) else ""
        data = digest_of(self.contest.demonstrations) if self.contest.demonstrations.items else ""
        used = trained.used if isinstance(trained, FittedPolicy) else Used()
        notes = [*trained.notes, *unchosen, *notes]
        result = JobResult(
            self.name,
            self.seed,
            (outcome,),
            tuple(notes),
            form=form,
            data=data,
            used=used,
        )
        write_result(self.place.result, result)
        return recovered, result

    def _with_transfer(
        self, result: JobResult, method: PolicyMethod, recovered: Recovered, here: PolicyProblem, environment: str
    ) -> JobResult:
        """The result with the outcome of a new policy, trained on the recovered reward in another environment."""
        there = self.contest.problem(self.seed, environment)
        learn = self._carried(method, recovered, here, there)
        result = replace(result, carried=(*result.carried, environment))
        if isinstance(learn, str):
            return replace(result, notes=(*result.notes, f"not carried to {environment}: {learn}"))
        judge = self.contest.judge(there, environment)
        trained, outcome = self._measured(judge, learn, carried=True)
        outcome, notes = self._with_favourite(judge, trained, recovered, outcome)
        return replace(result, outcomes=(*result.outcomes, outcome), notes=(*result.notes, *notes))

    def _measured(
        self, judge: Judge, learn: Callable[[Watch], Trained], *, carried: bool = False
    ) -> tuple[Trained, TrainingOutcome]:
        """Train with a learning curve, and evaluate at the end."""
        environment, episodes = judge.environment, self.contest.settings.comparison.look_episodes
        looks = Looks(judge, self.place.curve(environment), episodes, self.seed)
        begun = time.monotonic()
        trained = learn(looks)
        seconds: float | None = time.monotonic() - begun - looks.seconds
        if isinstance(trained, FittedPolicy):
            search = trained.search_seconds
            seconds = None if search is None or seconds is None else seconds - search
        self._keep(trained.policy, self.place.policy(environment))
        found = self._evaluated(judge, trained.policy, trained.steps)
        outcome = TrainingOutcome(
            environment,
            carried,
            found.episodes,
            **{name: getattr(found, name) for name in PLAYED},
            steps=trained.steps,
            seconds=seconds,
            learner=f"PPO with {judge.settings.line}" if trained.steps else "",
            versions=versions_of(PACKAGES),
        )
        return trained, outcome

    def _evaluated(self, judge: Judge, policy: Policy, steps: int) -> Point:
        """Evaluate a policy on the episodes of the last evaluation.

        Raises:
            GraceError: a result is not a finite number.
        """
        found = judge.point(policy, steps, self.contest.settings.comparison.episodes, self.seed + EVALUATION)
        if wrong := not_finite(found):
            raise GraceError(
                f"{judge.environment}: its evaluation after {steps} steps of training has {wrong}; expected an "
                "environment with finite rewards: correct it, and --resume"
            )
        return found

    def _with_favourite(
        self, judge: Judge, trained: Trained, recovered: Recovered, outcome: TrainingOutcome
    ) -> tuple[TrainingOutcome, list[str]]:
        """The outcome with the favourite of the training, and notes on a failed choice."""
        from grace_irl.rl.choice import Chosen, choose

        last, signal = Kept(trained.steps, trained.policy), recovered.signal(self.name)
        chosen = Chosen(last, (), 0)
        if signal is not None and trained.kept:
            episodes, number = self.contest.settings.comparison.choice_episodes, self.seed + CHOICE
            kept, deterministic = (*trained.kept, last), judge.deterministic
            try:
                chosen = choose(kept, judge.problem, signal, episodes, number, deterministic=deterministic)
            except GraceError as error:
                return outcome, [f"{outcome.environment}: no favourite: {error}"]
        place = self.place.favourite(outcome.environment)
        if chosen.policy is last:
            place.unlink(missing_ok=True)  # the favourite of an earlier attempt
            of = {name: getattr(outcome, name) for name in PLAYED}
        else:
            self._keep(chosen.policy.policy, place)
            found = self._evaluated(judge, chosen.policy.policy, chosen.policy.steps)
            of = {name: getattr(found, name) for name in PLAYED}
        return replace(outcome, favourite=Favourite(chosen.policy.steps, chosen.paid, chosen.steps, **of)), []

    def _keep(self, policy: Policy, path: Path) -> None:
        from grace_irl.rl.problems import save_policy

        save_policy(policy, path)

    def _with_reward(
        self, problem: PolicyProblem, reward: TransitionReward | None, outcome: TrainingOutcome
    ) -> tuple[TrainingOutcome, list[str]]:
        """Save the recovered reward. Return the outcome with the EPIC distance, and notes if the distance fails."""
        from grace_irl.compare.distance import distance
        from grace_irl.rl.problems import save_net

        if reward is None:
            return outcome, []
        if isinstance(reward, ProgramReward):
            write_atomically(self.place.program, reward.file.source)
        else:
            save_net(reward, self.place.net)
        try:
            return replace(outcome, epic=distance(problem, reward)), []
        except GraceError as error:
            return outcome, [f"no EPIC distance: {error}"]

    def _carried(
        self, method: PolicyMethod, recovered: Recovered, here: PolicyProblem, there: PolicyProblem
    ) -> Callable[[Watch], Trained] | str:
        """A function that trains a new policy in another environment, or the reason why that is impossible."""
        from grace_irl.rl.learning import learn_on

        reward = recovered.reward
        if self.name == ORACLE:
            return lambda watch: method.train(there, self.seed, watch)
        if reward is None:
            return f"{self.name} recovers no reward"
        if not isinstance(reward, ProgramReward):
            ours, theirs = (self.contest.interface(problem) for problem in (here, there))
            if ours != theirs:
                return f"the network of {self.name} is for {ours}, and that environment has {theirs}"
        pay = recovered.pay()
        return lambda watch: learn_on(there, self.seed, pay, watch)
