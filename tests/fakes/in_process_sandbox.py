"""A sandbox without walls: for tests of what stands on the protocol, and for trusted sources only."""

from __future__ import annotations

import ast
import hashlib
import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.programs.parsing import parse
from grace_irl.programs.program import identify
from grace_irl.sandbox.protocol import DebugRequest, Inspection, Limits, Mode, Outcome
from grace_irl.states import as_state


class InProcessSandbox:
    """Obeys `grace_irl.sandbox.protocol.Sandbox` and counts what it is asked."""

    def __init__(self, workers: int = 2) -> None:
        self.workers = workers
        self.tier = "none"
        self.runs: list[tuple[str, tuple[int, ...], Mode]] = []
        self.states_run = 0
        self.closed = False
        self._held: dict[int, list[Trajectory]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def put(self, trajectories: Sequence[Trajectory]) -> int:
        handle = next(self._numbers)
        self._held[handle] = list(trajectories)
        return handle

    def drop(self, handle: int) -> None:
        del self._held[handle]

    def inspect(self, source: str) -> Inspection:
        try:
            tree = parse(source)
            functions = identify(tree).functions
        except SyntaxError as error:
            digest = hashlib.sha256(source.encode()).hexdigest()[:16]
            return Inspection(digest, (f"line {error.lineno}: {error.msg}",), (), False, 0)
        size = sum(1 for _ in ast.walk(tree))
        digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:16]
        return Inspection(digest, (), functions, "next_state" in source, size)

    def debug_sets(
        self,
        source: str,
        handle: int,
        experts: Sequence[tuple[int, int]],
        negatives: Sequence[tuple[int, int]],
        *,
        limits: Limits = Limits(),
    ) -> Outcome:
        space: dict[str, Any] = {}
        exec(source, space)
        if not callable(space.get("debug")):
            return Outcome("ok")
        sets = [
            [as_state(self._held[handle][at].states[step]) for at, step in places] for places in (experts, negatives)
        ]
        return Outcome("ok", debug=(str(space["debug"](*sets))[: limits.debug_chars],))

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
        del debug
        trajectories = [self._held[handle][place] for place in order]
        with self._lock:
            self.runs.append((source, tuple(order), mode))
            self.states_run += sum(len(t.states) for t in trajectories)
        # One namespace for all trajectories of a batch run, so that a program can cheat by counting; strict
        # mode gives each trajectory its own.
        shared: dict[str, Any] = {}
        exec(source, shared)
        rewards = []
        for trajectory in trajectories:
            space = shared
            if mode == "strict":
                space = {}
                exec(source, space)
            try:
                rewards.append(_rewards(space, trajectory))
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
                return Outcome("runtime", message=said, traceback=f"Traceback …\n{said}")
            if not (np.isfinite(rewards[-1]) | _first(rewards[-1])).all() or abs(rewards[-1][-1]) > limits.max_abs:
                return Outcome("nonfinite", message="a reward is not finite")
        return Outcome("ok", tuple(rewards))

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> InProcessSandbox:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _first(values: np.ndarray) -> np.ndarray:
    return np.arange(len(values)) == 0


def _rewards(space: dict[str, Any], trajectory: Trajectory) -> np.ndarray:
    kind = space["Reward"]
    reward = kind() if kind.__init__ is object.__init__ else kind(trajectory.extra_info)
    states = [trajectory.state_kind.as_state(state) for state in trajectory.states]
    if "next_state" in reward.reward_fn.__code__.co_varnames:
        later = [reward.reward_fn(states[t], trajectory.actions[t], states[t + 1]) for t in range(trajectory.num_steps)]
        return np.array([np.nan, *later], dtype=np.float64)
    return np.array([reward.reward_fn(state) for state in states], dtype=np.float64)
