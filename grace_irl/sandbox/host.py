"""The host's side of one zygote: start it, send it requests, restart it if it died.

The host is the process that uses the sandbox. A zygote is a process that forks a locked-down child for each program.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grace_irl.errors import SandboxError
from grace_irl.sandbox import wire

_PACKAGE = Path(__file__).resolve().parent.parent
_START_S = 60.0
_GRACE_S = 30.0

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


class ZygoteHandle:
    """One zygote, used by one thread at a time.

    Args:
        number: index of the zygote in its pool, from 0.
        wrap: command that runs the zygote in a sandbox of the operating system (bubblewrap, sandbox-exec); () for none.
    """

    def __init__(self, number: int = 0, wrap: Sequence[str] = ()) -> None:
        self.number = number
        self._wrap = tuple(wrap)
        self._ready = False
        self._start()

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
        self.post(request, fds)
        return self.reply(within_s)

    def post(self, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send a request. Do not wait for the reply, which the method `reply` returns.

        Args:
            request: message for the zygote, with the key `op`.
            fds: file descriptors to send along.

        Raises:
            wire.ClosedError: the zygote died; `restart` it.
            SandboxError: the zygote did not start.
        """
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
            return wire.receive(self._socket)[0]
        except TimeoutError as error:  # the zygote is alive, but does not answer
            self._process.kill()
            raise wire.ClosedError from error

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
            raise SandboxError(f"the sandbox did not start: {said[-1] if said else 'no reason given'}") from error
        self._errors.close()
        self._ready = True

    def restart(self) -> None:
        """Replace a dead zygote by a new one."""
        self.close()
        self._start()

    def close(self) -> None:
        """Close the socket, and make sure that the zygote ends. Repeated calls are harmless."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for an answer
        self._socket.close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

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
