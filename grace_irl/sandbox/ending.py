"""Supervision of a sandbox child by its parent: wait for its end, kill it at a limit, and read its exit status.

The status comes from the kernel, because the child is not trusted.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from grace_irl.sandbox.lockdown import OUT_OF_MEMORY
from grace_irl.sandbox.protocol import Status

_PAGE = resource.getpagesize()
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB on Linux
_POLL_S = 0.005


class Ended(NamedTuple):
    """The end of a child, as wait4 reports it.

    Attributes:
        exit_code: exit code; 0 if a signal ended the child.
        signal: number of the signal that killed the child; 0 if no signal did.
        timeout: limit at which the parent killed the child: "wall", "cpu" or "memory"; "" otherwise.
        cpu_s: CPU seconds of the child and of its own children.
        wall_s: wall seconds from fork to end.
        peak_mb: peak resident memory, MiB.
    """

    exit_code: int
    signal: int
    timeout: str
    cpu_s: float
    wall_s: float
    peak_mb: float

    def verdict(self, cpu_limit_s: float) -> tuple[Status, str] | None:
        """Status and message of a failed child; None if the child ended by itself with exit code 0.

        Args:
            cpu_limit_s: limit of CPU time in seconds. Beyond it, the kernel kills the child by SIGXCPU or SIGKILL.
        """
        if self.timeout == "wall":
            return "timeout", f"killed after {self.wall_s:.1f} s: the time limit"
        if self.timeout == "memory":
            return "memory", f"killed at {self.peak_mb:.0f} MiB: the memory limit"
        spent = self.timeout == "cpu" or self.signal == signal.SIGXCPU
        if spent or (self.signal == signal.SIGKILL and self.cpu_s >= cpu_limit_s):
            return "timeout", f"killed after {self.cpu_s:.1f} s of CPU: the limit"
        if self.signal:
            try:
                name = signal.Signals(self.signal).name
            except ValueError:
                name = str(self.signal)
            return "killed", f"died by signal {name}"
        if self.exit_code == OUT_OF_MEMORY:
            return "memory", f"out of memory at {self.peak_mb:.0f} MiB: the memory limit"
        if self.exit_code:
            return "killed", f"left with exit code {self.exit_code}"
        return None


class Child:
    """A forked child process, with methods to watch and kill it.

    On Linux, a pidfd (a file descriptor for a process) identifies the child. So `kill` cannot hit a later process with
    the same id.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.started = time.monotonic()
        self.timeout = ""
        self._pidfd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
        # id of the clock that measures the child's CPU time, as Linux's MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
        self._clock = (~pid << 3) | 2

    def kill(self) -> None:
        """Send SIGKILL, which no process can ignore."""
        try:
            if self._pidfd >= 0:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the pid still belongs to the child
        except ProcessLookupError:
            pass

    def cpu_s(self) -> float:
        """CPU seconds so far; NaN if the kernel does not report them."""
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            return math.nan

    def remaining_s(self, wall_s: float, cpu_s: float) -> float:
        """Return the minimum number of seconds until a limit is reached. At a limit, return 0 and set `timeout`.

        The child is assumed to have one thread, so its CPU time grows at most as fast as the wall time.
        """
        wall = wall_s - (time.monotonic() - self.started)
        used = self.cpu_s()
        cpu = cpu_s - used if used == used else wall  # NaN differs from itself
        if wall <= 0:
            self.timeout = "wall"
        elif cpu <= 0:
            self.timeout = "cpu"
        return max(0.0, min(wall, cpu))

    def watch(self, wall_s: float, cpu_s: float, host: socket.socket | None, too_big: Callable[[int], bool]) -> Ended:
        """Wait until the child ends by itself, reaches a limit, or loses its host.

        Args:
            wall_s: limit of wall time in seconds.
            cpu_s: limit of CPU time in seconds.
            host: socket to the host, the process that uses the sandbox; None for no host. If the host closes the
                socket, the child is killed.
            too_big: function of a process id that returns whether the process uses too much memory. It is called
                regularly on systems without pidfds, where the kernel does not enforce a memory limit.
        """
        if self._pidfd < 0:
            return self._watch_by_polling(wall_s, cpu_s, too_big)
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        if host is not None:
            poller.register(host, 0)  # even with an empty event mask, poll reports that the host closed the socket
        while True:
            left = self.remaining_s(wall_s, cpu_s)
            if self.timeout:
                self.kill()
                break
            events = poller.poll(math.ceil(left * 1000))
            if any(fd == self._pidfd for fd, _ in events):
                break
            if events:
                self.kill()
                break
        return self.reap()

    def _watch_by_polling(self, wall_s: float, cpu_s: float, too_big: Callable[[int], bool]) -> Ended:
        while (ended := self._reaped(os.WNOHANG)) is None:
            if self.remaining_s(wall_s, cpu_s) == 0:
                self.kill()
            elif too_big(self.pid):
                self.timeout = "memory"
                self.kill()
            time.sleep(_POLL_S)
        return ended

    def reap(self) -> Ended:
        """Wait until the child has ended and its memory is free. Return how it ended."""
        ended = self._reaped(0)
        assert ended is not None  # without WNOHANG, wait4 returns only after the child has ended
        return ended

    def _reaped(self, options: int) -> Ended | None:
        pid, status, usage = os.wait4(self.pid, options)
        if pid == 0:
            return None
        if self._pidfd >= 0:
            os.close(self._pidfd)
        return Ended(
            os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            self.timeout,
            usage.ru_utime + usage.ru_stime,
            time.monotonic() - self.started,
            usage.ru_maxrss * _MAXRSS_UNIT / (1 << 20),
        )


def address_space() -> int:
    """Size of this process's address space in bytes; 0 if /proc does not report it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * _PAGE
    except OSError:
        return 0


_RUSAGE_INFO_V2 = 2  # version of the structure that proc_pid_rusage fills


_RUSAGE_BYTES = 512  # size of the buffer, larger than the structure


_FOOTPRINT_AT = 72  # offset of ri_phys_footprint (sys/resource.h): 16 bytes of uuid and 7 words of 8 bytes precede it


def resident_bytes(pid: int) -> int:
    """Physical memory of a process in bytes, from macOS's proc_pid_rusage; 0 on other systems or if unknown."""
    if sys.platform != "darwin":
        return 0
    buffer = ctypes.create_string_buffer(_RUSAGE_BYTES)
    if ctypes.PyDLL("/usr/lib/libproc.dylib").proc_pid_rusage(pid, _RUSAGE_INFO_V2, buffer) != 0:
        return 0
    return int(struct.unpack_from("<Q", buffer.raw, _FOOTPRINT_AT)[0])
