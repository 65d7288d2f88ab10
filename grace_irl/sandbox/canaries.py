"""Canary attacks: a program that tries to get out, each time in a way that does no harm where it succeeds.

What holds on this machine is what stops them here, today; version numbers say nothing about a container's
own rules. They are aimed at what is there anyway, and make nothing that has a name: whenever the host dies,
nothing stays.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import Limits

FILE_ATTACKS = ("read a file", "create a file", "list a folder", "rename a file")
OTHER_ATTACKS = ("connect a socket", "start a process", "signal the host", "map executable memory")
ATTACKS = (*FILE_ATTACKS, *OTHER_ATTACKS)

_LIMITS = Limits(wall_s=10.0, cpu_s=5.0)

_READABLE = ("/etc/passwd", "/etc/hosts", sys.executable)
"""Files that anyone may read, the likelier first; a box of the operating system shows the last one only."""

_SOURCE = """
import mmap, os, socket

FILE, FOLDER, PORT, HOST = {file!r}, {folder!r}, {port!r}, {host!r}

def read_file():
    return open(FILE).read()

def create_file():
    if hasattr(os, "O_TMPFILE"):
        os.close(os.open(FOLDER, os.O_TMPFILE | os.O_WRONLY))  # a file without a name
    else:
        os.mkdir(FOLDER + "/grace-irl-canary")
        os.rmdir(FOLDER + "/grace-irl-canary")

def list_folder():
    return os.listdir(FOLDER)

def rename_file():
    os.rename(FILE, FILE)  # anyone may: where the names are one, the kernel asks for no right and changes nothing

def connect():
    with socket.socket() as sock:
        sock.settimeout(1)
        sock.connect(("127.0.0.1", PORT))

def start():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)

def signal_host():
    os.kill(HOST, 0)

def map_executable():
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)

ATTACKS = [read_file, create_file, list_folder, rename_file, connect, start, signal_host, map_executable]

class Reward:
    def reward_fn(self, state):
        try:
            ATTACKS[int(state[0])]()
        except Exception:
            return 0.0
        return 1.0
"""


@dataclass(frozen=True)
class Finding:
    """What the canaries found under one set of layers.

    Attributes:
        layers: what the child had put on.
        escaped: the attacks that succeeded.
        ran: whether the child came up at all; a layer that cannot be put on keeps it from running.
    """

    layers: tuple[str, ...]
    escaped: tuple[str, ...] = ()
    ran: bool = True

    def holds(self, attacks: Sequence[str]) -> bool:
        """Whether it ran and all of these attacks failed."""
        return self.ran and not set(attacks) & set(self.escaped)


def release(pool: ZygotePool, layers: Sequence[str]) -> Finding:
    """Run all canaries in one child under these layers."""
    states = np.arange(len(ATTACKS), dtype=np.float64).reshape(-1, 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        file = next((path for path in _READABLE if os.access(path, os.R_OK)), _READABLE[-1])
        source = _SOURCE.format(file=file, folder=tempfile.gettempdir(), port=server.getsockname()[1], host=os.getpid())
        handle = pool.put([Trajectory(states)])
        try:
            outcome = pool.run(source, handle, [0], checks=False, layers=layers, limits=_LIMITS)
        finally:
            pool.drop(handle)
    if outcome.status != "ok":
        return Finding(tuple(layers), ran=False)
    escaped = tuple(name for name, value in zip(ATTACKS, outcome.rewards[0], strict=True) if value)
    return Finding(tuple(layers), escaped)
