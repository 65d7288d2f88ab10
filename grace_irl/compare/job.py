"""One job of a comparison: one method with one seed, in a process of its own.

    python -m grace_irl.compare.job FOLDER METHOD SEED SANDBOX_WORKERS [SETTINGS]

It ends when its standard input is closed, so that it does not outlive whoever started it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grace_irl.atomic import write_atomically
from grace_irl.compare.contest import Contest
from grace_irl.compare.folder import ComparisonFolder, JobFolder
from grace_irl.compare.grace import GraceTrained
from grace_irl.compare.outcome import Outcome, Result, read_result, write_result
from grace_irl.compare.programs import ProgramReward
from grace_irl.compare.settings import read_settings
from grace_irl.compare.standings import ORACLE
from grace_irl.errors import GraceError, InputError
from grace_irl.rl.method import Method, Paid, Policy, Problem, Trained, TransitionReward, Watch
from grace_irl.runs.lock import RunLock

EVALUATION = 7919
"""Added to the seed of a job for the seed of its last evaluation: the same episodes for every method."""

LOCK_TRIES, LOCK_WAIT_S = 20, 0.5


def run_job(folder: Path, method: str, seed: int, workers: int | None = None, digest: str = "") -> Result:
    """Does one job and keeps what it gave, failures included.

    Args:
        folder: of the comparison.
        method, seed: which job.
        workers: of the sandbox in the search; None: as the settings say.
        digest: of the settings that the user answers for; "" takes those that are there.
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
            contest = Contest.of(settings, workers)
            result = _Job(contest, place, method, seed).result()
        except GraceError as error:
            result = _failed(place, method, seed, str(error))
        except Exception as error:  # one job's defect is not the others'
            traceback.print_exc()
            result = _failed(place, method, seed, f"{type(error).__name__}: {error}")
    return result


def _failed(place: JobFolder, method: str, seed: int, why: str) -> Result:
    """Keeps why a job failed, beside what it had done before."""
    result = replace(read_result(place.result) or Result(method, seed), failure=" ".join(why.split()))
    write_result(place.result, result)
    return result


def _lock(path: Path) -> RunLock:
    """Takes a job's lock; a process whose comparison was killed may need a moment to let go of it.

    Raises:
        InputError: a live process holds it.
    """
    for _ in range(LOCK_TRIES):
        try:
            return RunLock(path)
        except InputError:
            time.sleep(LOCK_WAIT_S)
    return RunLock(path)


