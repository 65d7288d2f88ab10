"""Processes of jobs, forked from one that holds torch and its like already.

A new Python needs three seconds of CPU for these imports, and whole comparisons and expansions run a job for each of
their trainings. A forked process does the same from there on: its own session, environment, directory, pipes and log.
Tests of the jobs' processes themselves take new ones (the `conftest.py` beside them).
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_LOCK = threading.Lock()
_IMPORTED = (
    "torch._dynamo",  # as soon as an optimiser is made
    "stable_baselines3",
    "gymnasium",
    "imitation.algorithms.adversarial.airl",
    "imitation.algorithms.adversarial.gail",
    "imitation.algorithms.bc",
    "scipy.optimize",
    "scipy.stats",
    "grace_irl.compare.job",
    "grace_irl.rl.learning",
    "grace_irl.runs.expand.learner",
)


class ForkedJob:
    """What `JobProcess` uses of a `subprocess.Popen`. The process is a child of this one, as Popen's is."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int,
        stdout: Any,
        stderr: int,
        pass_fds: tuple[int],
        start_new_session: bool,
        env: Mapping[str, str],
    ) -> None:
        assert (stdin, stderr, start_new_session) == (subprocess.PIPE, subprocess.STDOUT, True)
        theirs, ours = os.pipe()
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, theirs)
            output = stack.enter_context(open(os.devnull, "wb")) if stdout == subprocess.DEVNULL else stdout
            order = {"cwd": os.getcwd(), "environment": dict(env)}
            self.pid = _fork(command[-2], order, [theirs, output.fileno(), *pass_fds])
        self.stdin = os.fdopen(ours, "wb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while the process runs."""
        return self._reaped(os.WNOHANG)

    def wait(self) -> int:
        """The exit code, as soon as the process ends."""
        code = self._reaped(0)
        assert code is not None
        return code

    def _reaped(self, how: int) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, how)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class Subprocess:
    """What `grace_irl.work.process` uses of the module."""

    PIPE, STDOUT, DEVNULL, Popen = subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL, ForkedJob


class _Server:
    process: subprocess.Popen[bytes] | None = None
    socket: socket.socket


def _fork(packages: str, order: Mapping[str, Any], fds: Sequence[int]) -> int:
    with _LOCK:
        if _Server.process is None:
            _Server.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                python = [sys.executable, "-P", __file__, packages, str(theirs.fileno())]
                _Server.process = subprocess.Popen(python, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
                _Server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        # A process whose parent has ended goes to the next one above that reaps: to this one, while it forks.
        _reap(True)
        try:
            socket.send_fds(_Server.socket, [json.dumps(order).encode()], list(fds))
            return int(_Server.socket.recv(64))
        finally:
            _reap(False)


def _reap(on: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


def end_server() -> None:
    """End the process that forks."""
    if _Server.process is not None:
        _Server.socket.close()
        _Server.process.wait(10)
        _Server.process = None


def serve(packages: str, number: int) -> None:
    """Fork a process for each order, until the other end is closed."""
    sys.path.append(packages)
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    orders = socket.socket(fileno=number)
    while True:
        message, fds, _, _ = socket.recv_fds(orders, 1 << 20, 3)
        if not message:
            return
        order = json.loads(message)
        pid = _orphan(lambda order=order, fds=fds: _run(order, fds, orders))  # type: ignore[misc]
        for each in fds:
            os.close(each)
        orders.send(str(pid).encode())


def _orphan(run: Callable[[], None]) -> int:
    """Run in a process whose parent has ended; its id."""
    ours, theirs = os.pipe()
    between = os.fork()
    if not between:
        begun, begins = os.pipe()
        pid = os.fork()
        if not pid:
            os.setsid()
            for each in (ours, theirs, begun, begins):
                os.close(each)
            try:
                run()
            finally:
                os._exit(1)
        os.close(begins)
        os.read(begun, 1)  # it has a session of its own
        os.write(theirs, str(pid).encode())
        os._exit(0)
    os.close(theirs)
    os.waitpid(between, 0)
    with os.fdopen(ours) as told:
        return int(told.read())


def _run(order: Mapping[str, Any], fds: Sequence[int], orders: socket.socket) -> None:
    """What a new Python would do with the order."""
    orders.close()
    given, output, answers = fds
    for place, fd in enumerate((given, output, output)):
        os.dup2(fd, place)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["cwd"])
    sys.argv = ["-c", str(answers)]
    sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    from grace_irl.work.process import main

    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
