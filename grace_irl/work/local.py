"""The executor of this machine. Every task runs in its own process, and every service in a thread.

The executors of shared folders and Ray clusters extend `LocalExecutor` with another function to start tasks (`Start`).
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from typing import Any, Protocol, Self

from grace_irl.errors import InputError
from grace_irl.work.executor import Job, JobFuture, Tell
from grace_irl.work.process import JobProcess

_NUMBERS = itertools.count()


class Running(Protocol):
    """A job that has been started, on this machine or on another one."""

    def result(self, tell: Tell) -> Any:
        """Wait for the result, and return it. Pass the task's messages to `tell`.

        Raises:
            InputError, GraceError: the task raised this error.
            JobError: the task failed in another way.
        """
        ...

    def end(self) -> object:
        """End the job with all its child processes. Repeated calls are allowed, also from other threads."""
        ...


Start = Callable[[Job], Running]
"""A function that begins a job."""


class LocalExecutor:
    """An `Executor` that runs jobs on this machine.

    Its threads are daemons, so an interrupted program does not wait for the answer of a service.

    Args:
        workers: maximum number of jobs in parallel.
        services: functions of this process by name. They mainly wait for other processes.
        name: prefix of the threads' names.
        start: function that begins a task; by default in a new process of this machine.

    Raises:
        InputError: fewer than one worker.
    """

    def __init__(
        self,
        workers: int,
        services: Mapping[str, Callable[..., Any]] | None = None,
        *,
        name: str = "work",
        start: Start = JobProcess,
    ) -> None:
        if workers < 1:
            raise InputError(f"{workers} workers; expected at least 1")
        self._workers, self._services, self._name, self._start = workers, dict(services or {}), name, start
        self._waiting: queue.SimpleQueue[tuple[JobFuture, Job, Tell | None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._futures: set[JobFuture] = set()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def workers(self) -> int:
        """See `Executor`."""
        return self._workers

    @property
    def busy(self) -> int:
        """See `Executor`."""
        with self._lock:
            return sum(future.end is not None for future in self._futures)

    def submit(self, job: Job, tell: Tell | None = None) -> JobFuture:
        """See `Executor`.

        Raises:
            RuntimeError: the executor is closed.
        """
        future = JobFuture()
        with self._lock:
            if self._closed:
                raise RuntimeError("the executor is closed; expected `submit` before `close`")
            self._futures.add(future)
            if len(self._threads) < min(self._workers, len(self._futures)):
                name = f"{self._name}-{next(_NUMBERS)}"
                self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
                self._threads[-1].start()
        future.add_done_callback(self._forget)
        self._waiting.put((future, job, tell))
        return future

    def close(self) -> None:
        """See `Executor`. Running services are not ended; they finish by themselves."""
        with self._lock:
            self._closed = True
            futures = list(self._futures)
        for _ in self._threads:
            self._waiting.put(None)
        for future in futures:
            future.cancel()

    def join(self, within_s: float) -> None:
        """After `close`, wait at most `within_s` seconds for all jobs and services to end."""
        until = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _forget(self, future: Any) -> None:
        with self._lock:
            self._futures.discard(future)

    def _work(self) -> None:
        while (found := self._waiting.get()) is not None:
            future, job, tell = found
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = self._done(future, job, tell)
            except BaseException as error:  # the caller of `result()` handles it
                future.set_exception(error)
            else:
                future.set_result(result)

    def _done(self, future: JobFuture, job: Job, tell: Tell | None) -> Any:
        """Run a job, and return its result."""
        if job.task in self._services:
            return self._services[job.task](**job.arguments)
        process: Running | None = None
        cancelled = threading.Event()

        def end() -> None:
            cancelled.set()
            if process is not None:
                process.end()

        future.end = end
        try:
            if self._closed:  # `close` may have run before `future.end` was set
                raise CancelledError
            process = self._start(job)
            if cancelled.is_set():  # during the start, `end` had no process
                end()
            result = process.result(tell or (lambda _: None))
            if cancelled.is_set():
                raise CancelledError
            return result
        except Exception:
            if cancelled.is_set():
                raise CancelledError from None
            raise
        finally:
            future.end = None
