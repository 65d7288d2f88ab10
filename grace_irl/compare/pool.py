"""The jobs of a comparison, several at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from pathlib import Path

from grace_irl.compare.folder import ComparisonFolder, JobFolder, JobResult, read_curve, read_result, write_result
from grace_irl.demos import memory
from grace_irl.errors import GraceError
from grace_irl.work import Executor, Job, JobError, JobFuture, LocalExecutor

TASK = "grace_irl.compare.job:work"
POLL_S = 0.2
"""Between two looks at the learning curves."""

Entry = tuple[str, int]
"""A method and a seed."""


@dataclass(frozen=True)
class ComparisonState:
    """State of a comparison.

    Attributes:
        total, done, failed: jobs.
        running: the jobs at work, with the environment steps that their curves tell of.
        ended: the job that has just ended, if one has.
    """

    total: int
    done: int
    failed: int
    running: tuple[tuple[str, int, int], ...]
    ended: JobResult | None = None


Listener = Callable[[ComparisonState], None]


def run_jobs(
    folder: Path, jobs: Sequence[Entry], transfer: Sequence[str], workers: int, listener: Listener, settings: str = ""
) -> None:
    """Does jobs; each leaves a result in its folder, whatever becomes of it.

    Args:
        folder: of the comparison.
        jobs: to be done, in this order.
        transfer: environments that rewards are carried to.
        workers: processes at once.
        listener: gets the state at each end, and now and then in between.
        settings: digest of those that the user answers for (`Settings.digest`); a job does no other.

    Raises:
        KeyboardInterrupt: the jobs at work were stopped; what had ended is kept.
    """
    share = max(1, (os.cpu_count() or 1) // workers)
    waiting = list(jobs)
    running: dict[JobFuture, Entry] = {}
    done = failed = 0
    with LocalExecutor(workers, name="compare") as executor:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                running[_submitted(executor, folder, job, share, settings)] = job
            wait(running, POLL_S, FIRST_COMPLETED)
            for future in [each for each in running if each.done()]:
                job = running.pop(future)
                result = _ended(ComparisonFolder(folder).job(*job), job, transfer, future.exception())
                done, failed = done + 1, failed + bool(result.failure)
                listener(ComparisonState(len(jobs), done, failed, _standing(folder, running.values()), result))
            listener(ComparisonState(len(jobs), done, failed, _standing(folder, running.values())))


def _submitted(executor: Executor, folder: Path, job: Entry, share: int, settings: str) -> JobFuture:
    place = ComparisonFolder(folder).job(*job)
    place.path.mkdir(parents=True, exist_ok=True)
    found = read_result(place.result)
    if found is not None and found.outcomes:
        write_result(place.result, replace(found, failure=""))
    else:
        place.result.unlink(missing_ok=True)  # of a failure that is tried again
    method, seed = job
    arguments = {"folder": str(folder), "method": method, "seed": seed, "workers": share, "digest": settings}
    return executor.submit(Job(TASK, arguments, place.log, {**memory.environment(), "OMP_NUM_THREADS": "1"}))


def _ended(place: JobFolder, job: Entry, transfer: Sequence[str], error: BaseException | None) -> JobResult:
    """The result that a job left; if it left none, why."""
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
