"""The conformance suite of executors, which run jobs in parallel. The suite is a base class for pytest:

    class TestMyExecutor(ExecutorSuite):
        def make(self, workers, services):
            return MyExecutor(workers, services)

A job calls a task or a service. A task is a function that the executor imports in a separate process. A service is a
function of the executor's own process. This module also defines the tasks of the suite, such as `add`. The argument
`tell` of a task sends messages to the submitter of the job.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grace_irl.errors import GraceError, InputError, SandboxError
from grace_irl.work.executor import Executor, Job, JobError, Tell

TASKS = __name__
"""Name of the module with the suite's tasks."""
WITHIN_S = 120.0
"""Time limit for any wait in seconds, enough even on a busy machine."""


def add(tell: Tell, first: int, second: int) -> int:  # noqa: ARG001
    """Print the two numbers, and return their sum."""
    print(f"{first} + {second}")
    return first + second


def echo(tell: Tell, **arguments: Any) -> dict[str, Any]:  # noqa: ARG001
    """Return the arguments."""
    return arguments


def variable(tell: Tell, name: str) -> str | None:  # noqa: ARG001
    """Return the value of an environment variable; None if it is not set."""
    return os.environ.get(name)


def count(tell: Tell, upto: int) -> int:
    """Send each number below `upto` as a message, and return `upto`."""
    for number in range(upto):
        tell({"number": number})
    return upto


def fail(tell: Tell, kind: str) -> None:  # noqa: ARG001
    """Raise an error of this kind, such as `InputError` for "input"."""
    raise {
        "input": InputError,
        "grace": GraceError,
        "sandbox": SandboxError,
        "import": ModuleNotFoundError,
        "other": ValueError,
    }[kind](f"a {kind} error")


def die(tell: Tell, how: str) -> None:  # noqa: ARG001
    """End the process without a result: with exit code 3 if `how` is "exit", otherwise by SIGKILL."""
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


def unreadable(tell: Tell) -> object:  # noqa: ARG001
    """Return an object that JSON cannot represent."""
    return object()


def begin_and_stay(tell: Tell, out: str) -> None:  # noqa: ARG001
    """Start a child process in a new session, write both process ids to the file `out`, and stay alive."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
    part = Path(f"{out}.part")
    part.write_text(f"{os.getpid()} {child.pid}")
    part.rename(out)
    time.sleep(3600)


def wait_for(tell: Tell, path: str) -> str:
    """Send the message "begun", wait until a file exists, and return its path."""
    tell("begun")
    until(Path(path).exists)
    return path


def burn(tell: Tell, seconds: float) -> float:  # noqa: ARG001
    """Use the processor, and return the CPU time used in seconds. The time before this function starts does not count.

    Args:
        tell: not used.
        seconds: CPU time to use, at least.
    """
    begun = time.process_time()
    while (used := time.process_time() - begun) < seconds:
        pass
    return used


@contextmanager
def raises(error: type[BaseException], said: str = "") -> Iterator[list[BaseException]]:
    """Require that the `with` block raises an error of exactly this type, with a message that contains `said`.

    Yields:
        A list that contains the error after the block.
    """
    caught: list[BaseException] = []
    try:
        yield caught
    except error as found:
        caught.append(found)
        if type(found) is not error or said not in str(found):
            raise AssertionError(f"{type(found).__name__}: {found}; expected {error.__name__}: {said}") from found
    else:
        raise AssertionError(f"no {error.__name__}")


def until(done: Callable[[], bool]) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: the condition does not hold within `WITHIN_S`.
    """
    end = time.monotonic() + WITHIN_S
    while not done():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.02)


