"""The lock-down of a sandbox child: the steps by which a forked process permanently gives up its privileges.

The order of the steps matters. Each privilege is dropped only after the last step that needs it.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.sandbox import kernel

SECCOMP, LANDLOCK = "seccomp", "landlock"
LAYERS = (SECCOMP, LANDLOCK)
"""Protections by the kernel. A child applies the protections that its request names."""

LAYER_REFUSED = 96
"""Exit status of a child that could not apply a requested protection (`LAYERS`), and so did not run the program."""

CHILD_FAILED = 99
"""Exit status of a child in which the sandbox's code, not the program's, raised an exception."""

OUT_OF_MEMORY = 98
"""Exit status of a child that ran out of memory in the sandbox's code, for example while it reported an exception."""

_MIB = 1 << 20


@dataclass(frozen=True)
class Allowance:
    """Limits of a child.

    Attributes:
        cpu_s: CPU time in seconds.
        memory_mb: address space in MiB, beyond `base_bytes`.
        base_bytes: address space in bytes that the child inherits or needs for its data.
    """

    cpu_s: float
    memory_mb: int
    base_bytes: int


def exit_status(error: BaseException) -> int:
    """The exit status of a child after an exception in the sandbox's code.

    The function allocates no memory, because there may be none left.
    """
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return OUT_OF_MEMORY
    return CHILD_FAILED


class Lockdown:
    """The layers of protection that this machine offers: a seccomp filter and a Landlock ruleset.

    The zygote, the process that forks all children, builds both layers once. Each child only applies the layers.
    """

    def __init__(self) -> None:
        arch = kernel.architecture()
        self._filter = kernel.SeccompFilter(arch) if arch else None
        self._ruleset = kernel.Ruleset(arch) if arch else None

    @staticmethod
    def prepare_zygote() -> None:
        """Drop the privileges that neither the zygote nor its children need."""
        kernel.set_dumpable(False)
        kernel.become_nobody()
        kernel.set_dumpable(False)  # once more, because a change of the user id resets this flag
        kernel.no_new_privileges()
        kernel.drop_capabilities()
        for name in ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE"):
            _limit(name, 0)

    def apply(self, layers: Sequence[str], budget: Allowance, keep: Sequence[int] = ()) -> None:
        """Lock this process down. If a layer cannot be applied, end the process with exit status `LAYER_REFUSED`.

        Args:
            layers: layers to apply, from `LAYERS`.
            budget: limits of the process.
            keep: file descriptors to keep. They get the numbers 3, 4, … in this order. All other descriptors except 0,
                1 and 2 are closed.
        """
        kernel.die_with_parent()
        kernel.set_dumpable(False)
        ceiling = budget.base_bytes + budget.memory_mb * _MIB
        _limit("RLIMIT_AS", ceiling)
        _limit("RLIMIT_DATA", ceiling)
        seconds = max(1, math.ceil(budget.cpu_s))
        _limit("RLIMIT_CPU", seconds, seconds + 1)
        _limit("RLIMIT_NPROC", 0)
        if LANDLOCK in layers and not (self._ruleset and self._ruleset.apply()):
            os._exit(LAYER_REFUSED)
        _keep_only(keep)
        # From here on, the process gets no new descriptors. `_keep_only` needs new descriptors, so it comes first.
        _limit("RLIMIT_NOFILE", 0)
        if SECCOMP in layers and not (self._filter and self._filter.apply()):
            os._exit(LAYER_REFUSED)


def _keep_only(keep: Sequence[int]) -> None:
    """Move the file descriptors `keep` to 3, 4, …, and close all other descriptors above 2."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 3 + len(keep)) for fd in keep]
    for n, fd in enumerate(high):
        os.dup2(fd, 3 + n)
    os.closerange(3 + len(keep), 1 << 16)


def _limit(name: str, soft: int, hard: int | None = None) -> None:
    which = getattr(resource, name, None)
    if which is None:
        return
    limit = (soft, soft if hard is None else hard)
    try:
        resource.setrlimit(which, limit)
    except (ValueError, OSError):  # the hard limit is lower already, or macOS refuses this limit
        return
