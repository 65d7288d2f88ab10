"""The function `open_sandbox`, which opens the strongest sandbox that this machine offers.

The tier of a sandbox is a letter for its strength, from "A" (strongest) to "E". Canaries find the tier. A canary is a
harmless test attack that runs like a reward program.

A zygote is the process that forks a child for each program. If the kernel refuses seccomp (Linux's filter of system
calls), each zygote runs in a box, if possible. A box is a sandbox of the operating system: bubblewrap, or sandbox-exec
on macOS.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import SandboxError
from grace_irl.sandbox.lockdown import LANDLOCK, LAYERS, SECCOMP
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import Limits


def sandbox_exec(readable: Iterable[str], executable: str) -> tuple[str, ...]:
    """The sandbox-exec command that runs a zygote. It forbids network, writing, other programs and home folders.

    Args:
        readable: folders of Python and its packages. The zygote may read them even if they are below /Users.
        executable: path of the interpreter.
    """
    folders = " ".join(f"(subpath {json.dumps(folder)})" for folder in readable)
    profile = (
        "(version 1)(allow default)(deny network*)(deny file-write*)"
        '(allow file-write-data (literal "/dev/null"))'
        f'(deny file-read* (subpath "/Users"))(allow file-read* {folders})'
        f"(deny process-exec*)(allow process-exec (literal {json.dumps(executable)}))"
        "(deny signal)(allow signal (target self))(allow signal (target children))"
    )
    return ("/usr/bin/sandbox-exec", "-p", profile)


_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")


def bubblewrap() -> tuple[str, ...] | None:
    """The bubblewrap command that runs a zygote; None if bubblewrap is not installed.

    The zygote gets new namespaces of all types, and can read only the folders of the system and the interpreter.
    """
    command = shutil.which("bwrap")
    if command is None:
        return None
    shown: list[str] = []
    for folder in _SYSTEM:
        if os.path.islink(folder):
            shown += ["--symlink", os.readlink(folder), folder]
        elif os.path.exists(folder):
            shown += ["--ro-bind", folder, folder]
    for folder in _readable():
        shown += ["--ro-bind", folder, folder]
    return (command, "--unshare-all", "--cap-drop", "ALL", *shown, *("--proc", "/proc", "--dev", "/dev", "--"))


def macos_sandbox() -> tuple[str, ...] | None:
    """The sandbox-exec command that runs a zygote on macOS; None on other systems."""
    if sys.platform != "darwin":
        return None
    return sandbox_exec(_readable(), os.path.realpath(sys.executable))


def _readable() -> list[str]:
    """Folders of the interpreter, its packages and this package. A folder inside another of these is left out."""
    package = Path(__file__).resolve().parent.parent
    named = [
        sys.prefix,
        sys.base_prefix,
        str(package),
        *(entry for entry in sys.path if os.path.isdir(entry)),
    ]
    # Both links and their targets are readable, because the interpreter may be called by either path.
    real = [os.path.realpath(folder) for folder in named]
    kept: list[str] = []
    for folder in sorted({os.path.abspath(folder) for folder in named + real}, key=len):
        # Leave out the home folder and the root. One of them may be the current folder, and so be in sys.path.
        if folder in ("/", str(Path.home())) or any(Path(folder).is_relative_to(above) for above in kept):
            continue
        kept.append(folder)
    return kept


FILE_ATTACKS = ("read a file", "create a file", "list a folder", "rename a file")
OTHER_ATTACKS = ("connect a socket", "start a process", "signal the host", "map executable memory")
ATTACKS = (*FILE_ATTACKS, *OTHER_ATTACKS)

_LIMITS = Limits(wall_s=10.0, cpu_s=5.0)

_READABLE = ("/etc/passwd", "/etc/hosts", sys.executable)
"""Files that every user may read. The canary tries to read the first of these files that the host process can read.
Inside bubblewrap, only the last of the three exists, so an attempt to read another one fails as it should."""

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
    os.rename(FILE, FILE)  # the same name: outside the sandbox this succeeds without any right, and changes nothing

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
    """Result of the canaries under one set of layers. Layers are the protections that a child applies to itself.

    Attributes:
        layers: layers that the child applied.
        escaped: attacks that succeeded.
        ran: whether the child ran the canaries. False, for example, if the child could not apply a layer.
    """

    layers: tuple[str, ...]
    escaped: tuple[str, ...] = ()
    ran: bool = True

    def holds(self, attacks: Sequence[str]) -> bool:
        """Whether the child ran and all of these attacks failed."""
        return self.ran and not set(attacks) & set(self.escaped)


def release(pool: ZygotePool, layers: Sequence[str]) -> Finding:
    """Run all canaries in one child under these layers, and return the result."""
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


Letter = Literal["A", "B", "C", "D", "E"]

MEANING: dict[Letter, str] = {
    "A": "seccomp and Landlock",
    "B": "seccomp only: Landlock is missing or off, which leaves one layer between a program and your files",
    "C": "bubblewrap: seccomp is refused here, so a program is kept in namespaces, together with its zygote",
    "D": "sandbox-exec: advisory; macOS documents no guarantee, and memory is only watched",
    "E": "limits on time and memory only: generated code can read and change your files, use the network and "
    "start programs with your rights",
}


@dataclass(frozen=True)
class Tier:
    """The strength of the sandbox on this machine.

    Attributes:
        letter: "A" (strongest) to "E".
        layers: layers that each child applies.
        wrap: command of the box that runs each zygote; () for none.
        findings: results of the canaries. The last one is about the layers in use.
    """

    letter: Letter
    layers: tuple[str, ...]
    wrap: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def meaning(self) -> str:
        """Description of the tier."""
        if self.letter == "E" and LANDLOCK in self.layers:
            return "Landlock only: seccomp is refused here, so generated code may try the whole rest of the kernel"
        return MEANING[self.letter]

    @property
    def escaped(self) -> tuple[str, ...]:
        """The canary attacks that succeed under the layers in use."""
        return self.findings[-1].escaped if self.findings else ATTACKS


def open_sandbox(workers: int | None = None, allow_weak: bool = False) -> ZygotePool:
    """Open the strongest sandbox that this machine offers.

    Args:
        workers: maximum number of runs in parallel; None for one per core.
        allow_weak: whether to accept tier E, which has neither seccomp nor a box: generated code may then act with the
            user's rights.

    Raises:
        SandboxError: the machine offers only tier E and `allow_weak` is False, or no worker starts.
    """
    pool, tier = open_with_tier(workers)
    if tier.letter == "E" and not allow_weak:
        pool.close()
        raise SandboxError(
            f"this machine offers no sandbox: {tier.meaning}; expected seccomp (Linux), bubblewrap or macOS: "
            "install bubblewrap, use WSL2 on Windows, or accept the risk with --allow-weak-sandbox"
        )
    if tier.letter != "A":
        warnings.warn(f"sandbox tier {tier.letter}: {tier.meaning}", stacklevel=2)
    return pool


def open_with_tier(workers: int | None = None) -> tuple[ZygotePool, Tier]:
    """Open the strongest sandbox, and return it with its tier.

    Raises:
        SandboxError: no worker starts.
    """
    pool = ZygotePool(workers)
    try:
        tier = _probe(pool)
    except BaseException:
        pool.close()
        raise
    if tier.letter == "E":
        found = _boxed(workers, tier)
        if found is not None:
            pool.close()
            return found
    pool.tier, pool.layers = tier.letter, tier.layers
    return pool, tier


def _probe(pool: ZygotePool) -> Tier:
    """Find the tier of a pool without a box.

    The canaries run under each of the two layers (seccomp and Landlock) alone and, if both layers hold, under both
    together. If neither layer holds, the canaries run without any layer.
    """
    seccomp, landlock = release(pool, (SECCOMP,)), release(pool, (LANDLOCK,))
    if seccomp.holds(ATTACKS):
        if landlock.holds(FILE_ATTACKS):
            both = release(pool, LAYERS)
            if both.holds(ATTACKS):
                return Tier("A", LAYERS, findings=(seccomp, landlock, both))
        return Tier("B", (SECCOMP,), findings=(landlock, seccomp))
    if landlock.holds(FILE_ATTACKS):
        return Tier("E", (LANDLOCK,), findings=(seccomp, landlock))
    return Tier("E", (), findings=(seccomp, landlock, release(pool, ())))


def _boxed(workers: int | None, bare: Tier) -> tuple[ZygotePool, Tier] | None:
    """A pool whose zygotes run in a box, and the pool's tier; None if no box stops attacks on files and the network.

    Args:
        workers: number of zygotes; None for one per core.
        bare: tier of this machine without a box.
    """
    boxes: Sequence[tuple[Letter, Callable[[], tuple[str, ...] | None]]] = (
        ("C", bubblewrap),
        ("D", macos_sandbox),
    )
    for letter, box in boxes:
        wrap = box()
        if wrap is None:
            continue
        pool = ZygotePool(workers, tier=letter, layers=bare.layers, wrap=wrap)
        try:
            finding = release(pool, bare.layers)
        except SandboxError:  # the box is installed, but may not create namespaces here
            pool.close()
            continue
        if finding.holds((*FILE_ATTACKS, "connect a socket")):
            return pool, Tier(letter, bare.layers, wrap, (*bare.findings, finding))
        pool.close()
    return None