@dataclass(frozen=True)
class _Job:
    """One method with one seed."""

    contest: Contest
    place: JobFolder
    name: str
    seed: int

    def result(self) -> Result:
        """Learns, evaluates, and carries the reward to where it is to be tried; what is done is kept at once.

        Raises:
            GraceError: what stopped it.
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

    def _before(self) -> tuple[_Recovered, Result] | None:
        """What an earlier process of this job has learnt, where its reward can be carried on from here.

        A network cannot: loading one runs what its file says.
        """
        found = read_result(self.place.result)
        if found is None or not found.outcomes or self.place.net.exists():
            return None
        if not self.place.program.exists():
            return _Recovered(None), found  # it recovers no reward
        if not found.form:
            return None
        fit = self.contest.settings.fit
        # Trust is for what this process recovers, and not for whatever file lies there by now.
        program = ProgramReward(self.place.program, False, fit.sandbox.allow_weak, found.form)
        return _Recovered(program), found

    def _learnt(self, method: Method, problem: Problem) -> tuple[_Recovered, Result]:
        """Learns in the comparison's own environment."""
        trained, outcome = self._measured(problem, lambda watch: method.train(problem, self.seed, watch))
        outcome, notes = self._with_reward(problem, trained.reward, outcome)
        form = trained.reward.form if isinstance(trained.reward, ProgramReward) else ""
        result = Result(self.name, self.seed, (outcome,), (*trained.notes, *notes), form=form)
        write_result(self.place.result, result)
        return _Recovered(trained.reward, trained.paid), result

    def _with_transfer(
        self, result: Result, method: Method, recovered: _Recovered, here: Problem, environment: str
    ) -> Result:
        """The result, and what a fresh policy learns elsewhere."""
        there = self.contest.problem(self.seed, environment)
        learn = self._carried(method, recovered, here, there)
        result = replace(result, carried=(*result.carried, environment))
        if isinstance(learn, str):
            return replace(result, notes=(*result.notes, f"not carried to {environment}: {learn}"))
        return replace(result, outcomes=(*result.outcomes, self._measured(there, learn, environment)[1]))

    def _measured(
        self, problem: Problem, learn: Callable[[Watch], Trained], carried_to: str = ""
    ) -> tuple[Trained, Outcome]:
        """Trains, with a learning curve on the way, and evaluates at the end."""
        from grace_irl.rl.evaluation import evaluate

        environment = self.contest.label(problem, carried_to)
        deterministic = self.contest.deterministic(problem)
        watching = _Watching(self, problem, self.place.curve(environment), deterministic)
        begun = time.monotonic()
        trained = learn(watching)
        seconds: float | None = time.monotonic() - begun - watching.seconds
        if isinstance(trained, GraceTrained):
            search = trained.search_seconds
            seconds = None if search is None or seconds is None else seconds - search
        self._keep(trained.policy, environment)
        comparison = self.contest.settings.comparison
        found = evaluate(
            trained.policy, problem.make_env, comparison.episodes, self.seed + EVALUATION, deterministic=deterministic
        ).point(trained.steps)
        outcome = Outcome(
            environment,
            bool(carried_to),
            found.episodes,
            found.mean,
            found.deviation,
            found.success,
            found.length,
            found.components,
            trained.steps,
            seconds,
        )
        return trained, outcome

    def _keep(self, policy: Policy, environment: str) -> None:
        from grace_irl.rl.learning import save_policy

        save_policy(policy, self.place.policy(environment))

    def _with_reward(
        self, problem: Problem, reward: TransitionReward | None, outcome: Outcome
    ) -> tuple[Outcome, list[str]]:
        """Keeps the reward, and says how far it is from the true one."""
        from grace_irl.compare.distance import distance
        from grace_irl.rl.learning import save_net

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
        self, method: Method, recovered: _Recovered, here: Problem, there: Problem
    ) -> Callable[[Watch], Trained] | str:
        """How a fresh policy learns elsewhere; a text where it cannot."""
        from grace_irl.rl.learning import learn_on, net_pay, program_pay

        reward = recovered.reward
        if self.name == ORACLE:
            return lambda watch: method.train(there, self.seed, watch)
        if reward is None:
            return f"{self.name} recovers no reward"
        if isinstance(reward, ProgramReward):
            pay = program_pay(reward.file, reward.form, allow_weak_sandbox=reward.allow_weak)
        else:
            ours, theirs = (self.contest.interface(problem) for problem in (here, there))
            if ours != theirs:
                return f"its network is for {ours}, and there are {theirs}"
            pay = net_pay(reward, recovered.paid)
        return lambda watch: learn_on(there, self.seed, pay, watch)


@dataclass(frozen=True)
class _Recovered:
    """The reward that a method recovered, if any, and in which form policies are paid it, if it is a network."""

    reward: TransitionReward | None
    paid: Paid = "reward"


class _Watching:
    """Evaluates a policy on the way and keeps the learning curve. Implements `Watch`.

    Attributes:
        seconds: that it took.
    """

    def __init__(self, job: _Job, problem: Problem, path: Path, deterministic: bool) -> None:
        self._job, self._problem, self._path, self._deterministic = job, problem, path, deterministic
        self._points: list[Any] = []
        self.seconds = 0.0
        write_atomically(path, "[]")  # of a job that is done again, the old one goes

    def __call__(self, steps: int, policy: Policy) -> None:
        from grace_irl.rl.curve import to_json
        from grace_irl.rl.evaluation import evaluate

        begun = time.monotonic()
        episodes = self._job.contest.settings.comparison.look_episodes
        number = self._job.seed + (len(self._points) + 2) * EVALUATION  # never the episodes of the last one
        found = evaluate(policy, self._problem.make_env, episodes, number, deterministic=self._deterministic)
        self._points.append(found.point(steps))
        write_atomically(self._path, to_json(self._points))
        self.seconds += time.monotonic() - begun


def _end_with_parent() -> None:
    """Ends this process, whatever it does, once nobody holds the other end of its standard input."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """See the module."""
    folder, method, seed, workers, *digest = sys.argv[1:]
    _end_with_parent()
    try:
        run_job(Path(folder), method, int(seed), int(workers), *digest)
    except InputError as error:  # the job's folder cannot be used
        sys.exit(str(error))


if __name__ == "__main__":
    main()
