"""Fork server: a process that imports slow modules once, and forks a process for each job that needs them.

A training imports torch and Stable-Baselines3, which takes three to four seconds of CPU time in a new process. A
process that the server forks has these modules already. The server is the parent of the forked process. In all else,
the forked process is like a new process: it has its own session, environment, working directory, pipes and log. The
server runs on Linux only.

The program that submits jobs calls `forked`. `serve` is the code of the server.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

IDLE_S = 60.0
"""Seconds after which a fork server without jobs ends, so that its several hundred megabytes of memory become free."""
_MOST_BYTES = 1 << 20
_AT_START = ("PYTHON", "MALLOC_", "GLIBC_", "LD_")
_PLACES = ("stdin", "output", "answers")
"""Roles of the file descriptors that come with an order. An order is a message that requests a forked process."""
_BOOT = """
import sys
sys.path.append(sys.argv.pop(1))
from grace_irl.work.fork_server import serve
from grace_irl.work.process import main
serve(main)
"""


class ForkedProcess:
    """A process that a fork server has forked, with the parts of `subprocess.Popen` that `JobProcess` needs.

    Attributes:
        pid: id of the process. It belongs to no other process until `wait` returns.
        stdin: the writable end of the pipe from which the process reads.
    """

    def __init__(self, server: _Server, pid: int, stdin: IO[bytes]) -> None:
        self.pid, self.stdin = pid, stdin
        self._server = server
        self._pidfd = os.pidfd_open(pid)
        self._code: int | None = None

    def gone(self) -> bool:
        """Whether the process has ended. The check does not reap the process."""
        return self._code is not None or self._ended(wait=False)

    def wait(self) -> int:
        """Wait until the process ends, and reap it.

        Returns:
            The exit code; -N if signal N ended the process. If the server ended first, the result is -9, because the
            exit code is unknown.
        """
        if self._code is None:
            self._ended(wait=True)
            self._code = self._server.reaped(self.pid)
            os.close(self._pidfd)
        return self._code

    def _ended(self, *, wait: bool) -> bool:
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(None if wait else 0))


class _Server:
    """The server's process, and the socket to it."""

    def __init__(self, modules: Sequence[str], packages: str, environment: Mapping[str, str]) -> None:
        self.modules, self.python = frozenset(modules), _python(environment)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, packages, str(theirs.fileno()), str(IDLE_S), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C reaches only the submitting process
                env={**environment, "OMP_NUM_THREADS": "1"},  # a process with threads must not fork
            )
        self._lock = threading.Lock()

    def forked(self, order: Mapping[str, Any], fds: Sequence[int]) -> int:
        """Let the server fork a process. Return its id.

        Raises:
            OSError: the server has ended.
        """
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(order).encode()], list(fds))
            return self._answer()

    def reaped(self, pid: int) -> int:
        """Let the server reap a process that has ended. Return its exit code, or -9 if the server has ended."""
        try:
            with self._lock:
                self._socket.send(json.dumps({"reap": pid}).encode())
                return self._answer()
        except OSError:
            return -9

    def close(self) -> None:
        """End the server. Its forked processes go on."""
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
            return
        self._process.kill()
        self._process.wait()

    def _answer(self) -> int:
        data = self._socket.recv(64)
        if not data:
            raise BrokenPipeError
        return int(data)


_lock = threading.Lock()
_running: _Server | None = None


