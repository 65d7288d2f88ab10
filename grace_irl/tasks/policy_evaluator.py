"""The evaluator of reward programs by policies: a program's score is that of a policy trained on its rewards.

An evaluation is a cascade. A dry run on episodes of random actions finds programs that fail. If the task has a short
training, a policy must reach its floor. Then policies are trained in full, one for each training seed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.evaluate.rewards import RewardSource
from grace_irl.programs.program import Program
from grace_irl.propose.material import Workbench
from grace_irl.rl.collect import rollout
from grace_irl.rl.curve import Point, from_json
from grace_irl.rl.policies import make_policy
from grace_irl.tasks.task import Task
from grace_irl.tasks.training import job, result_of
from grace_irl.work.executor import JobError
from grace_irl.work.local import LocalExecutor

Checkpoint = Literal["best", "last"]

DRY_EPISODES = 8
"""Number of episodes of random actions. Programs run on them first, and the writer without a model measures on them."""
DRY_STATES = 200
"""Maximum number of states of such an episode."""
TRAININGS = "trainings"
"""Folder of all trainings in the folder of a run: one for each program, in it one for each seed."""
VALUES = 10
"""Number of values along a training that are kept of each component of a reward."""


@dataclass(frozen=True)
class PolicySettings:
    """Settings of the evaluator.

    Attributes:
        seed: seed from which the seeds of trainings are drawn, the same ones for every program.
        seeds: number of trainings of each program.
        checkpoint: whether the best or the last evaluation of a training counts.
        steps: environment steps of a full training; 0 for those of the task.
        workers: maximum number of trainings in parallel.
        limit: maximum wall time of a training in seconds.
        allow_weak: whether to accept a sandbox that does not protect the user's files (docs/sandbox.md).
    """

    seed: int = 0
    seeds: int = 1
    checkpoint: Checkpoint = "best"
    steps: int = 0
    workers: int = 1
    limit: float = 3600.0
    allow_weak: bool = False


def random_episodes(task: Task, count: int = DRY_EPISODES, seed: int = 0) -> list[Trajectory]:
    """Episodes of random actions, cut to `DRY_STATES` states each.

    Raises:
        InputError: the environment cannot be made.
    """
    environment, view = task.make()
    policy = make_policy("random", task.env)
    try:
        found = [rollout(environment, view, policy, seed + number)[0] for number in range(count)]
    finally:
        environment.close()
    return [_cut(each) for each in found]


def _cut(trajectory: Trajectory) -> Trajectory:
    if len(trajectory.states) <= DRY_STATES:
        return trajectory
    actions = None if trajectory.actions is None else trajectory.actions[: DRY_STATES - 1]
    return replace(
        trajectory,
        states=trajectory.states[:DRY_STATES],
        actions=actions,
        rewards=None,
        log_probs=None,
        terminated=False,
        truncated=True,
    )


class PolicyEvaluator:
    """An `Evaluator` whose score is the task's score of a policy that was trained on the program's rewards.

    Args:
        task: the task.
        bench: sandbox, cache of rewards and folder of the run.
        settings: the settings.
        episodes: episodes of random actions for dry runs.
    """

    def __init__(self, task: Task, bench: Workbench, settings: PolicySettings, episodes: Sequence[Trajectory]) -> None:
        self._task = task
        self._settings = settings
        self._folder = bench.folder / TRAININGS
        self._dry = RewardSource(episodes, bench.sandbox, bench.rewards, bench.limits)
        self._executor = LocalExecutor(settings.workers, name="train")
        sequence = np.random.SeedSequence((settings.seed, 1))
        self._seeds = [int(each >> 1) for each in sequence.generate_state(settings.seeds)]

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
        """See `Evaluator`. The bar is not used, because a training cannot be cut short by it."""
        return [self._evaluate(program) for program in programs]

    def _evaluate(self, program: Program) -> Evaluation:
        started = time.monotonic()
        if program.takes_action and self._task.sees == "state":
            return Evaluation("contract", "the task shows programs states only; expected reward_fn(self, state)")
        outcome, _ = self._dry.complete(program, self._dry.digests, self._dry.known(program))
        if outcome.status != "ok":
            return Evaluation(outcome.status, outcome.message, outcome.traceback)
        try:
            found = self._trained(program)
        except JobError as error:
            found = Evaluation("killed", f"its training ended: {error}")
        except InputError:
            raise  # the task or the folder is at fault, not the program
        except GraceError as error:
            found = Evaluation("runtime", f"it fails in training: {error}")
        except (TimeoutError, CancelledError):
            found = Evaluation("timeout", f"its training took more than {self._settings.limit:g} seconds")
        return replace(found, seconds=time.monotonic() - started)

    def _trained(self, program: Program) -> Evaluation:
        task, settings = self._task, self._settings
        short: list[Point] = []
        if task.short_steps:
            short = self._train(program, "short", [self._seeds[0]], task.short_steps, 1)[0]
            reached = _scores(short)[-1]
            if reached < task.floor:
                message = f"score {reached:.4g} in the short training, below {task.floor:g}"
                told = {"policy": {"task": task.name, "short": list(map(asdict, short)), "runs": []}}
                return Evaluation("ok", message, score=reached, metrics=_counts([short]), evidence=told)
        steps = settings.steps or task.steps
        runs = self._train(program, "full", self._seeds, steps, task.evaluations)
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
        evidence: dict[str, Any] = {
            "policy": {
                "task": task.name,
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

    def _train(
        self, program: Program, kind: str, seeds: Sequence[int], steps: int, evaluations: int
    ) -> list[list[Point]]:
        """The learning curves of trainings, one for each seed. Finished trainings are read from the run's folder."""
        place = self._folder / program.id
        folders = [place / f"{kind}-{number}" for number in range(len(seeds))]
        futures = {}
        for folder, seed in zip(folders, seeds, strict=True):
            if result_of(folder) is None:
                work = job(
                    self._task, folder, program.source, seed, steps, evaluations, allow_weak=self._settings.allow_weak
                )
                futures[folder] = self._executor.submit(work)
        try:
            return [_curve(folder, futures, self._settings.limit) for folder in folders]
        finally:
            for future in futures.values():
                future.cancel()


def components(runs: Sequence[Sequence[Point]]) -> dict[str, dict[str, Any]]:
    """The means of each component of a reward along trainings.

    Args:
        runs: learning curves, one for each seed.

    Returns:
        For each component: `VALUES` values along training (means over the seeds), with their maximum, mean and minimum.
    """
    names = dict.fromkeys(name for curve in runs for point in curve for name in point.terms)
    found = {}
    for name in names:
        rows = [[point.terms[name] for point in curve if name in point.terms] for curve in runs]
        length = min(map(len, rows))
        if length:
            values = np.mean([row[:length] for row in rows], axis=0)
            kept = values[np.linspace(0, length - 1, min(VALUES, length)).round().astype(int)]
            found[name] = {
                "values": kept.tolist(),
                "max": float(values.max()),
                "mean": float(values.mean()),
                "min": float(values.min()),
            }
    return found


def _curve(folder: Path, futures: Mapping[Path, Any], limit: float) -> list[Point]:
    if folder in futures:
        return list(from_json(futures[folder].result(timeout=limit)))
    return list(result_of(folder) or ())


def _scores(curve: Sequence[Point]) -> list[float]:
    return [-math.inf if point.score is None else point.score for point in curve]


def _counts(curves: Sequence[Sequence[Point]]) -> dict[str, float]:
    return {"steps": float(sum(curve[-1].steps for curve in curves if curve))}
