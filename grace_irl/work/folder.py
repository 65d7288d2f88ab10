"""The executor of a shared folder: it writes jobs as folders, and workers on any machine take them.

A worker is the command `grace-irl work FOLDER`. The command is the same in a SLURM array, a Kubernetes job or a
second terminal.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from grace_irl.errors import GraceError, InputError
from grace_irl.work.executor import Job, Tell
from grace_irl.work.local import LocalExecutor
from grace_irl.work.stored import (
    CLAIM,
    JOB,
    SOONEST_S,
    TOLD,
    Beat,
    Cancelled,
    OtherVersionError,
    Pulse,
    Pulses,
    StoredJob,
    TakenError,
    pause,
)

SUBMITTER = "submitter"
"""File with the heartbeat of the process that waits for the jobs of a folder."""
CLOSE_S = 5.0
"""Seconds for workers to end the jobs of a closing executor. Then the executor removes the folders of the jobs."""


class FolderExecutor(LocalExecutor):
    """An `Executor` that writes its jobs into its own subfolder of a shared folder, and waits for workers.

    On `close`, the executor removes its subfolder. If the process of the executor dies, workers end its jobs after
    `stored.STALE_S` seconds.

    Args:
        folder: the shared folder. It is made if missing.
        workers: maximum number of jobs that wait or run in the subfolder at the same time.
        services: see `LocalExecutor`.
        name: prefix of the threads' names.

    Raises:
        InputError: fewer than one worker, or the folder cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        workers: int,
        services: Mapping[str, Callable[..., Any]] | None = None,
        *,
        name: str = "work",
    ) -> None:
        super().__init__(workers, services, name=name, start=self._written)
        self._own = folder / f"{name}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._numbers = itertools.count()
        self._beat = Beat(self._own / SUBMITTER)
        try:
            self._own.mkdir(parents=True)
            self._beat.__enter__()
        except OSError as error:
            raise InputError(
                f"{folder}: cannot hold jobs ({error.strerror}); expected a folder that every worker can write"
            ) from None

    def close(self) -> None:
        """See `Executor`."""
        super().close()
        self.join(CLOSE_S)
        self._beat.__exit__()
        until = time.monotonic() + CLOSE_S
        while self._own.exists() and time.monotonic() < until:  # a worker that ends may still write a file
            shutil.rmtree(self._own, ignore_errors=True)
            time.sleep(SOONEST_S)

    def _written(self, job: Job) -> _Offered:
        folder = self._own / f"{next(self._numbers):06d}"
        folder.mkdir()
        return _Offered(StoredJob.write(folder, job, self._own / SUBMITTER))


class _Offered:
    """A job that was written into a folder (`Running`). It may still wait for a worker."""

    def __init__(self, job: StoredJob) -> None:
        self._job = job
        self._ended = False
        self._read = 0

    def result(self, tell: Tell) -> Any:
        """See `Running`."""
        holder, begun = Pulse(self._job.folder / CLAIM), time.monotonic()
        while not self._job.done:
            self._tell(tell)
            if self._ended and self._job.free(holder):
                raise Cancelled(f"{self._job.folder}: cancelled")
            holder.stopped()
            time.sleep(pause(time.monotonic() - begun))
        self._tell(tell)
        return self._job.result()

    def end(self) -> None:
        """See `Running`."""
        with contextlib.suppress(OSError):
            self._job.cancel()
        self._ended = True

    def _tell(self, tell: Tell) -> None:
        """Pass on new messages. If their file is shorter than before, another worker has begun the job again, and all
        messages of the file are new.
        """
        try:
            text = (self._job.folder / TOLD).read_text(encoding="utf-8")
        except OSError:
            return
        lines = text[: text.rfind("\n") + 1].splitlines()
        if len(lines) < self._read:
            self._read = 0
        for line in lines[self._read :]:
            tell(json.loads(line))
        self._read = len(lines)


def jobs_of(folder: Path) -> list[StoredJob]:
    """The job in this folder. If there is none, the sorted jobs in subfolders at most two levels below.

    Raises:
        InputError: the folder does not exist.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no folder; expected the folder of a job, or one with such folders")
    own = StoredJob(folder)
    if own.there:
        return [own]
    found = [path.parent for pattern in (f"*/{JOB}", f"*/*/{JOB}") for path in folder.glob(pattern)]
    return [StoredJob(each) for each in sorted(found)]


def free_jobs(folder: Path, wait_s: float, stop: threading.Event, pulses: Pulses | None = None) -> Iterator[StoredJob]:
    """Yield the free jobs of a folder, one after the other. A job is free if no worker works on it.

    The iteration waits for further jobs. It ends when no job is left to work on, no submitter has a heartbeat, and
    `wait_s` seconds have passed since the caller finished the last yielded job. A submitter is a process that waits for
    the results of its jobs. Submitters of another version of grace-irl do not count.

    Args:
        folder: folder of the jobs.
        wait_s: minimum number of seconds to wait for further jobs.
        stop: event that ends the iteration.
        pulses: this process's watches on heartbeats; None for new ones.

    Raises:
        InputError: the folder does not exist.
    """
    pulses = Pulses() if pulses is None else pulses
    left: set[Path] = set()  # yielded jobs that are done or cannot be worked on
    others: set[Path] = set()  # folders of submitters of another version
    last = time.monotonic()
    while not stop.is_set():
        wanted = [job for job in jobs_of(folder) if not (job.done or job.cancelled or job.folder in left)]
        free = next((job for job in wanted if job.free(pulses[job.folder / CLAIM])), None)
        if free is not None:
            yield free
            if not free.same_version():
                others.add(free.folder.parent)
            if not free.claimed:
                left.add(free.folder)
            last = time.monotonic()
            continue
        submitters = [path for path in folder.glob(f"*/{SUBMITTER}") if path.parent not in others]
        waited_for = any(not pulses[path.absolute()].stopped() for path in submitters)
        if not wanted and not waited_for and time.monotonic() - last >= wait_s:
            return
        stop.wait(pause(time.monotonic() - last))


def freed(job: StoredJob, stop: threading.Event) -> bool:
    """Wait until a job is free or done, or until the heartbeat of its worker changes.

    Return whether the job is free or done. The death of a worker is noticed after `stored.STALE_S` seconds.
    """
    holder, begun = Pulse(job.folder / CLAIM), time.monotonic()
    while not (job.done or job.free(holder)):
        if holder.seen or stop.is_set():
            return False
        stop.wait(pause(time.monotonic() - begun))
    return True


def work_on(job: StoredJob, stop: threading.Event, pulses: Pulses | None = None) -> str:
    """Work on a job. Return its outcome: "done", "taken", "cancelled", "refused: …" or "failed: …".

    Args:
        job: the job.
        stop: event that ends the work. The outcome is then "cancelled", and other workers can take the job.
        pulses: this process's watches on heartbeats; None for new ones. With the same watches for all jobs, the process
            waits only once to notice that a submitter is dead.
    """
    try:
        job.work(stop, pulses)
        job.result()
    except TakenError:
        return "taken"
    except (Cancelled, FileNotFoundError):  # a submitter that closes removes its folder
        return "cancelled"
    except OtherVersionError as error:
        return f"refused: {error}"
    except GraceError as error:
        return f"failed: {error}"
    except OSError as error:
        where = error.filename or job.folder
        return f"failed: {where}: {error.strerror or error}; expected a disk with room that this user may write to"
    return "done"
