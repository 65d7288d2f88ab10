"""The evaluator that trains policies on a program's rewards. The program's score is the mean score of these policies.

An evaluation has up to three stages. Dry runs on episodes of random actions find programs that fail. If the task has a
short training, the policy of this training must reach the score `Task.floor`. Then policies are trained in full, one
for each seed.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError, InputError, SandboxError
from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.evaluate.rewards import RewardSource
from grace_irl.programs.program import Program
from grace_irl.propose.material import Workbench
from grace_irl.rewards.runner import SandboxedRunner
from grace_irl.rl.curve import Point, course, evaluated_at, from_json
from grace_irl.sandbox.session import Begin
from grace_irl.tasks.recorded import FULL, SHORT, Planned, RecordedTrainings, TrainingPlan, digests_of, names
from grace_irl.tasks.task import Task
from grace_irl.tasks.training import LATE, REWARD, TRAININGS, evaluations_of, job, result_of, seeds_of
from grace_irl.work.executor import JobError, JobFuture

Checkpoint = Literal["best", "last"]

ONLINE_STEPS = 50
"""Maximum number of steps in the dry run of `PolicyEvaluator._fails_online`, which goes step by step as in training."""


@dataclass(frozen=True)
class PolicySettings:
    """Settings of the evaluator.

    Attributes:
        seed: seed of the run. It determines the seeds of trainings, which are the same for all programs.
        seeds: number of full trainings of each program.
        checkpoint: whether the best or the last evaluation of a training counts.
        steps: environment steps of a full training; 0 for the task's own number.
        workers: maximum number of trainings in parallel; None for the default of `Workplace.executor`.
        limit: maximum wall time of a training in seconds.
        allow_weak: whether to accept a sandbox that does not protect the user's files (docs/sandbox.md).
    """

    seed: int = 0
    seeds: int = 1
    checkpoint: Checkpoint = "best"
    steps: int = 0
    workers: int | None = 1
    limit: float = 3600.0
    allow_weak: bool = False


class PolicyEvaluator:
    """An `Evaluator` that trains policies on a program's rewards, and scores these policies by `Task.score`.

    Args:
        task: the task.
        bench: sandbox, cache of rewards and folder of the run.
        settings: the settings.
        episodes: episodes of random actions for dry runs.
        chance: mean score of random actions.
    """

    ignores_bar = True  # see `Barless`

    def __init__(
        self, task: Task, bench: Workbench, settings: PolicySettings, episodes: Sequence[Trajectory], chance: float
    ) -> None:
        self._task = task
        self._chance = chance
        self._settings = settings
        self._folder = bench.folder / TRAININGS
        self._episodes = tuple(episodes)
        self._limits = bench.limits
        self._dry = RewardSource(episodes, bench.sandbox, bench.rewards, bench.limits)
        self._executor = bench.workplace.executor(settings.workers, name="train")
        self._seeds = seeds_of(settings.seed, settings.seeds)
        self._recorded: RecordedTrainings | None = None

    def take(self, recorded: RecordedTrainings) -> None:
        """See `TakesRecorded`. Programs still have their dry runs."""
        self._recorded = recorded

    def close(self) -> None:
        """End running trainings, and remove the episodes from the sandbox."""
        self._executor.close()
        self._dry.close()

    def verify(self, program: Program) -> str:
        """See `Evaluator`. The data are the episodes of random actions."""
        dry = self._dry
        outcome, known = dry.complete(program, dry.digests, dry.known(program))
        if outcome.status == "ok":
            outcome = dry.differs_in_strict_mode(program, dry.digests, known)
        return "" if outcome.status == "ok" else f"{outcome.status} in strict mode: {outcome.message}"

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:  # noqa: ARG002
        """See `Evaluator`. This evaluator ignores the bar, because a bar cannot shorten a training."""
        return [self._evaluate(program) for program in programs]

    def _evaluate(self, program: Program) -> Evaluation:
        started = time.monotonic()
        if program.takes_action and self._task.sees == "state":
            return Evaluation("contract", "the task shows programs states only; expected reward_fn(self, state)")
        outcome, _ = self._dry.complete(program, self._dry.digests, self._dry.known(program))
        if outcome.status != "ok":
            return Evaluation(outcome.status, outcome.message, outcome.traceback)
        if problem := self._fails_online(program):
            return Evaluation("runtime", problem)
        if self._recorded is not None and (failure := self._recorded.failure(program.id)) is not None:
            return replace(failure, seconds=time.monotonic() - started)
        try:
            found = self._trained(program)
        except TimeoutError:
            found = Evaluation("timeout", f"its training took more than {self._settings.limit:g} seconds")
        except JobError as error:
            found = Evaluation("killed", f"its training ended: {error}")
        except (InputError, SandboxError):
            raise  # the task, the folder or a worker's installation is at fault, not the program
        except GraceError as error:
            found = Evaluation("runtime", f"it fails in training: {_without_path(error)}")
        return replace(found, seconds=time.monotonic() - started)

    def _fails_online(self, program: Program) -> str:
        """Run a program over an episode step by step, with components, as in training. Return the problem, or ""."""
        episode = self._episodes[0]
        actions, steps = episode.actions, min(episode.num_steps, ONLINE_STEPS)
        if actions is None:
            return ""
        states = episode.states
        try:
            with SandboxedRunner(
                program.source, REWARD, terms=True, allow_weak=self._settings.allow_weak, limits=self._limits
            ) as runner:
                runner.turn((), None, (), [Begin(0, states[0], episode.extra_info)])
                for step in range(steps):
                    runner.turn([0], actions[step : step + 1], [states[step + 1]])
        except SandboxError:
            raise  # not the program's fault
        except GraceError as error:
            return _without_path(error)
        return ""

    def _trained(self, program: Program) -> Evaluation:
        task, settings = self._task, self._settings
        evidence: dict[str, Any]
        short: list[Point] = []
        if task.short_steps:
            short = self._train(program, SHORT, [self._seeds[0]], task.short_steps, 1)[0]
            reached = _scores(short)[-1]
            if reached < task.floor:
                message = f"score {reached:.4g} in the short training, below {task.floor:g}"
                told = {**self._origin, "short": list(map(asdict, short)), "runs": []}
                evidence = {"policy": told, "components": components([short])}
                return Evaluation("ok", message, score=reached, metrics=_counts([short]), evidence=evidence)
        steps = settings.steps or task.steps
        runs = self._train(program, FULL, self._seeds, steps, task.evaluations)
        scored = [_scores(curve) for curve in runs]
        best, last = float(np.mean([max(each) for each in scored])), float(np.mean([each[-1] for each in scored]))
        places = [int(np.argmax(each)) if settings.checkpoint == "best" else len(each) - 1 for each in scored]
        points = [curve[place] for curve, place in zip(runs, places, strict=True)]
        successes = [point.success for point in points if point.success is not None]
        metrics = {
            "best": best,
            "last": last,
            "length": float(np.mean([point.length for point in points])),
            "return": float(np.mean([point.mean for point in points])),
            **({"success": float(np.mean(successes))} if successes else {}),
            **_counts([short, *runs] if short else runs),
        }
        evidence = {
            "policy": {
                **self._origin,
                "checkpoint": settings.checkpoint,
                "short": list(map(asdict, short)),
                "runs": [
                    {"seed": seed, "curve": list(map(asdict, curve))}
                    for seed, curve in zip(self._seeds, runs, strict=True)
                ],
            },
            "components": components(runs),
        }
        return Evaluation(
            "ok", score=best if settings.checkpoint == "best" else last, metrics=metrics, evidence=evidence
        )

    @property
    def _origin(self) -> dict[str, Any]:
        """The task, the mean score of random actions, and the entry "recorded" if curves come from a recording."""
        known = {"task": self._task.name, "random": self._chance}
        return known if self._recorded is None else {**known, "recorded": True}

    def _train(
        self, program: Program, kind: str, seeds: Sequence[int], steps: int, evaluations: int
    ) -> list[list[Point]]:
        """The learning curves of trainings, one for each seed.

        The curves of finished trainings come from the run's folder. After `take`, all curves come from the recording.
        """
        if self._recorded is not None:
            return [list(self._recorded.curve(program.id, f"{kind}-{number}")) for number in range(len(seeds))]
        place = self._folder / program.id
        folders = [place / f"{kind}-{number}" for number in range(len(seeds))]
        futures: dict[Path, JobFuture] = {}
        late: set[Path] = set()
        for folder, seed in zip(folders, seeds, strict=True):
            if result_of(folder) is None:
                work = job(
                    self._task,
                    folder,
                    program.source,
                    seed,
                    steps,
                    evaluations,
                    limit=self._settings.limit,
                    allow_weak=self._settings.allow_weak,
                    limits=self._limits,
                )
                futures[folder] = self._executor.submit(work, partial(_watch, folder, late))
        try:
            return [_curve(folder, futures) for folder in folders]
        except JobError:
            if late:
                raise TimeoutError from None
            raise
        finally:
            for future in futures.values():
                future.cancel()


def plan(task: Task, settings: PolicySettings) -> TrainingPlan:
    """The trainings of each program.

    Raises:
        InputError: the environment cannot be made, or the task has an invalid setting of PPO.
    """
    seeds, trainings = seeds_of(settings.seed, settings.seeds), {}
    for name, place in names(settings.seeds, short=bool(task.short_steps)):
        brief = name.startswith(SHORT)
        steps = task.short_steps if brief else settings.steps or task.steps
        count = evaluations_of(task, steps, 1 if brief else task.evaluations)
        trainings[name] = Planned(seeds[place], steps, evaluated_at(steps, count, task.settings.rollout))
    return TrainingPlan(task.name, digests_of(json.loads(task.content)), task.episodes, trainings)


def rounded(task: Task, settings: PolicySettings) -> str:
    """A line for the user if PPO trains for other steps, or is evaluated less often, than the task says; else ""."""
    rollout, asked = task.settings.rollout, settings.steps or task.steps
    steps, count = -(-asked // rollout) * rollout, evaluations_of(task, asked, task.evaluations)
    if steps < 1.1 * asked and count == task.evaluations:
        return ""
    times = f"is evaluated {'once' if count == 1 else f'{count} times'}"
    longer = f"a training of {asked:,} steps has {steps:,}, and {times}" if steps > asked else f"a training {times}"
    return f"{longer}: PPO learns from {rollout:,} steps at a time (n_envs * n_steps in [ppo] of the task)"


def components(runs: Sequence[Sequence[Point]]) -> dict[str, dict[str, Any]]:
    """The means of each component of a reward along trainings.

    Args:
        runs: learning curves, one for each seed.

    Returns:
        For each component its `course`. A point is one evaluation during training, and each curve has a value of the
        component there. The value in the result is the mean over the curves. Curves without the component at this point
        do not count; if no curve has it, the value is None.
    """
    names = dict.fromkeys(name for curve in runs for point in curve for name in point.terms)
    length = min(map(len, runs), default=0)
    found = {}
    for name in names:
        columns = [
            [curve[place].terms[name] for curve in runs if name in curve[place].terms] for place in range(length)
        ]
        values = [float(np.mean(column)) if column else None for column in columns]
        if any(value is not None for value in values):
            found[name] = course(values)
    return found


def _watch(folder: Path, late: set[Path], message: object) -> None:
    if message == LATE:
        late.add(folder)


def _without_path(error: GraceError) -> str:
    """The message of an error without the path of the program's file, because the message enters prompts."""
    return re.sub(r"\S*reward\.py: ", "", str(error))


def _curve(folder: Path, futures: Mapping[Path, JobFuture]) -> list[Point]:
    if folder in futures:
        return list(from_json(futures[folder].result()))
    return list(result_of(folder) or ())


def _scores(curve: Sequence[Point]) -> list[float]:
    return [-math.inf if point.score is None else point.score for point in curve]


def _counts(curves: Sequence[Sequence[Point]]) -> dict[str, float]:
    return {"steps": float(sum(curve[-1].steps for curve in curves if curve))}
