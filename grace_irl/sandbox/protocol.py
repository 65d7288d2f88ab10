"""The protocol `Sandbox`, and the types of its arguments and results. A sandbox runs untrusted reward programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.programs.program import Definition, Program

Mode = Literal["batch", "strict"]
"""Way to run a program. In "batch" mode, the program's process holds all trajectories of the run, or of a portion of a
large run. In "strict" mode, the process gets one state at a time. A second process scores the trajectories in another
order, and the rewards of the two processes must agree (see `sandbox/strict.py`)."""

Status = Literal[
    "ok",  # every reward is a finite number
    "rejected",  # static checks refused the source; nothing ran
    "syntax",  # the source does not compile
    "contract",  # no class Reward, no reward_fn, or a signature that violates the contract (docs/contract.md)
    "init",  # Reward(extra_info) raised
    "runtime",  # reward_fn raised
    "type",  # reward_fn returned something that is not a number
    "nonfinite",  # NaN, infinity, or a value beyond Limits.max_abs
    "timeout",  # killed because wall or CPU time was used up
    "memory",  # memory used up
    "killed",  # died by a signal, left with an exit code, or sent an invalid answer
    "mismatch",  # strict mode: another order of trajectories changed rewards
]


@dataclass(frozen=True)
class Limits:
    """Limits of one run. In strict mode, they hold for each of the two passes over the trajectories.

    Attributes:
        wall_s: seconds of wall time for the whole run.
        cpu_s: seconds of CPU time for the whole run.
        memory_mb: address space of the program's process in MiB, in addition to the address space of the zygote (the
            process that forks a child for each program).
        max_abs: largest accepted absolute value of a reward.
        debug_chars: maximum length of a debug text in characters; the rest is cut.
    """

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_mb: int = 512
    max_abs: float = 1e9
    debug_chars: int = 4000


@dataclass(frozen=True)
class Inspection:
    """Facts about a source, found without running it.

    Attributes:
        id: hash of the normalised syntax tree (16 hex digits), independent of comments, docstrings and layout.
        problems: messages of the static checks, each with a line number, if known; () for a source that may run.
        functions: definitions of all functions and classes. A search compares their digests to find functions that
            several programs share.
        takes_action: whether reward_fn takes (state, action, next_state) instead of (state).
        size: description length in bits (`Program.size`).
    """

    id: str
    problems: tuple[str, ...]
    functions: tuple[Definition, ...]
    takes_action: bool
    size: int

    def program(
        self, source: str, operator: str = "initialise", parents: tuple[str, ...] = (), prior: float = 0.0
    ) -> Program:
        """Make a `Program` from the inspected source. The arguments are attributes of `Program`."""
        return Program(self.id, source, self.size, operator, parents, prior, self.functions, self.takes_action)


@dataclass(frozen=True)
class DebugRequest:
    """A request for a text about one state. The program's debug_fn returns the text.

    The sandbox calls debug_fn right after reward_fn has scored that state.

    Attributes:
        position: index of the trajectory in the order of the run, from 0.
        step: index of the state in the trajectory, from 0.
    """

    position: int
    step: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome of a run of a program.

    Attributes:
        status: "ok", or the kind of failure (see `Status`).
        rewards: one `(T+1,)` array per trajectory, in the order of the run; () unless the status is "ok". For a
            program that takes actions, entry t+1 is the reward r(s_t, a_t, s_{t+1}), and entry 0 is NaN.
        message: one line for the user; "" if the status is "ok".
        traceback: the program's own lines of the traceback, for a model that repairs the program; "" if there are none.
        debug: one text per `DebugRequest`, in order, without control characters.
        cpu_s: CPU seconds that the child processes of the run used.
        wall_s: wall seconds of the run.
        peak_mb: largest peak of resident memory among these child processes, MiB.
    """

    status: Status
    rewards: tuple[NDArray[np.float64], ...] = ()
    message: str = ""
    traceback: str = ""
    debug: tuple[str, ...] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_mb: float = 0.0


class Sandbox(Protocol):
    """A place to run untrusted programs. Its methods are thread-safe."""

    @property
    def tier(self) -> str:
        """The strength of the sandbox, from "A" (strongest) to "E", according to harmless attacks (docs/sandbox.md)."""
        ...

    @property
    def workers(self) -> int:
        """Maximum number of runs in parallel."""
        ...

    def put(self, trajectories: Sequence[Trajectory]) -> int:
        """Store trajectories, and return their handle for `run`.

        Programs get the states of all trajectories in one type and precision. Programs get actions only if all
        trajectories have actions (docs/sandbox.md). The arrays are not copied, so they must not change until `drop`.

        Raises:
            InputError: states of different kinds or with different parts, or texts that are not UTF-8.
        """
        ...

    def drop(self, handle: int) -> None:
        """Remove the trajectories of a handle."""
        ...

    def inspect(self, source: str) -> Inspection:
        """Parse and check a source in a locked-down child, without executing it."""
        ...

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
        """Run a program on stored trajectories, with one `Reward` object for each.

        Args:
            source: text of the program.
            handle: handle of the trajectories, from `put`.
            order: index of each trajectory to score, in the order of the run. The indices refer to the sequence that
                was given to `put`.
            mode: see `Mode`.
            limits: limits of the run.
            debug: requests for debug texts.

        Raises:
            SandboxError: the sandbox itself failed. Failures of the program are `Outcome`s.
            ValueError: an unknown handle, or an order or debug request with an index that does not exist.
        """
        ...

    def debug_sets(
        self,
        source: str,
        handle: int,
        experts: Sequence[tuple[int, int]],
        negatives: Sequence[tuple[int, int]],
        *,
        limits: Limits = Limits(),
    ) -> Outcome:
        """Compare two sets of states by a program's function `debug(expert_states, negative_states)`.

        The program may know the label of each state, because `debug` only writes text for a prompt. The labels cannot
        reach a reward: the call runs in a child process of its own, which returns only the text.

        Args:
            source: text of the program.
            handle: handle of the trajectories, from `put`.
            experts: (trajectory, step) of each expert state. The trajectory is an index into the sequence of `put`.
            negatives: (trajectory, step) of each negative state.
            limits: limits of the call.

        Returns:
            An outcome without rewards. Its attribute `debug` holds one text, of at most `limits.debug_chars`
            characters. The attribute is () if the source has no function `debug`, or if the text is empty.

        Raises:
            SandboxError: the sandbox itself failed.
            ValueError: an unknown handle, or a state that does not exist.
        """
        ...

    def close(self) -> None:
        """End all processes of the sandbox."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *exc: object) -> None: ...