def there(pid: int) -> bool:
    """Whether a process is alive. A dead process that is not yet reaped is not alive."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


class ExecutorSuite(ABC):
    """The tests of the conformance suite for executors."""

    @abstractmethod
    def make(self, workers: int, services: Mapping[str, Callable[..., Any]]) -> Executor:
        """Return an executor. The suite closes it.

        Args:
            workers: maximum number of jobs in parallel.
            services: functions of this process that jobs may call, by name.
        """

    def test_a_task_gives_its_result_and_prints_to_its_log(self, tmp_path: Path) -> None:
        with self.make(1, {}) as executor:
            job = Job(f"{TASKS}:add", {"first": 2, "second": 3}, tmp_path / "log.txt")
            assert executor.submit(job).result(WITHIN_S) == 5
        assert (tmp_path / "log.txt").read_text() == "2 + 3\n"

    def test_plain_data_arrive_as_they_are(self) -> None:
        data = {"a": None, "b": [1, 2.5, True], "c": {"d": "é\n"}, "e": 0.1 + 0.2, "f": "x" * 100_000}
        with self.make(1, {}) as executor:
            assert executor.submit(Job(f"{TASKS}:echo", data)).result(WITHIN_S) == data

    def test_a_job_has_variables_of_its_own(self) -> None:
        with self.make(1, {}) as executor:
            job = Job(f"{TASKS}:variable", {"name": "GRACE_IRL_TRIED"}, environment={"GRACE_IRL_TRIED": "yes"})
            assert executor.submit(job).result(WITHIN_S) == "yes"

    def test_messages_come_in_order_and_before_the_result(self) -> None:
        told: list[Any] = []
        with self.make(1, {}) as executor:
            assert executor.submit(Job(f"{TASKS}:count", {"upto": 500}), told.append).result(WITHIN_S) == 500
            assert [each["number"] for each in told] == list(range(500))

    def test_what_a_task_raises_its_result_raises(self) -> None:
        with self.make(1, {}) as executor:
            errors = {"input": InputError, "sandbox": SandboxError, "grace": GraceError, "other": JobError}
            for kind, error in {**errors, "import": InputError}.items():
                with raises(error, f"a {kind} error"):
                    executor.submit(Job(f"{TASKS}:fail", {"kind": kind})).result(WITHIN_S)

    def test_a_process_that_dies_is_an_error(self) -> None:
        with self.make(1, {}) as executor:
            for how, said in (("exit", "exit code 3"), ("kill", "signal 9")):
                with raises(JobError, f"ended with {said} and no result"):
                    executor.submit(Job(f"{TASKS}:die", {"how": how})).result(WITHIN_S)

    def test_a_task_that_cannot_be_done_is_an_error(self) -> None:
        with self.make(1, {}) as executor:
            for task in (f"{TASKS}:unreadable", f"{TASKS}:absent"):
                with raises(JobError):
                    executor.submit(Job(task)).result(WITHIN_S)
            with raises(InputError, "grace_irl.absent cannot be imported on "):
                executor.submit(Job("grace_irl.absent:task")).result(WITHIN_S)

    def test_jobs_run_side_by_side_and_no_more_than_there_are_workers(self, tmp_path: Path) -> None:
        begun: list[str] = []
        with self.make(2, {}) as executor:
            names = [str(tmp_path / name) for name in "abc"]
            futures = [
                executor.submit(Job(f"{TASKS}:wait_for", {"path": name}), lambda _, name=name: begun.append(name))  # type: ignore[misc]
                for name in names
            ]
            until(lambda: len(begun) == 2)
            assert sorted(begun) == names[:2]
            for name in names:
                Path(name).touch()
            assert [future.result(WITHIN_S) for future in futures] == names

    def test_a_cancelled_job_is_over_with_its_children(self, tmp_path: Path) -> None:
        with self.make(1, {}) as executor:
            future = executor.submit(Job(f"{TASKS}:begin_and_stay", {"out": str(tmp_path / "pids")}))
            waiting = executor.submit(Job(f"{TASKS}:add", {"first": 1, "second": 1}))
            until((tmp_path / "pids").exists)
            assert future.cancel()
            with raises(CancelledError):
                future.result(WITHIN_S)
            pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
            until(lambda: not any(map(there, pids)))
            assert waiting.result(WITHIN_S) == 2

    def test_a_waiting_job_that_is_cancelled_never_begins(self, tmp_path: Path) -> None:
        with self.make(1, {}) as executor:
            first = executor.submit(Job(f"{TASKS}:wait_for", {"path": str(tmp_path / "go")}))
            second = executor.submit(Job(f"{TASKS}:begin_and_stay", {"out": str(tmp_path / "pids")}))
            assert second.cancel()
            (tmp_path / "go").touch()
            first.result(WITHIN_S)
        assert second.cancelled()
        assert not (tmp_path / "pids").exists()

    def test_closing_ends_jobs_for_good_and_drops_those_that_wait(self, tmp_path: Path) -> None:
        executor = self.make(1, {})
        running = executor.submit(Job(f"{TASKS}:begin_and_stay", {"out": str(tmp_path / "pids")}))
        waiting = executor.submit(Job(f"{TASKS}:add", {"first": 1, "second": 1}))
        until((tmp_path / "pids").exists)
        executor.close()
        executor.close()
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        until(lambda: not any(map(there, pids)))
        with raises(CancelledError):
            running.result(WITHIN_S)
        assert waiting.cancelled()
        with raises(RuntimeError, "closed"):
            executor.submit(Job(f"{TASKS}:add", {"first": 1, "second": 1}))

    def test_a_service_runs_in_this_process_with_what_it_is_given(self) -> None:
        threads: set[int] = set()

        def square(what: list[int]) -> list[int]:
            threads.add(threading.get_ident())
            what.append(what[0] ** 2)
            return what

        given = [7]
        with self.make(1, {"square": square}) as executor:
            assert executor.submit(Job("square", {"what": given})).result(WITHIN_S) is given
        assert given == [7, 49]
        assert threading.get_ident() not in threads

    def test_what_a_service_raises_its_result_raises(self) -> None:
        def service() -> None:
            raise ValueError("as it is")

        with self.make(1, {"service": service}) as executor, raises(ValueError, "as it is"):
            executor.submit(Job("service")).result(WITHIN_S)
