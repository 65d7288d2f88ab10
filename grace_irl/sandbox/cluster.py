"""The sandbox of a Ray cluster. Programs run on the nodes of the cluster, in local sandboxes of each node."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError, InputError, SandboxError
from grace_irl.sandbox.packing import pack
from grace_irl.sandbox.protocol import DebugRequest, Inspection, Limits, Mode, Outcome, Sandbox
from grace_irl.version import __version__
from grace_irl.work.cluster import connected, require_version

ATTEMPTS = 60
"""Number of dead workers after which a run fails. If a node dies, all its workers die."""
PAUSE_S = 0.5
"""Pause in seconds before a run is repeated after its worker died. Ray restarts the worker meanwhile."""


class RaySandbox:
    """A `Sandbox` whose runs are spread over the nodes of a Ray cluster.

    By default, each core of a node has one worker with its own sandbox. Each trajectory goes into the cluster's object
    store once, and the nodes read it from shared memory. If a worker or a node dies, other workers repeat its runs.

    Args:
        workers: number of workers; None for one per core of the cluster.
        allow_weak: as for `open_sandbox`.
        address: address of the cluster (`work.cluster.connected`).

    Raises:
        InputError: fewer than one worker, no cluster, or a node with another version of grace-irl.
        SandboxError: a node cannot confine programs.
    """

    def __init__(self, workers: int | None = None, *, allow_weak: bool = False, address: str = "auto") -> None:
        if workers is not None and workers < 1:
            raise InputError(f"{workers} workers; expected at least 1")
        self._ray = connected(address)
        actor = self._ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=0)(SandboxWorker)
        places = _places(self._ray, workers)
        self._actors = [actor.options(scheduling_strategy=place).remote(allow_weak, __version__) for place in places]
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for each in self._actors:
            self._idle.put(each)
        self._lock = threading.Lock()
        self._handles = itertools.count(1)
        self._stored: dict[int, _Stored] = {}
        self._references: dict[str, Any] = {}  # references to trajectories in the object store, by digest
        self._closed = False
        try:
            self.tier = max(self._told([each.tier.remote() for each in self._actors]))
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> int:
        """See `Sandbox`."""
        return len(self._actors)

    @property
    def busy(self) -> int:
        """Number of workers that are running a program now."""
        return max(0, len(self._actors) - self._idle.qsize())

    def put(self, trajectories: Sequence[Trajectory]) -> int:
        """See `Sandbox`. Trajectories that are already in the cluster are not sent again."""
        pack(trajectories)  # raises an error for trajectories that no node could use
        with self._lock:
            for each in trajectories:
                if each.digest not in self._references:
                    self._references[each.digest] = self._ray.put(each)
            handle = next(self._handles)
            found = [self._references[each.digest] for each in trajectories]
            digests = frozenset(each.digest for each in trajectories)
            self._stored[handle] = _Stored(handle, self._ray.put(found), digests)
        return handle

    def drop(self, handle: int) -> None:
        """See `Sandbox`."""
        with self._lock:
            if self._stored.pop(handle, None) is None:
                return
            needed = frozenset().union(*(each.digests for each in self._stored.values()))
            self._references = {name: each for name, each in self._references.items() if name in needed}
        for actor in self._actors:
            actor.drop.remote(handle)

    def inspect(self, source: str) -> Inspection:
        """See `Sandbox`."""
        found: Inspection = self._asked(lambda actor: actor.inspect.remote(source))
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
        """See `Sandbox`."""
        given = {"mode": mode, "limits": limits, "debug": tuple(debug)}
        return self._called(handle, "run", (source, list(order)), given)

    def debug_sets(
        self,
        source: str,
        handle: int,
        experts: Sequence[tuple[int, int]],
        negatives: Sequence[tuple[int, int]],
        *,
        limits: Limits = Limits(),
    ) -> Outcome:
        """See `Sandbox`."""
        return self._called(handle, "debug_sets", (source, list(experts), list(negatives)), {"limits": limits})

    def close(self) -> None:
        """See `Sandbox`."""
        self._closed = True
        for actor in self._actors:
            with suppress(Exception):  # the cluster may be gone
                self._ray.kill(actor)
        self._actors = []
        self._stored.clear()
        self._references.clear()

    def __enter__(self) -> RaySandbox:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _called(self, handle: int, name: str, arguments: tuple[Any, ...], given: dict[str, Any]) -> Outcome:
        with self._lock:
            stored = self._stored.get(handle)
        self._require_open()
        if stored is None:
            raise ValueError(f"handle {handle} is unknown; expected a handle from `put` that was not dropped")
        data = (stored.handle, [stored.index])  # in a list, because Ray replaces a bare reference by its content
        found: Outcome = self._asked(lambda actor: actor.call.remote(name, data, arguments, given))
        return found

    def _asked(self, ask: Callable[[Any], Any]) -> Any:
        """Ask an idle worker, and return its answer. If the worker dies before it answers, ask another worker."""
        for _ in range(ATTEMPTS):
            self._require_open()
            with self._lent() as actor:
                try:
                    return self._told(ask(actor))
                except self._ray.exceptions.RayActorError:
                    self._require_open()
            time.sleep(PAUSE_S)
        raise SandboxError(
            f"{ATTEMPTS} workers of the cluster died over one run; expected nodes that stay: see ray status"
        )

    def _told(self, answer: Any) -> Any:
        """Wait for an answer, and return its value.

        Raises:
            Exception: the exception that the worker raised.
        """
        try:
            return self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, GraceError | ValueError):
                raise error.cause from None
            raise

    @contextmanager
    def _lent(self) -> Iterator[Any]:
        actor = self._idle.get()
        try:
            yield actor
        finally:
            self._idle.put(actor)

    def _require_open(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox is closed; expected `run` before `close`")


@dataclass(frozen=True)
class _Stored:
    """Trajectories in the cluster's object store.

    Attributes:
        handle: handle of the trajectories.
        index: reference to a list that holds one reference per trajectory.
        digests: digests of the trajectories.
    """

    handle: int
    index: Any
    digests: frozenset[str]


@dataclass
class SandboxWorker:
    """A worker on a node. It has a sandbox for one run at a time, and keeps the trajectories that it has loaded.

    Args:
        allow_weak: as for `open_sandbox`.
        version: version of grace-irl in the process that submits the runs.
    """

    allow_weak: bool
    version: str
    _handles: dict[int, int] = field(init=False, default_factory=dict)

    @cached_property
    def _sandbox(self) -> Sandbox:
        """The sandbox, opened at the first call, because Ray passes on errors of calls but not of `__init__`.

        Raises:
            InputError: this node has another version of grace-irl.
            SandboxError: this node cannot confine programs.
        """
        from grace_irl.sandbox.tiers import open_sandbox

        require_version(self.version)
        return open_sandbox(workers=1, allow_weak=self.allow_weak)

    def tier(self) -> str:
        """The tier of this node's sandbox (`Sandbox.tier`)."""
        return self._sandbox.tier

    def inspect(self, source: str) -> Inspection:
        """See `Sandbox`."""
        return self._sandbox.inspect(source)

    def call(
        self, name: str, data: tuple[int, list[Any]], arguments: tuple[Any, ...], given: dict[str, Any]
    ) -> Outcome:
        """Call a method of the sandbox on stored trajectories.

        The first call with a handle reads the trajectories from the object store.

        Args:
            name: "run" or "debug_sets".
            data: handle of the trajectories, and a list with one element, `_Stored.index`.
            arguments: the source, and the method's arguments after the handle.
            given: further arguments by name.
        """
        import ray

        handle, (index,) = data
        if handle not in self._handles:
            self._handles[handle] = self._sandbox.put(ray.get(ray.get(index)))
        source, *more = arguments
        found: Outcome = getattr(self._sandbox, name)(source, self._handles[handle], *more, **given)
        return found

    def drop(self, handle: int) -> None:
        """Forget the trajectories of a handle."""
        own = self._handles.pop(handle, None)
        if own is not None:
            self._sandbox.drop(own)


def _places(ray: Any, workers: int | None) -> list[Any]:
    """The node of each worker. The nodes take turns until each node has one worker per core.

    If a node dies, its workers start again on other nodes.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = sorted((each for each in ray.nodes() if each["Alive"]), key=lambda each: str(each["NodeID"]))
    free = [(each["NodeID"], int(each["Resources"].get("CPU", 0))) for each in nodes]
    turns = [
        name for turn in range(max((cores for _, cores in free), default=0)) for name, cores in free if turn < cores
    ]
    turns = turns or [name for name, _ in free]
    chosen = itertools.islice(itertools.cycle(turns), workers or len(turns))
    return [NodeAffinitySchedulingStrategy(each, soft=True) for each in chosen]
