"""`ZygotePool`, the implementation of `Sandbox` for one machine: a pool of zygotes, by default one per core.

A zygote is a process that forks a locked-down child for each program. A run borrows one zygote from the pool.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import InputError, SandboxError
from grace_irl.programs.check import too_long
from grace_irl.programs.program import text_id
from grace_irl.sandbox import kernel, memory, wire
from grace_irl.sandbox.ending import Ended
from grace_irl.sandbox.host import ZygoteHandle
from grace_irl.sandbox.job import JobMemory, RunTally, inspection
from grace_irl.sandbox.lockdown import LAYERS
from grace_irl.sandbox.packing import Package, pack
from grace_irl.sandbox.protocol import DebugRequest, Inspection, Limits, Mode, Outcome

_ATTEMPTS = 2
_MARGIN_S = 30.0  # time that a zygote may take for a reply, in addition to the time limits of its children
_INSPECTION = Limits(wall_s=5.0, cpu_s=5.0, memory_mb=512)


class ZygotePool:
    """A `Sandbox` that runs programs in locked-down processes, which its zygotes fork.

    Args:
        workers: number of zygotes; None for one per core that this process may use.
        tier: strength of the sandbox, from "A" to "E" (see `open_sandbox`).
        layers: layers of protection that each child applies, from `LAYERS`.
        wrap: command that runs each zygote, such as bubblewrap with its options; () for none.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        tier: str = "A",
        layers: Sequence[str] = LAYERS,
        wrap: Sequence[str] = (),
    ) -> None:
        self._workers = cores() if workers is None else workers
        if self._workers < 1:
            raise InputError(f"{workers} workers; expected at least 1")
        # Even a program that escapes from its child must not read the memory of this process.
        kernel.set_dumpable(False)
        self.tier, self.layers, self._wrap = tier, tuple(layers), tuple(wrap)
        self._handles = itertools.count(1)
        self._packages: dict[int, Package] = {}
        self._lock = threading.Lock()
        self._random = np.random.default_rng()  # seeded by the kernel, so that no program can predict the numbers
        self._zygotes: list[ZygoteHandle] = []
        self._idle: queue.LifoQueue[ZygoteHandle] = queue.LifoQueue()
        self._closed = False
        self._finalize = weakref.finalize(self, _close_all, self._zygotes)
        for number in range(self._workers):
            zygote = ZygoteHandle(number, wrap)
            self._zygotes.append(zygote)
            self._idle.put(zygote)

    @property
    def workers(self) -> int:
        """Maximum number of runs in parallel."""
        return self._workers

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the zygotes, or of the commands that run them, for measurements."""
        return tuple(zygote.pid for zygote in self._zygotes)

    def put(self, trajectories: Sequence[Trajectory]) -> int:
        """See `Sandbox`.

        The trajectories stay in this process. A sandbox child gets copies of the trajectories that its run needs.
        """
        package = pack(trajectories)
        with self._lock:
            handle = next(self._handles)
            self._packages[handle] = package
        return handle

    def drop(self, handle: int) -> None:
        """See `Sandbox`."""
        with self._lock:
            self._packages.pop(handle, None)

    def inspect(self, source: str) -> Inspection:
        """See `Sandbox`."""
        data = source.encode("utf-8", "surrogatepass")
        refused = too_long(len(data))
        if refused is not None:
            return Inspection(text_id(source), (str(refused),), (), False, 0)
        with closing(JobMemory(data, message=wire.INSPECTION_BYTES)) as job:
            request = {"op": "inspect", "layers": list(self.layers)}
            ended = self._ask(request | _bounds(_INSPECTION), job.fd)
            verdict = ended.verdict(_INSPECTION.cpu_s)
            status, message, _, _ = job.answer() if verdict is None else (*verdict, "", False)
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
        checks: bool = True,
        layers: Sequence[str] | None = None,
    ) -> Outcome:
        """See `Sandbox`. Strict mode scores all trajectories twice. The limits hold for each of the two passes.

        Args:
            checks: whether the static checks may refuse the source. For canaries (harmless attacks, see `tiers.py`),
                this argument is False, so that only the layers of protection can stop the attack.
            layers: layers of protection that the child applies; None for the layers of the pool.
        """
        package = self._package(handle)
        data = source.encode("utf-8", "surrogatepass")
        refused = too_long(len(data))
        if refused is not None:
            return Outcome("rejected", message=str(refused))
        chosen = list(self.layers if layers is None else layers)
        request = {"op": mode, "checks": checks, "source": len(data), "layers": chosen}
        positions = np.asarray(order, dtype=np.int64).reshape(-1)
        tally = RunTally(_lengths(package, positions, debug), limits, debug, passes=2 if mode == "strict" else 1)
        for part in package.portions(positions):
            if tally.goes_on:
                tally.add(part, self._portion(data, package, positions[part], tally, part, request))
        return tally.outcome()

    def debug_sets(
        self,
        source: str,
        handle: int,
        experts: Sequence[tuple[int, int]],
        negatives: Sequence[tuple[int, int]],
        *,
        limits: Limits = Limits(),
        checks: bool = True,
    ) -> Outcome:
        """See `Sandbox`. The argument `checks` is that of `run`."""
        package = self._package(handle)
        data = source.encode("utf-8", "surrogatepass")
        refused = too_long(len(data))
        if refused is not None:
            return Outcome("rejected", message=str(refused))
        request = {"op": "debug", "checks": checks, "experts": len(experts), "layers": list(self.layers)}
        made = JobMemory(data, debug=[DebugRequest(0, 0)], debug_chars=limits.debug_chars)
        with closing(made) as job, _held(package.single_states([*experts, *negatives])) as parcel:
            ended = self._ask(request | _bounds(limits), job.fd, parcel)
            outcome = job.outcome(ended, np.zeros(0, dtype=np.int64), limits)
        return replace(outcome, debug=tuple(text for text in outcome.debug if text))

    def _portion(
        self,
        source: bytes,
        package: Package,
        positions: NDArray[np.int64],
        tally: RunTally,
        part: slice,
        request: dict[str, Any],
    ) -> Outcome:
        """Score one portion (a slice of the trajectories of a run) in one child.

        Args:
            source: the program in UTF-8.
            package: the trajectories that the run's handle refers to.
            positions: indices of the portion's trajectories in `package`.
            tally: outcome of the earlier portions, with the limits that remain.
            part: range of the portion in the order of the run.
            request: request for the zygote, without the limits.
        """
        limits, lengths, debug = tally.left, tally.lengths[part], tally.requests(part)
        second = self._second_order(len(positions)) if request["op"] == "strict" else None
        states = int(lengths.sum())
        made = JobMemory(source, len(positions), second, states, debug, limits.debug_chars, first=part.start)
        with closing(made) as job, _held(package.parcel(positions)) as parcel:
            return job.outcome(self._ask(request | _bounds(limits), job.fd, parcel), lengths, limits)

    def _package(self, handle: int) -> Package:
        self._require_open()
        with self._lock:
            if handle not in self._packages:
                raise ValueError(f"handle {handle} is unknown; expected a handle from `put` that was not dropped")
            return self._packages[handle]

    def lone_zygote(self) -> ZygoteHandle:
        """A handle of a zygote outside the pool. The caller must close the handle."""
        return ZygoteHandle(0, self._wrap)

    def close(self) -> None:
        """See `Sandbox`. An idle zygote may stay for the next pool or session of this process (`host.MOST_SPARE`)."""
        self._closed = True
        self._finalize()
        with self._lock:
            self._packages.clear()

    def __enter__(self) -> ZygotePool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any], *fds: int) -> Ended:
        """Send a request to an idle zygote, and return how the child ended.

        If the zygote dies, it is restarted, and gets the request once more.

        Raises:
            SandboxError: the restarted zygote died, too.
        """
        within_s = 2 * request["wall_s"] + _MARGIN_S
        with self._lend() as zygote:
            for _ in range(_ATTEMPTS):
                try:
                    return Ended(*zygote.ask(request | {"worker": zygote.number}, fds, within_s)["ended"])
                except wire.ClosedError:
                    self._require_open()
                    zygote.restart()
        raise SandboxError(
            "a sandbox worker died twice on the same program; expected it to outlive any program: "
            "see `grace-irl doctor`"
        )

    @contextmanager
    def _lend(self) -> Iterator[ZygoteHandle]:
        self._require_open()
        zygote = self._idle.get()
        try:
            yield zygote
        finally:
            self._idle.put(zygote)
            if self._closed:  # `close` ran during the block, and `_ask` may have restarted the zygote since
                zygote.close()

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox is closed; expected `run` before `close`")

    def _second_order(self, count: int) -> NDArray[np.int64]:
        """A random order of the trajectories for strict mode's second pass. No program can predict this order.

        The order is a permutation with a single cycle. So no trajectory keeps its position, unless there is only one.

        Runs stay reproducible, because a program whose rewards depend on this order is invalid.
        """
        with self._lock:
            cycle = self._random.permutation(count)
        order = np.empty(count, dtype=np.int64)
        order[cycle] = np.roll(cycle, 1)
        return order


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _held(fd: int) -> Iterator[int]:
    """Context that closes a file descriptor after its block."""
    try:
        yield fd
    finally:
        memory.close(fd)


def _close_all(zygotes: list[ZygoteHandle]) -> None:
    for zygote in zygotes:
        zygote.close()


def _bounds(limits: Limits) -> dict[str, Any]:
    return {"wall_s": limits.wall_s, "cpu_s": limits.cpu_s, "memory_mb": limits.memory_mb}


def _lengths(package: Package, positions: NDArray[np.int64], debug: Sequence[DebugRequest]) -> NDArray[np.int64]:
    """Check the positions and debug requests of a run, and return the number of states of each trajectory."""
    count = len(package.lengths)
    invalid = positions[(positions < 0) | (positions >= count)]
    if len(invalid):
        raise ValueError(f"order contains index {invalid[0]}; expected indices of at least 0 and below {count}")
    lengths = package.lengths[positions]
    for request in debug:
        if not 0 <= request.position < len(positions) or not 0 <= request.step < lengths[request.position]:
            raise ValueError(f"{request} is not part of the run; expected a position and a step within the run")
    return lengths
