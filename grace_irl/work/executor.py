"""The interface of executors, which run jobs in parallel: evaluations, trainings and the runs of a comparison.

A job names a function and its arguments. The function is a task or a service. A task runs in its own process, and its
result is plain data or a file. A service runs in a thread of the submitting process. A service mainly waits for other
processes, such as the child processes of a sandbox or the server of a model.

`LocalExecutor` runs jobs on this machine. An executor for several machines must meet the requirements below. The suite
in `grace_irl.testing.executors` tests them.

- The executor imports a task by its name, `package.module:function`, and calls it as `function(tell, **arguments)`. The
  task sends messages by the function `tell`.
- The process of a task can be killed without harm to other jobs.
- Arguments, messages and results are sent as JSON, never as pickles.
- Files named in arguments are accessible from every machine, in a shared folder.
- The executor forwards all messages of `tell` in order, before the result.
- The executor kills a cancelled job and all its child processes. A job also ends if its submitting process ends.
- `JobFuture.result()` raises the same `InputError`, `SandboxError` or `GraceError` as the task, an `InputError` if the
  task cannot import a module, and a `JobError` for any other failure.
- The executor may replace a service by a task with the same effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from grace_irl.errors import GraceError

Tell = Callable[[Any], None]
"""A function that receives one message of a running job, as plain data."""


class JobError(GraceError):
    """A job ended without a result: its process died, or its task raised an unexpected exception."""


@dataclass(frozen=True)
class Job:
    """A piece of work.

    Attributes:
        task: name of a task or a service. A task is named `package.module:function`, and is called in a separate
            process as `function(tell, **arguments)`. A service is called in a thread as `service(**arguments)`.
        arguments: arguments by name. For a task they are JSON values: None, booleans, numbers, texts, lists and dicts
            with text keys. A service may get any objects.
        log: file for the output of the task's process; None to discard the output.
        environment: additional environment variables of the task's process.
        imports: names of modules that the task needs and that are slow to import. On Linux, the task's process is then
            forked from a process that has already imported these modules (`grace_irl.work.fork_server`).
    """

    task: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    log: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[str, ...] = ()


class JobFuture(Future[Any]):
    """The future result of a job."""

    def __init__(self) -> None:
        super().__init__()
        self.end: Callable[[], None] | None = None
        """A function that ends the job's process, even while it is being started; None for a service, and for a job
        that does not run."""

    def cancel(self) -> bool:
        """Cancel a waiting job, or end the process of a running one. `result()` then raises `CancelledError`.

        Returns:
            Whether the job was cancelled. The result is False for a finished job and for a running service.
        """
        if super().cancel():
            return True
        end = self.end
        if self.done() or end is None:
            return False
        end()
        return True


class Executor(Protocol):
    """A runner of jobs, several in parallel."""

    @property
    def workers(self) -> int:
        """Maximum number of jobs in parallel."""
        ...

    @property
    def busy(self) -> int:
        """Number of running jobs, without services."""
        ...

    def submit(self, job: Job, tell: Tell | None = None) -> JobFuture:
        """Submit a job. Jobs start in the order of submission.

        Args:
            job: the job.
            tell: function for the job's messages. The executor calls it in one of its threads.
        """
        ...

    def close(self) -> None:
        """Cancel waiting jobs and end running ones. Repeated calls are allowed."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