def possible() -> bool:
    """Whether this system can fork processes from a server: Linux with `os.pidfd_open`."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def forked(
    modules: Sequence[str], packages: str, environment: Mapping[str, str], output: int, answers: int
) -> ForkedProcess:
    """Start a process that has already imported these modules, and that runs `grace_irl.work.process.main`.

    The first call starts the server, and waits until the server has imported the modules.

    Args:
        modules: names of the modules. Modules that cannot be imported are left out.
        packages: folder of the package `grace_irl`.
        environment: all environment variables of the process.
        output: file descriptor for its standard output and standard error.
        answers: file descriptor of the pipe for its answers.

    Raises:
        OSError: the server cannot be started, or ends at once.
    """
    theirs, ours = os.pipe()
    stdin = os.fdopen(ours, "wb")
    try:
        order = {"cwd": os.getcwd(), "environment": dict(environment)}
        for last in (False, True):
            server = _server(modules, packages, environment)
            try:
                return ForkedProcess(server, server.forked(order, (theirs, output, answers)), stdin)
            except OSError:  # the server has ended: it was idle for long, or was killed
                _end(server)
                if last:
                    raise
        raise AssertionError
    except BaseException:
        stdin.close()
        raise
    finally:
        os.close(theirs)


def _server(modules: Sequence[str], packages: str, environment: Mapping[str, str]) -> _Server:
    """The running server, or a new one if the running one lacks modules or has other settings of Python."""
    global _running
    with _lock:
        known = _running
        if known is None or not known.modules.issuperset(modules) or known.python != _python(environment):
            every = dict.fromkeys((*(known.modules if known else ()), *modules))
            _running = _Server(list(every), packages, environment)
            # The previous server lives on until the last of its processes is reaped.
        assert _running is not None
        return _running


def _end(server: _Server | None = None) -> None:
    """End the running server. If `server` is given and is not the running server, do nothing."""
    global _running
    with _lock:
        if _running is not None and server in (None, _running):
            _running.close()
            _running = None


def _python(environment: Mapping[str, str]) -> tuple[object, ...]:
    """The interpreter, and the environment variables that have an effect only at the start of a process."""
    return sys.executable, *sorted(item for item in environment.items() if item[0].startswith(_AT_START))


atexit.register(_end)
os.register_at_fork(after_in_child=lambda: globals().update(_running=None, _lock=threading.Lock()))


def serve(main: Callable[[], None]) -> None:
    """Import modules, then fork a process for each order (see `_PLACES`). Each forked process runs `main`.

    The server ends with the submitting process. It also ends if it has no forked process, and gets no order for
    `IDLE_S` seconds.
    """
    number, idle_s, *modules = sys.argv[1:]
    for name in modules:
        with contextlib.suppress(Exception):  # the job raises it again, and shows it to the user
            importlib.import_module(name)
    children: set[int] = set()
    with socket.socket(fileno=int(number)) as orders:
        while children or select.select([orders], [], [], float(idle_s))[0]:
            message, fds, _, _ = socket.recv_fds(orders, _MOST_BYTES, len(_PLACES))
            if not message:
                os._exit(0)  # the submitting process has ended; the forked processes end by themselves
            order = json.loads(message)
            if "reap" in order:
                _, status = os.waitpid(order["reap"], 0)
                children.discard(order["reap"])
                orders.send(str(os.waitstatus_to_exitcode(status)).encode())
                continue
            if not (pid := os.fork()):
                _run(main, order, fds, orders)
            children.add(pid)
            for each in fds:
                os.close(each)
            orders.send(str(pid).encode())


def _run(main: Callable[[], None], order: Mapping[str, Any], fds: Sequence[int], orders: socket.socket) -> None:
    """Become the process of a job, run `main`, and never return."""
    code = 1
    try:
        os.setsid()
        orders.close()
        stdin, output, answers = fds
        for place, fd in enumerate((stdin, output, output)):
            os.dup2(fd, place)
        os.close(stdin)
        os.close(output)
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["cwd"])
        sys.argv = ["-c", str(answers)]
        _renew()
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _renew() -> None:
    """Set what a new process sets when it starts: its streams, its random state, and the threads of torch."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    if "numpy" in sys.modules:
        import numpy as np

        np.random.seed()  # else all forks would share the state of the global generator
    if (torch := sys.modules.get("torch")) is not None:
        first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # "4,2" has a number for each level
        threads = int(first) if first.isdecimal() else 0
        torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
