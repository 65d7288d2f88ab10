"""The sandbox of a run, and its limits, as the settings say."""

from __future__ import annotations

from grace_irl.config import SandboxConfig
from grace_irl.sandbox.protocol import Limits, Sandbox
from grace_irl.work import Workplace


def opened_sandbox(settings: SandboxConfig, workplace: Workplace = Workplace()) -> Sandbox:
    """Open a new sandbox. The caller must close it, or use it as a context manager.

    With a Ray cluster, programs run on its nodes. With a shared folder, programs run on this machine, because a job for
    each program would take longer than the program.
    """
    if workplace.kind == "ray":
        from grace_irl.sandbox.cluster import RaySandbox

        found = RaySandbox(settings.workers, allow_weak=settings.allow_weak, address=workplace.address)
        workplace.watch(found)
        return found
    from grace_irl.sandbox import open_sandbox

    return open_sandbox(workers=settings.workers, allow_weak=settings.allow_weak)


def limits_of(settings: SandboxConfig) -> Limits:
    """The limits of one run of a program."""
    return Limits(wall_s=settings.wall_s, cpu_s=settings.cpu_s, memory_mb=settings.memory_mb)
