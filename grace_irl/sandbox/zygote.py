"""Code of a zygote, a small process that has all modules loaded and forks a locked-down child for each program.

It serves one host (the process that uses the sandbox) over one socket, and handles one request at a time. It never
reads a state, a reward or a program's source.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from typing import Any

from grace_irl.sandbox import kernel, memory, wire
from grace_irl.sandbox.child import run_batch, run_debug, run_inspection
from grace_irl.sandbox.ending import Child, address_space, resident_bytes
from grace_irl.sandbox.lockdown import CHILD_FAILED, Lockdown, exit_status
from grace_irl.sandbox.preload import fill_gaps, preload, rehearse
from grace_irl.sandbox.session_child import run_session
from grace_irl.sandbox.strict import run_strict

_RUNNER_GRACE_S = 10.0  # time that the runner of strict mode may take, in addition to the limits of its two children
_BODIES = {
    "batch": run_batch,
    "strict": run_strict,
    "debug": run_debug,
    "inspect": run_inspection,
    "session": run_session,
}
"""Function that a child runs, by the request's `op`. None of these functions returns."""


def serve(descriptor: int) -> None:
    """Prepare this process, then answer the host's requests until the host closes the socket.

    Args:
        descriptor: file descriptor of the socket.
    """
    host = socket.socket(fileno=descriptor)
    preload()
    rehearse()
    lockdown = Lockdown()
    lockdown.prepare_zygote()
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    fill_gaps()
    kernel.release_free_memory()
    gc.freeze()  # The garbage collector of a child ignores all objects that exist now, so their pages stay shared.
    gc.disable()
    zygote = Zygote(host, lockdown)
    wire.send(host, {})
    while True:
        try:
            request, fds = wire.receive(host)
            wire.send(host, zygote.handle(request, fds))
        except wire.ClosedError:
            os._exit(0)


class Zygote:
    """The handler of a zygote's requests. It keeps no data from one request to the next."""

    def __init__(self, host: socket.socket, lockdown: Lockdown) -> None:
        self._host = host
        self._lockdown = lockdown
        self._base_bytes = address_space()

    def handle(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Serve one request: fork a child, wait for it, and return how the child ended."""
        wall_s, cpu_s = request["wall_s"], request["cpu_s"]
        if request["op"] == "strict":  # the child forks two children itself, and enforces their limits
            wall_s, cpu_s = 2 * wall_s + _RUNNER_GRACE_S, float("1e9")
        pid = kernel.fork()
        if pid == 0:
            try:
                kernel.die_with_parent()
                _BODIES[request["op"]](self._lockdown, request, fds, self._base_bytes)
            except BaseException as error:
                os._exit(exit_status(error))
            finally:
                os._exit(CHILD_FAILED)
        memory.close(*fds)
        most = request["memory_mb"] << 20
        return {"ended": Child(pid).watch(wall_s, cpu_s, self._host, lambda child: resident_bytes(child) > most)}
