"""The host's side of one zygote: start it, send it requests, restart it if it died.

The host is the process that uses the sandbox. A zygote is a process that forks a locked-down child for each program. A
handle is an object of the class `ZygoteHandle`, by which the host uses one zygote.

A start takes about 0.4 seconds of CPU, and a zygote keeps nothing of one request for the next. So a closed handle
leaves its zygote to the next handle, unless the zygote is at work.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from grace_irl.errors import SandboxError
from grace_irl.sandbox import wire

_PACKAGE = Path(__file__).resolve().parent.parent
_START_S = 60.0  # time limit of a zygote's start
_GRACE_S = 30.0  # default time limit of a reply
_END_S = 0.5  # time limit for the end of a session's child after the session's pipes are closed
MOST_SPARE = 1
"""Maximum number of zygotes without a handle that wait for a new handle. Each holds about 50 MB of memory."""

ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNODEBUGRANGES": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
}
"""All environment variables of a zygote. The hash seed makes the order of Python sets reproducible. Linear algebra uses
one thread. Python keeps less debug information, so a fork copies less memory."""


class _Spare(NamedTuple):
    """The process of a zygote that has no handle.

    A handle with an equal `key` (interpreter, command `wrap` and import folders) may take the process.
    """

    key: tuple[object, ...]
    process: subprocess.Popen[bytes]
    socket: socket.socket
    errors: Any
    ready: bool


_spare: list[_Spare] = []
_lock = threading.Lock()


class ZygoteHandle:
    """A handle of one zygote, for one thread at a time. The zygote is a new process, or that of a closed handle.

    Args:
        number: index of the zygote in its pool, from 0.
        wrap: command that runs the zygote in a sandbox of the operating system (bubblewrap, sandbox-exec); () for none.
    """

    _key: tuple[object, ...]
    _process: subprocess.Popen[bytes]
    _socket: socket.socket
    _errors: Any
    _ready: bool
    _closed: bool

    def __init__(self, number: int = 0, wrap: Sequence[str] = ()) -> None:
        self.number = number
        self._wrap = tuple(wrap)
        self._own = threading.Lock()
        self._begin()

    @property
    def pid(self) -> int:
        """Process id of the zygote, or of the command `wrap` that runs it."""
        return self._process.pid

    def ask(self, request: dict[str, Any], fds: Sequence[int] = (), within_s: float = _GRACE_S) -> dict[str, Any]:
        """Send a request to the zygote, and return the reply.

        Args:
            request: message for the zygote, with the key `op`.
            fds: file descriptors to send along.
            within_s: time limit of the reply in seconds.

        Raises:
            wire.ClosedError: the zygote died, or did not reply in time and was killed; `restart` it.
            SandboxError: the zygote did not start.
        """
        self._asking = True
        try:
            self.post(request, fds)
            return self.reply(within_s)
        finally:
            self._asking = False

    def post(self, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send a request. Do not wait for the reply, which the method `reply` returns.

        Args:
            request: message for the zygote, with the key `op`.
            fds: file descriptors to send along.

        Raises:
            wire.ClosedError: the zygote died; `restart` it.
            SandboxError: the zygote did not start.
        """
        with self._own:
            if self._closed:
                raise wire.ClosedError
            self._at_work = True
        self.wait_until_ready()
        wire.send(self._socket, request, tuple(fds))

    def reply(self, within_s: float) -> dict[str, Any]:
        """Wait for the reply to the request that `post` sent, and return the reply.

        Args:
            within_s: time limit in seconds.

        Raises:
            wire.ClosedError: the zygote died, or did not reply in time and was killed; `restart` it.
        """
        try:
            self._socket.settimeout(within_s)
            found = wire.receive(self._socket)[0]
        except TimeoutError as error:  # the zygote is alive, but does not answer
            self._process.kill()
            raise wire.ClosedError from error
        self._at_work = False
        return found

    def wait_until_ready(self) -> None:
        """Wait until the zygote, which starts in the background, is ready for requests.

        Raises:
            SandboxError: the zygote did not start.
        """
        if self._ready:
            return
        try:
            self._socket.settimeout(_START_S)
            wire.receive(self._socket)
        except (wire.ClosedError, TimeoutError) as error:
            self._process.kill()
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            late = f"it was not ready after {_START_S:g} s; expected a machine with less to do"
            silent = late if isinstance(error, TimeoutError) else "no reason given"
            raise SandboxError(f"the sandbox did not start: {said[-1] if said else silent}") from error
        self._errors.close()
        self._ready = True

    def restart(self) -> None:
        """Replace a dead zygote by another one."""
        self.close()
        self._begin()

    def close(self) -> None:
        """Leave the zygote to the next handle, or end it if it is at work. Repeated calls are harmless."""
        with self._own:
            if self._closed:
                return
            self._closed = True
            # Nobody waits for the reply to a session's request. The session's pipes are closed by now, so its child
            # ends, and the zygote replies.
            if self._at_work and not self._asking:
                with contextlib.suppress(wire.ClosedError, OSError):
                    self.reply(_END_S)
        if self._at_work or self._process.poll() is not None:
            self._end()
            return
        with _lock:
            _spare.append(_Spare(self._key, self._process, self._socket, self._errors, self._ready))
        end_spare(MOST_SPARE)

    def _end(self) -> None:
        """Close the socket, and make sure that the process ends."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for an answer
        self._socket.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _begin(self) -> None:
        """Take a spare process with the same key, or start one."""
        self._closed = self._asking = self._at_work = False
        self._key = sys.executable, self._wrap, tuple(sys.path)
        while (found := _taken(self._key)) is not None:
            _, self._process, self._socket, self._errors, self._ready = found
            if self._process.poll() is None:
                self._socket.settimeout(None)
                return
            self._end()
        self._start()

    def _start(self) -> None:
        self._ready = False
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed when the zygote is up)
        path = [os.path.abspath(entry) for entry in sys.path if entry and os.path.exists(entry)]
        options = json.dumps({"path": path})
        boot = str(_PACKAGE / "sandbox" / "boot.py")
        # -S skips the module `site`, whose hooks every fork would copy. Without `site`, Python does not find installed
        # packages, so the options list the host's import folders.
        python = [sys.executable, "-S", "-s", "-P", boot, str(_PACKAGE), str(theirs.fileno()), options]
        try:
            self._process = subprocess.Popen(
                [*self._wrap, *python],
                env=ENVIRONMENT,
                cwd="/",
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C goes to the host only
            )
        except OSError as error:
            raise SandboxError(f"the sandbox did not start: {error}") from error
        finally:
            theirs.close()


def _taken(key: tuple[object, ...]) -> _Spare | None:
    with _lock:
        found = next((each for each in reversed(_spare) if each.key == key), None)
        if found is not None:
            _spare.remove(found)
        return found


def end_spare(most: int = 0) -> None:
    """End zygotes that have no handle, the oldest first, until at most `most` are left."""
    with _lock:
        count = max(0, len(_spare) - most)
        ended, _spare[:] = _spare[:count], _spare[count:]
    for each in ended:
        handle = object.__new__(ZygoteHandle)
        _, handle._process, handle._socket, handle._errors, _ = each
        handle._end()


def _forget_spare() -> None:
    """In a forked process: leave the zygotes to the process that started them."""
    global _lock
    _lock = threading.Lock()
    for each in _spare:
        each.socket.close()
        each.process.returncode = 0  # else its destructor would complain that nobody waited for it
    _spare.clear()


atexit.register(end_spare)
os.register_at_fork(after_in_child=_forget_spare)
