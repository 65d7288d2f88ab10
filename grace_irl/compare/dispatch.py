"""Dispatch of the jobs of a comparison, in parallel, to an executor. A job is one method with one seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grace_irl.compare.folder import ComparisonFolder, JobFolder, JobResult, read_curve, read_result, write_result
from grace_irl.demos import memory
from grace_irl.errors import GraceError
from grace_irl.rl import TRAINING_IMPORTS
from grace_irl.work import Executor, Job, JobError, JobFuture, Workplace

TASK = "grace_irl.compare.job:work"
IMPORTS = ("grace_irl.compare.job", *TRAINING_IMPORTS)
POLL_S = 0.2
"""Maximum seconds between two calls of the listener."""

Entry = tuple[str, int]
"""A job, as the name of its method and its seed."""


@dataclass(frozen=True)
class ComparisonState:
    """State of a comparison.

    Attributes:
        total: number of jobs to run.
        done: number of jobs that have ended, failed ones included.
        failed: number of jobs that have failed.
        running: method, seed and environment steps of each running job. The steps are summed over all
            trainings of the job so far, including trainings in transfer environments.
        ended: result of the job that has just ended; None if no job has just ended.
    """

    total: int
    done: int
    failed: int
    running: tuple[tuple[str, int, int], ...]
    ended: JobResult | None = None


Listener = Callable[[ComparisonState], None]


def run_jobs(
    folder: Path,
    jobs: Sequence[Entry],
    transfer: Sequence[str],
    workers: int | None,
    listener: Listener,
    settings: str = "",
    workplace: Workplace = Workplace(),
    code: Mapping[str, Any] | None = None,
) -> None:
    """Run jobs in parallel processes. Each job writes a result to its folder, even if it fails.

    Args:
        folder: folder of the comparison.
        jobs: the jobs to run, in this order.
        transfer: environments for training on the recovered rewards.
        workers: number of processes; None: one per core of the workplace.
        listener: function that receives the state after each job, and repeatedly in between.
        settings: digest of the settings that the user confirmed (`Settings.digest`). A job with other settings fails.
        workplace: machines on which the jobs run.
        code: place of the user's code (`grace_irl.rl.environments.code_of`); None: the jobs need none.

    Raises:
        KeyboardInterrupt: the user pressed Ctrl-C. Running jobs were stopped. The results of finished jobs stay.
    """
    waiting = list(jobs)
    running: dict[JobFuture, Entry] = {}
    done = failed = 0
    with workplace.executor(workers, name="compare") as executor:
        share = 1 if workplace.elsewhere else max(1, (os.cpu_count() or 1) // executor.workers)
        while waiting or running:
            while waiting and len(running) < executor.workers:
                job = waiting.pop(0)
                running[_submitted(executor, folder, job, share, settings, code)] = job
            wait(running, POLL_S, FIRST_COMPLETED)
            for future in [each for each in running if each.done()]:
                job = running.pop(future)
                result = _ended(ComparisonFolder(folder).job(*job), job, transfer, future.exception())
                done, failed = done + 1, failed + bool(result.failure)
                listener(ComparisonState(len(jobs), done, failed, _standing(folder, running.values()), result))
            listener(ComparisonState(len(jobs), done, failed, _standing(folder, running.values())))


def _submitted(
    executor: Executor, folder: Path, job: Entry, share: int, settings: str, code: Mapping[str, Any] | None
) -> JobFuture:
    place = ComparisonFolder(folder).job(*job)
    place.path.mkdir(parents=True, exist_ok=True)
    found = read_result(place.result)
    if found is not None and found.outcomes:
        write_result(place.result, replace(found, failure=""))
    else:
        place.result.unlink(missing_ok=True)  # the result of a failed attempt
    method, seed = job
    arguments = {"folder": str(folder.absolute()), "method": method, "seed": seed, "workers": share}
    arguments |= {"digest": settings, "code": code}
    environment = {**memory.environment(), "OMP_NUM_THREADS": "1"}
    return executor.submit(Job(TASK, arguments, place.log, environment, IMPORTS))


def _ended(place: JobFolder, job: Entry, transfer: Sequence[str], error: BaseException | None) -> JobResult:
    """The result of a job that has ended. If the result is missing or incomplete, write a failure."""
    found = read_result(place.result) or JobResult(*job)
    if found.failure or found.ended(transfer):
        return found
    if error is not None and not isinstance(error, GraceError):
        raise error
    why = str(error or "its process ended without a result")
    if error is None or isinstance(error, JobError):
        why += f": see jobs/{place.path.name}/log.txt"
    result = replace(found, failure=why)
    write_result(place.result, result)
    return result


def _standing(folder: Path, running: Iterable[Entry]) -> tuple[tuple[str, int, int], ...]:
    found = []
    for method, seed in running:
        place = ComparisonFolder(folder).job(method, seed)
        steps = [point["steps"] for path in place.path.glob("curve-*.json") for point in read_curve(path)[-1:]]
        found.append((method, seed, int(sum(steps))))
    return tuple(found)
