"""Runs jobs, each in a process of its own, several at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grace_irl.compare.folder import ComparisonFolder, JobFolder, JobResult, read_curve, read_result, write_result
from grace_irl.demos import memory

PACKAGES = Path(__file__).parents[2]
JOB = "import sys; sys.path.append(sys.argv.pop(1)); from grace_irl.compare.job import main; main()"

POLL_S = 0.2
"""Between two looks at the processes."""
END_S = 5.0
"""Seconds for a process to end by itself after a request."""

Job = tuple[str, int]
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
    folder: Path, jobs: Sequence[Job], transfer: Sequence[str], workers: int, listener: Listener, settings: str = ""
) -> None:
    """Does jobs; each leaves a result in its folder, whatever becomes of it.

    Args:
        folder: of the comparison.
        jobs: to be done, in this order.
        transfer: environments that rewards are carried to.
        workers: processes at once.
        listener: told of each end, and now and then in between.
        settings: digest of those that the user answers for (`Settings.digest`); a job does no other.

    Raises:
        KeyboardInterrupt: the jobs at work were stopped; what had ended is kept.
    """
    share = max(1, (os.cpu_count() or 1) // workers)
    waiting = list(jobs)
    running: dict[Job, subprocess.Popen[bytes]] = {}
    done = failed = 0
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                running[job] = _start(folder, job, share, settings)
            time.sleep(POLL_S)
            for job, process in list(running.items()):
                if process.poll() is None:
                    continue
                del running[job]
                result = _ended(ComparisonFolder(folder).job(*job), job, transfer, process)
                done, failed = done + 1, failed + bool(result.failure)
                listener(ComparisonState(len(jobs), done, failed, _standing(folder, running), result))
            listener(ComparisonState(len(jobs), done, failed, _standing(folder, running)))
    finally:
        _stop(running.values())


def _start(folder: Path, job: Job, share: int, settings: str) -> subprocess.Popen[bytes]:
    """A process of its own session, so that Ctrl-C reaches it by way of us and not beside us."""
    place = ComparisonFolder(folder).job(*job)
    place.path.mkdir(parents=True, exist_ok=True)
    found = read_result(place.result)
    if found is not None and found.outcomes:
        write_result(place.result, replace(found, failure=""))
    else:
        place.result.unlink(missing_ok=True)  # of a failure that is tried again
    method, seed = job
    place.log.unlink(missing_ok=True)  # it may be another name of somebody's file
    with place.log.open("wb") as log:
        return subprocess.Popen(
            # Neither the current directory nor the comparison's is where code comes from.
            [sys.executable, "-P", "-c", JOB, str(PACKAGES), str(folder), method, str(seed), str(share), settings],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **memory.environment(), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        )


def _ended(place: JobFolder, job: Job, transfer: Sequence[str], process: subprocess.Popen[bytes]) -> JobResult:
    """The outcome that a process left; if it left none, a failure."""
    if process.stdin is not None:
        process.stdin.close()
    found = read_result(place.result) or JobResult(*job)
    if found.failure or found.ended(transfer):
        return found
    code = process.returncode
    said = f"signal {-code}" if code < 0 else f"exit code {code}"
    result = replace(found, failure=f"its process ended with {said} and no result: see jobs/{place.path.name}/log.txt")
    write_result(place.result, result)
    return result


def _standing(folder: Path, running: dict[Job, subprocess.Popen[bytes]]) -> tuple[tuple[str, int, int], ...]:
    found = []
    for method, seed in running:
        place = ComparisonFolder(folder).job(method, seed)
        steps = [point["steps"] for path in place.path.glob("curve-*.json") for point in read_curve(path)[-1:]]
        found.append((method, seed, int(sum(steps))))
    return tuple(found)


def _stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """A job ends when its standard input does; one that does not is killed."""
    left = list(processes)
    for process in left:
        if process.stdin is not None:
            process.stdin.close()
    for process in left:
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
