"""Processes that each run one job for an executor.

`JobProcess` is the parent's side, which starts and ends the process. `main` is the code of the process itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from grace_irl.errors import GraceError, InputError, SandboxError
from grace_irl.work import fork_server
from grace_irl.work.executor import Job, JobError, Tell

_PACKAGES = Path(__file__).parents[2]
# With `-P`, Python imports nothing from the current folder. The folder of grace_irl is the last import folder.
_BOOT = "import sys; sys.path.append(sys.argv.pop(1)); from grace_irl.work.process import main; main()"

POLL_S = 0.2
"""Interval in seconds at which the parent checks whether the process of a job still runs."""
END_S = 5.0
"""Seconds for a process to end by itself after its result. Then the parent kills the process."""
MOST_BYTES = 64 << 20
"""Maximum length of a message or a result of a job in bytes."""

ERRORS: dict[str, type[GraceError]] = {
    "input": InputError,
    "sandbox": SandboxError,
    "defect": JobError,
    "grace": GraceError,
}
"""Types of errors that a task can end with, by the names that the process of the task sends."""
_PR_SET_CHILD_SUBREAPER = 36


class JobProcess:
    """A process in its own session that runs one job and ends with its parent process.

    The process reads the job from its standard input, a pipe from the parent. The pipe stays open until the parent
    ends. Then the process kills itself and its descendants.

    Args:
        job: the job. It must name a task, `package.module:function`, because a service cannot run in another process.
    """

    def __init__(self, job: Job) -> None:
        self._answers, theirs = os.pipe()
        self._lock = threading.Lock()
        self._ended = False
        try:
            if job.log is not None:
                job.log.unlink(missing_ok=True)  # it may be a link to another file, which must not be overwritten
            with open(job.log or os.devnull, "wb") as output:
                self._process = _started(job, output.fileno(), theirs)
        except BaseException:
            os.close(self._answers)
            raise
        finally:
            os.close(theirs)
        order = json.dumps({"task": job.task, "arguments": dict(job.arguments)}).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(order)
            self._process.stdin.flush()

    def result(self, tell: Tell) -> Any:
        """Wait for the result, and return it. Pass the task's messages to `tell`.

        Raises:
            InputError, GraceError: the task raised this error. An ImportError becomes an InputError.
            JobError: the task failed in another way.
        """
        answer: dict[str, Any] = {}
        try:
            for line in self._lines():
                answer = _answer(line)
                if "told" in answer:
                    tell(answer["told"])
            self._wait()
        finally:
            code = self.end()
            os.close(self._answers)
        if "error" in answer:
            raise as_error(answer)
        if "result" in answer:
            return answer["result"]
        said = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise JobError(f"its process ended with {said} and no result")

    def end(self) -> int:
        """Kill the process and its descendants. Repeated calls are allowed, also from other threads.

        If the process has ended by itself, only the processes of its group are left to kill. A further Ctrl-C
        interrupts the caller and not the killing, which would leave a stopped process behind.

        Returns:
            The exit code; -N if signal N ended the process.
        """
        if not self._ended:
            errors: list[Exception] = []
            killer = threading.Thread(target=self._kill, args=(errors,), name="end of a job")
            try:
                killer.start()
            except RuntimeError:  # the interpreter ends, and starts no thread
                self._kill(errors)
            else:
                killer.join()
            if errors:
                raise errors[0]
        return self._process.wait()

    def _kill(self, errors: list[Exception]) -> None:
        """Kill the process and its descendants, once. Add an error that keeps descendants from being found."""
        with self._lock:
            if self._ended:
                return
            try:
                # The process is not reaped yet, so its id belongs to no other process. After SIGSTOP it starts no more
                # children. As a subreaper, it is also the parent of orphaned descendants, so the loop finds them.
                if not self._process.gone():
                    _signal(self._process.pid, signal.SIGSTOP)
                    while children := descendants(self._process.pid):
                        for child in children:
                            _signal(child, signal.SIGKILL)
                        time.sleep(0.001)
            except Exception as error:  # such as a full table of open files
                errors.append(error)
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                _signal(self._process.pid, signal.SIGKILL)  # `killpg` misses a process without its own session yet
                self._process.wait()
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()
                self._ended = True

    def _gone(self) -> bool:
        return self._ended or self._process.gone()

    def _wait(self) -> None:
        """Wait up to `END_S` seconds for the process to end by itself."""
        until = time.monotonic() + END_S
        while not self._gone() and time.monotonic() < until:
            time.sleep(0.01)

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that the process sends, until it sends its result or an error, or ends."""
        waiting = b""
        while True:
            gone = self._gone()
            if select.select([self._answers], [], [], 0 if gone else POLL_S)[0]:
                data = os.read(self._answers, 1 << 16)
                *lines, waiting = (waiting + data).split(b"\n")
                yield from lines
                if not data or any(line.startswith((b'{"result"', b'{"error"')) for line in lines):
                    return
                if len(waiting) > MOST_BYTES:
                    raise JobError(f"its process sent a message of more than {MOST_BYTES:,} bytes")
            elif gone:
                return


