"""Zygotes whose processes go from pool to pool.

A start takes a quarter of a second of CPU, and most tests that run programs open a pool. A zygote keeps nothing of one
request for the next (`grace_irl/sandbox/zygote.py`), so a used process serves as a new one does: pools, canaries, tiers
and children stay real. Tests of the sandbox itself take new ones (their `conftest.py`).
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from socket import socket
from typing import Any, NamedTuple

from grace_irl.sandbox import wire
from grace_irl.sandbox.host import ZygoteHandle

_END_S = 0.5
_MOST = 4


class _Process(NamedTuple):
    """A zygote's process that nobody uses, and what belongs to it."""

    key: tuple[object, ...]
    process: subprocess.Popen[bytes]
    socket: socket
    errors: Any
    ready: bool


_SPARE: list[_Process] = []
_LOCK = threading.Lock()


class RecycledZygote(ZygoteHandle):
    """A zygote that takes the process of a closed one, and leaves its own to the next one if it is at no work."""

    def __init__(self, number: int = 0, wrap: Sequence[str] = ()) -> None:
        self._own = threading.Lock()
        super().__init__(number, wrap)

    def ask(self, request: dict[str, Any], fds: Sequence[int] = (), within_s: float = 30.0) -> dict[str, Any]:
        self._waiting += 1
        try:
            return super().ask(request, fds, within_s)
        finally:
            self._waiting -= 1

    def post(self, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
        with self._own:
            if self._left:
                raise wire.ClosedError
            self._asked = True
        super().post(request, fds)

    def reply(self, within_s: float) -> dict[str, Any]:
        found = super().reply(within_s)
        self._asked = False
        return found

    def close(self) -> None:
        with self._own:
            if self._left:
                return
            if self._asked and not self._waiting:  # the pipes of a session are closed, so its child ends
                with contextlib.suppress(wire.ClosedError, OSError):
                    self.reply(_END_S)
            if not self._asked and self._process.poll() is None:
                with _LOCK:
                    if len(_SPARE) < _MOST:
                        self._socket.settimeout(None)
                        _SPARE.append(_Process(self._key, self._process, self._socket, self._errors, self._ready))
                        self._left = True
                        return
        super().close()

    def _start(self) -> None:
        self._left, self._asked, self._waiting = False, False, 0
        self._key = (sys.executable, self._wrap, tuple(sys.path))
        with _LOCK:
            found = next((each for each in reversed(_SPARE) if each.key == self._key), None)
            if found:
                _SPARE.remove(found)
        if found and found.process.poll() is not None:
            _ended(found)
            found = None
        if not found:
            super()._start()
            return
        _, self._process, self._socket, self._errors, self._ready = found


def end_spare() -> None:
    """End the processes that nobody uses."""
    while _SPARE:
        _ended(_SPARE.pop())


def _ended(left: _Process) -> None:
    handle = object.__new__(ZygoteHandle)
    _, handle._process, handle._socket, handle._errors, _ = left
    handle.close()
