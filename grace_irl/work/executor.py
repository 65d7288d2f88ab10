"""The protocol of executors: a job is a name and plain data, its result is plain data or a file.

Evaluations, trainings and the jobs of a comparison all go through an executor. `LocalExecutor` is the one of this
machine. An executor for several machines has to do the following, and `grace_irl.testing.executors` tries it:

- It imports a task by its name, `package.module:function`, in a process that may be ended alone, and calls it with
  `tell` and the job's arguments by name. Arguments, messages and results travel as JSON; nothing is unpickled.
- Files that arguments name are where every machine finds them (a shared folder).
- It hands each message of `tell` on, in order, before the result.
- It ends a cancelled job for good, with all its children. A job also ends if the process that submitted it does.
- A job that raises `InputError` or `GraceError` raises the same in `result()`, and every other end is a `JobError`.
- Services (`LocalExecutor`) are functions of the submitting process, which wait for work done elsewhere: a sandbox's
  children, a model's server. It runs them in threads of that process, or has a task that does the same elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from grace_irl.errors import GraceError

Tell = Callable[[Any], None]
"""Takes a message of a job that is at work: plain data."""


class JobError(GraceError):
    """A job that ended without a result: its process died, or its task has a defect."""


@dataclass(frozen=True)
class Job:
    """A piece of work.

    Attributes:
        task: `package.module:function`, done in a process of its own as `function(tell, **arguments)`; or the name of
            a service, done in a thread as `service(**arguments)`.
        arguments: plain data for a task: None, numbers, texts, lists, and dicts by texts. A service gets them as
            they are.
        log: a file that gets what the task's process prints; None: nothing is kept.
        environment: variables that the process has beside those of this one.
    """

    task: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    log: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class JobFuture(Future[Any]):
    """The result of a job, later."""

    def __init__(self) -> None:
        super().__init__()
        self.end: Callable[[], None] | None = None
        """Ends the job's process; None while it has none."""

    def cancel(self) -> bool:
        """Drops a job that waits, and ends the process of one that is at work; `result()` raises `CancelledError`.

        Returns:
            False if the job is done already, or is a service at work, which ends by itself.
        """
        if super().cancel():
            return True
        end = self.end
        if self.done() or end is None:
            return False
        end()
        return True


class Executor(Protocol):
    """Does jobs, several at once."""

    @property
    def workers(self) -> int:
        """Number of jobs at work at once."""
        ...

    def submit(self, job: Job, tell: Tell | None = None) -> JobFuture:
        """Takes a job; those that wait begin in the order in which they came.

        Args:
            job: what to do.
            tell: gets the job's messages, in a thread of the executor.
        """
        ...

    def close(self) -> None:
        """Drops the jobs that wait and ends those at work for good; may be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
