"""The ground that attacks are aimed at, and whether it is still as it was."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from grace_irl.sandbox.pool import ZygotePool

SECRET = "TREASURE"
GOING = 3.0
"""Seconds in which killed processes of other tests go."""
_NOBODY = 65534


class Ground:
    """Files, listeners and a bystander that anybody on this machine may touch, so that only the sandbox protects them.

    The bystander runs as the user that the programs run as: without the sandbox they could kill it.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="grace-irl-hostile-"))
        for name in ("secret", "decoy"):
            (self.folder / name).write_text(SECRET)
        (self.folder / "page.xml").write_text(f"<a>{SECRET}</a>")
        (self.folder / "module.py").write_text("x = 1")
        (self.folder / "empty").mkdir()
        for path in self.folder.iterdir():
            path.chmod(0o777 if path.is_dir() else 0o666)
        self.folder.chmod(0o777)
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(str(self.folder / "socket"))
        os.chmod(self.folder / "socket", 0o777)
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0{self.folder.name}")
        for listener in (self.unix, self.abstract):
            listener.listen()
        for listener in (self.tcp, self.udp, self.unix, self.abstract):
            listener.setblocking(False)
        user = {"user": _NOBODY} if os.geteuid() == 0 else {}
        self.bystander = subprocess.Popen(["sleep", "600"], **user)  # type: ignore[call-overload]
        self._before = self._snapshot()

    def fill_in(self, source: str, pool: ZygotePool) -> str:
        """A source with this ground's addresses."""
        names = {
            "MACHINE": platform.machine(),
            "FOLDER": str(self.folder),
            "TCP": str(self.tcp.getsockname()[1]),
            "UDP": str(self.udp.getsockname()[1]),
            "UNIX": str(self.folder / "socket"),
            "ABSTRACT": self.folder.name,
            "HOST": str(os.getpid()),
            "ZYGOTE": str(zygotes(pool)[0]),
            "BYSTANDER": str(self.bystander.pid),
        }
        for name, value in names.items():
            source = source.replace(f"@{name}@", value)
        return source

    def damage(self, pool: ZygotePool, before: list[int]) -> list[str]:
        """What an attack changed; `before` are the zygotes that were there."""
        found = []
        if self._snapshot() != self._before:
            found.append("files changed")
        for name in ("tcp", "unix", "abstract"):
            with contextlib.suppress(BlockingIOError):
                getattr(self, name).accept()
                found.append(f"{name} connected")
        with contextlib.suppress(BlockingIOError):
            self.udp.recv(1)
            found.append("udp received")
        if self.bystander.poll() is not None:
            found.append("bystander killed")
        if zygotes(pool) != before:
            found.append("zygote died")
        if left := staying(before):
            found.append(f"processes left: {left}")
        if Path("/dev/shm/grace-irl-test").exists():
            found.append("shared memory left")
        return found

    def close(self) -> None:
        """Take it all down."""
        for listener in (self.tcp, self.udp, self.unix, self.abstract):
            listener.close()
        self.bystander.kill()
        self.bystander.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _snapshot(self) -> dict[str, tuple[object, ...]]:
        found: dict[str, tuple[object, ...]] = {}
        for path in sorted(self.folder.iterdir()):
            stat = path.stat()
            content = path.read_bytes() if path.is_file() else b""
            found[path.name] = (stat.st_mode, stat.st_uid, stat.st_mtime_ns, stat.st_ino, content)
        return found


def zygotes(pool: ZygotePool) -> list[int]:
    """Process ids of a pool's zygotes."""
    return list(pool.pids)


def staying(zygotes: list[int]) -> list[int]:
    """`leftovers` after at most `GOING` seconds in which there always were some.

    A sandbox that a test beside this one kills is an orphan for a moment.
    """
    left, limit = leftovers(zygotes), time.monotonic() + GOING
    while left and time.monotonic() < limit:
        time.sleep(0.05)
        left = leftovers(zygotes)
    return left


def leftovers(zygotes: list[int]) -> list[int]:
    """Processes of the zygotes' sessions that are not zygotes, and orphans that a zygote's command line runs in."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in zygotes:
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:  # gone meanwhile
            continue
        state, parent, session = fields[0], int(fields[1]), int(fields[3])
        if state != "Z" and (session in zygotes or (parent == 1 and b"sandbox/boot.py" in command)):
            found.append(int(entry.name))
    return found
