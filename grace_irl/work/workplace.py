"""The place where a run does its heavy work: this machine, a shared folder with workers, or a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol
from weakref import WeakSet

from grace_irl.errors import InputError
from grace_irl.work.executor import Executor
from grace_irl.work.folder import FolderExecutor
from grace_irl.work.local import LocalExecutor

Kind = Literal["local", "folder", "ray"]
OFFERED = 64
"""Maximum number of jobs that a shared folder offers at the same time, if the number of workers is not given."""

COUNTED_S = 2.0
"""Minimum number of seconds between two counts of a cluster's nodes."""


class Busy(Protocol):
    """An executor or a sandbox that counts its running jobs."""

    @property
    def busy(self) -> int:
        """Number of running jobs or programs."""
        ...


@dataclass
class _Watched:
    """The open executors and sandboxes of a workplace, and the last count of cluster nodes with its time."""

    open: WeakSet[Busy] = field(default_factory=WeakSet)
    nodes: int = 0
    counted: float = -COUNTED_S


@dataclass(frozen=True)
class Workplace:
    """The place where jobs run. A resumed run may continue at another place, with the same result.

    Attributes:
        kind: "local", "folder" or "ray".
        jobs: the shared folder; None for the other kinds.
        address: address of the Ray cluster.
    """

    kind: Kind = "local"
    jobs: Path | None = None
    address: str = "auto"
    _watched: _Watched = field(default_factory=_Watched, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, kind: str | None = None, jobs: Path | None = None, address: str | None = None) -> Workplace:
        """The workplace for the options `--executor`, `--jobs` and `--ray-address`. A missing option is None.

        Raises:
            InputError: an unknown kind, or options that do not fit together.
        """
        if jobs is not None and kind not in (None, "folder"):
            raise InputError(f"--jobs with --executor {kind}; expected it with --executor folder, or left out")
        if address is not None and kind not in (None, "ray"):
            raise InputError(f"--ray-address with --executor {kind}; expected it with --executor ray, or left out")
        if jobs is not None and address is not None:
            raise InputError("--jobs and --ray-address; expected one of them")
        kind = kind or ("folder" if jobs is not None else "ray" if address is not None else "local")
        if kind == "folder":
            if jobs is None:
                raise InputError(
                    "--executor folder without --jobs; expected --jobs DIR, a folder that all machines share"
                )
            return cls("folder", jobs.absolute())
        if kind == "ray":
            return cls("ray", None, address or "auto")
        if kind != "local":
            raise InputError(f"--executor {kind!r}; expected local, folder or ray")
        return cls()

    @property
    def elsewhere(self) -> bool:
        """Whether jobs may run on other machines."""
        return self.kind != "local"

    def said(self) -> str:
        """A line for the user about the place; "" for this machine.

        Raises:
            InputError: there is no cluster at the address.
        """
        if self.kind == "ray":
            from grace_irl.work.cluster import connected, cores_of, nodes_of

            ray = connected(self.address)
            return f"Ray cluster with {nodes_of(ray)} nodes and {cores_of(ray)} cores"
        return "" if self.jobs is None else f"jobs wait for workers: grace-irl work {shlex.quote(str(self.jobs))}"

    def watch(self, found: Busy) -> None:
        """Include the jobs of an executor or a sandbox in `at_work`, as long as the object exists."""
        self._watched.open.add(found)

    def at_work(self) -> str:
        """A few words about the nodes of a cluster and the jobs on other machines; "" for this machine.

        A job is a training, a run of a comparison, or a program in the sandbox of a cluster.
        """
        if not self.elsewhere:
            return ""
        jobs = sum(each.busy for each in list(self._watched.open))
        said = f"{jobs} job{'s' * (jobs != 1)}"
        if self.kind != "ray":
            return said
        if time.monotonic() - self._watched.counted >= COUNTED_S:
            self._watched.counted = time.monotonic()
            with contextlib.suppress(Exception):  # the cluster may be gone: its jobs fail with a message
                from grace_irl.work.cluster import connected, nodes_of

                self._watched.nodes = nodes_of(connected(self.address))
        nodes = self._watched.nodes
        return f"{nodes} node{'s' * (nodes != 1)}, {said}"

    def executor(
        self,
        workers: int | None = None,
        services: Mapping[str, Callable[..., Any]] | None = None,
        *,
        name: str = "work",
    ) -> Executor:
        """Open an executor. The caller closes it.

        Args:
            workers: maximum number of jobs in parallel. None or 0 means one per core, or `OFFERED` in a shared folder.
            services: functions of this process by name.
            name: prefix of the threads' names.

        Raises:
            InputError: a negative number of workers, a folder that cannot be made, or no cluster at the address.
        """
        found = self._opened(workers, services, name)
        self.watch(found)
        return found

    def _opened(self, workers: int | None, services: Mapping[str, Callable[..., Any]] | None, name: str) -> Executor:
        if self.kind == "ray":
            from grace_irl.work.cluster import RayExecutor

            return RayExecutor(workers, services, name=name, address=self.address)
        if self.jobs is not None:
            return FolderExecutor(self.jobs, workers or OFFERED, services, name=name)
        return LocalExecutor(workers or os.cpu_count() or 1, services, name=name)