class _Process(Protocol):
    """A process in its own session that runs `main`.

    Attributes:
        pid: id of the process. It belongs to no other process until `wait` returns.
        stdin: the writable end of the pipe from which the process reads.
    """

    pid: int
    stdin: IO[bytes]

    def gone(self) -> bool:
        """Whether the process has ended. The check does not reap the process."""
        ...

    def wait(self) -> int:
        """Wait until the process ends, and reap it. Return its exit code; -N if signal N ended it."""
        ...


class _NewProcess:
    """A new Python process (`_Process`), a child of this one."""

    def __init__(self, environment: Mapping[str, str], output: int, answers: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(_PACKAGES), str(answers)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(answers,),
            start_new_session=True,  # Ctrl-C reaches only the parent, which then ends the job
            env=environment,
        )
        assert self._process.stdin is not None
        self.pid, self.stdin = self._process.pid, self._process.stdin

    def gone(self) -> bool:
        """See `_Process`. On systems without `os.waitid`, the check reaps the process."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        with contextlib.suppress(ChildProcessError):  # another thread may have reaped the process in the meantime
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        return True

    def wait(self) -> int:
        """See `_Process`."""
        return self._process.wait()


def _started(job: Job, output: int, answers: int) -> _Process:
    """Start the process of a job, by the fork server if the job has slow imports and the system can fork.

    Args:
        job: the job.
        output: file descriptor for the standard output and standard error of the process.
        answers: file descriptor of the pipe for the answers of the process.
    """
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **job.environment}
    if job.imports and fork_server.possible():
        with contextlib.suppress(OSError):
            return fork_server.forked(job.imports, str(_PACKAGES), environment, output, answers)
    return _NewProcess(environment, output, answers)


def descendants(pid: int) -> list[int]:
    """Ids of all running descendants of a process, from /proc. On systems without /proc the list is empty."""
    children: dict[int, list[int]] = {}
    over = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent, *_ = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            children.setdefault(int(parent), []).append(number)
            if state in "ZX":
                over.add(number)
    found, left = [], [pid]
    while left:
        below = children.get(left.pop(), [])
        found += [each for each in below if each not in over]
        left += below
    return found


def as_answer(error: GraceError) -> dict[str, Any]:
    """An error as the answer of a task's process, see `as_error`."""
    kind = next((name for name, each in ERRORS.items() if isinstance(error, each)), "grace")
    return {"error": kind, "text": str(error), "says_how_to_go_on": error.says_how_to_go_on}


def as_error(answer: Mapping[str, Any]) -> GraceError:
    """The error in an answer of a task's process."""
    error = ERRORS.get(answer["error"], JobError)(str(answer.get("text", "")))
    error.says_how_to_go_on = bool(answer.get("says_how_to_go_on"))
    return error


def missing(error: ImportError) -> str:
    """The message for a module that cannot be imported on this machine. It blames the installation, not a program."""
    name = error.name or "a module"
    return (
        f"{name} cannot be imported on {socket.gethostname()} ({error}); expected the same installation of grace-irl "
        "on every machine: install it there; trainings need pip install 'grace-irl[rl]'"
    )


def _answer(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise JobError("its process answered outside the protocol")
    return found


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def main() -> None:
    """Run the job: read it from standard input, call the task, and send the result."""
    answers = int(sys.argv[1])
    os.set_inheritable(answers, False)
    # As a subreaper, the process becomes the parent of orphaned descendants, so `descendants` finds them.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with os.fdopen(0, "rb", buffering=0, closefd=False) as orders:
        order = json.loads(orders.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    lock = threading.Lock()

    def answer(what: dict[str, Any]) -> None:
        data = json.dumps(what).encode() + b"\n"
        with lock:
            while data:
                data = data[os.write(answers, data) :]

    try:
        module, _, name = order["task"].partition(":")
        task = getattr(importlib.import_module(module), name)
        said = {"result": task(lambda message: answer({"told": message}), **order["arguments"])}
        json.dumps(said)
    except GraceError as error:
        said = as_answer(error)
    except ImportError as error:
        traceback.print_exc()
        said = {"error": "input", "text": missing(error)}
    except Exception as error:
        traceback.print_exc()
        said = {"error": "defect", "text": f"{type(error).__name__}: {error}"}
    answer(said)


def _end_with_parent() -> None:
    """Wait until the parent closes its end of standard input, or ends. Then kill this process and its descendants."""
    while os.read(0, 1):
        pass
    for child in descendants(os.getpid()):
        _signal(child, signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)
