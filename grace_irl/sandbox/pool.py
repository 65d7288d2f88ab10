"""The sandbox that everyone uses: zygotes, one per core, lent to whoever calls `run`."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import SandboxError
from grace_irl.programs.check import too_long
from grace_irl.programs.identity import text_id
from grace_irl.sandbox import kernel, wire
from grace_irl.sandbox.ending import Ended
from grace_irl.sandbox.host import Zygote
from grace_irl.sandbox.job import JobMemory, inspection
from grace_irl.sandbox.lockdown import LAYERS
from grace_irl.sandbox.packing import Package, pack
from grace_irl.sandbox.protocol import (
    DebugRequest,
    Inspection,
    Limits,
    Mode,
    Outcome,
)

_ATTEMPTS = 2
_MARGIN_S = 30.0
_INSPECTION = Limits(wall_s=5.0, cpu_s=5.0, memory_mb=512)


class ZygotePool:
    """Runs programs in forked, locked-down children of `workers` zygotes. Implements `Sandbox`.

    Args:
        workers: zygotes; None for one per core that this process may use.
        tier: what the canaries found (`open_sandbox` asks them).
        layers: what a child puts on.
        wrap: a command that runs each zygote.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        tier: str = "A",
        layers: Sequence[str] = LAYERS,
        wrap: Sequence[str] = (),
    ) -> None:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._workers = count if workers is None else workers
        if self._workers < 1:
            raise ValueError(f"{workers} workers; expected at least one")
        # a program that got out of its child would still find no way into this process
        kernel.set_dumpable(False)
        self.tier, self.layers = tier, tuple(layers)
        self._handles = itertools.count(1)
        self._packages: dict[int, Package] = {}
        self._dropped: dict[Zygote, set[int]] = {}
        self._lock = threading.Lock()
        self._random = np.random.Generator(np.random.PCG64(int.from_bytes(os.urandom(16), "little")))
        self._zygotes: list[Zygote] = []
        self._idle: queue.LifoQueue[Zygote] = queue.LifoQueue()
        self._closed = False
        self._finalize = weakref.finalize(self, _close_all, self._zygotes)
        for number in range(self._workers):
            zygote = Zygote(number, wrap)
            self._zygotes.append(zygote)
            self._idle.put(zygote)

    @property
    def workers(self) -> int:
        """How many runs go on at once."""
        return self._workers

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the zygotes, or of what wraps them: for whoever measures."""
        return tuple(zygote.pid for zygote in self._zygotes)

    def put(self, trajectories: Sequence[Trajectory]) -> int:
        """See `Sandbox`. A zygote gets them with the first run that needs them."""
        package = pack(trajectories)
        with self._lock:
            handle = next(self._handles)
            self._packages[handle] = package
        return handle

    def drop(self, handle: int) -> None:
        """See `Sandbox`. A zygote that is busy forgets them when its run ends."""
        with self._lock:
            package = self._packages.pop(handle, None)
            if package is None:
                return
            for zygote in self._zygotes:
                self._dropped.setdefault(zygote, set()).add(handle)
        package.close()
        # idle ones at once: the memory is theirs as long as they hold it
        idle: list[Zygote] = []
        with contextlib.suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for zygote in idle:
            self._settle(zygote)
            self._idle.put(zygote)

    def inspect(self, source: str) -> Inspection:
        """See `Sandbox`."""
        data = source.encode("utf-8", "surrogatepass")
        refused = too_long(len(data))
        if refused is not None:
            return Inspection(text_id(source), (str(refused),), (), False, 0)
        job = JobMemory(data, message=wire.INSPECTION_BYTES)
        try:
            ended = self._ask(_request("inspect", _INSPECTION, self.layers), job)
            verdict = ended.verdict(_INSPECTION.cpu_s)
            status, message, _, _ = job.answer() if verdict is None else (*verdict, "", False)
        finally:
            job.close()
        found = inspection(message) if status == "ok" else None
        if found is None:
            said = f"the source could not be read ({message}): make it simpler"
            return Inspection(text_id(source), (said,), (), False, 0)
        return found

    def run(
        self,
        source: str,
        handle: int,
        order: Sequence[int],
        *,
        mode: Mode = "batch",
        limits: Limits = Limits(),
        debug: Sequence[DebugRequest] = (),
    ) -> Outcome:
        """See `Sandbox`. In strict mode the limits hold for each of the two passes."""
        return self._run(source, handle, order, mode, limits, debug, self.layers, checks=True)

    def run_unchecked(
        self,
        source: str,
        handle: int,
        order: Sequence[int],
        *,
        mode: Mode = "batch",
        limits: Limits = Limits(),
        debug: Sequence[DebugRequest] = (),
        layers: Sequence[str] | None = None,
    ) -> Outcome:
        """Run what the static checks would refuse, under these layers only: for canaries and tests."""
        chosen = self.layers if layers is None else layers
        return self._run(source, handle, order, mode, limits, debug, chosen, checks=False)

    def _run(
        self,
        source: str,
        handle: int,
        order: Sequence[int],
        mode: Mode,
        limits: Limits,
        debug: Sequence[DebugRequest],
        layers: Sequence[str],
        *,
        checks: bool,
    ) -> Outcome:
        self._require_open()
        with self._lock:
            if handle not in self._packages:
                raise ValueError(f"handle {handle} is not there; expected one that `put` gave and nobody dropped")
            package = self._packages[handle]
        data = source.encode("utf-8", "surrogatepass")
        refused = too_long(len(data))
        if refused is not None:
            return Outcome("rejected", message=str(refused))
        positions = np.asarray(order, dtype=np.int64).reshape(-1)
        lengths = _lengths(package, positions, debug)
        second = self._second_order(len(positions)) if mode == "strict" else None
        states = int(lengths.sum())
        job = JobMemory(data, package.rows[positions], second, states, debug, limits.debug_chars)
        try:
            request = _request(mode, limits, layers)
            request |= {"handle": handle, "checks": checks, "source": len(data)}
            ended = self._ask(request, job, package)
            return job.outcome(ended, lengths, limits)
        finally:
            job.close()

    def close(self) -> None:
        """See `Sandbox`."""
        self._closed = True
        self._finalize()
        with self._lock:
            packages = list(self._packages.values())
            self._packages.clear()
        for package in packages:
            package.close()

    def __enter__(self) -> ZygotePool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any], job: JobMemory, package: Package | None = None) -> Ended:
        """Have some zygote do it; once more on a new one where it died.

        Raises:
            SandboxError: it died again.
        """
        within_s = 2 * request["wall_s"] + _MARGIN_S
        with self._lend() as zygote:
            for _ in range(_ATTEMPTS):
                try:
                    if package is not None and not zygote.holds(request["handle"]):
                        zygote.put(request["handle"], package)
                    answer = zygote.ask(request | {"worker": zygote.number}, (job.fd,), within_s)
                    return Ended(*answer["ended"])
                except wire.ClosedError:
                    self._require_open()
                    zygote.restart()
        raise SandboxError(
            "a sandbox worker died twice on the same program; expected it to outlive any program: "
            "see `grace-irl doctor`"
        )

    @contextmanager
    def _lend(self) -> Iterator[Zygote]:
        self._require_open()
        zygote = self._idle.get()
        try:
            self._settle(zygote)
            yield zygote
        finally:
            self._idle.put(zygote)
            if self._closed:  # meanwhile, and a new one may have been started since
                zygote.close()

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox is closed; expected `run` before `close`")

    def _settle(self, zygote: Zygote) -> None:
        """Tell a zygote what was dropped meanwhile."""
        with self._lock:
            handles = self._dropped.pop(zygote, set())
        try:
            for handle in handles:
                zygote.drop(handle)
        except wire.ClosedError:
            zygote.restart()

    def _second_order(self, count: int) -> NDArray[np.int64]:
        """A random permutation that leaves nothing in its place (Sattolo 1986), unknown to any program.

        An honest program gives the same rewards under each of them, so a run stays reproducible.
        """
        order = np.arange(count, dtype=np.int64)
        with self._lock:
            for last in range(count - 1, 0, -1):
                other = int(self._random.integers(last))
                order[last], order[other] = order[other], order[last]
        return order


def _close_all(zygotes: list[Zygote]) -> None:
    for zygote in zygotes:
        zygote.close()


def _request(op: str, limits: Limits, layers: Sequence[str]) -> dict[str, Any]:
    return {
        "op": op,
        "layers": list(layers),
        "wall_s": limits.wall_s,
        "cpu_s": limits.cpu_s,
        "memory_mb": limits.memory_mb,
    }


def _lengths(package: Package, positions: NDArray[np.int64], debug: Sequence[DebugRequest]) -> NDArray[np.int64]:
    """States of each position of a run; checks what the caller asks for."""
    count = len(package.lengths)
    if len(positions) and (positions.min() < 0 or positions.max() >= count):
        raise ValueError(f"order reaches to {positions.max()}; expected indices of the {count} trajectories put")
    lengths = package.lengths[positions]
    for request in debug:
        if not 0 <= request.position < len(positions) or not 0 <= request.step < lengths[request.position]:
            raise ValueError(f"{request} is not part of the run; expected a position and a step of it")
    return lengths
