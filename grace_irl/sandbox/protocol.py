"""The protocol of every sandbox: hold trajectories, look at a source without running it, run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.programs.program import Definition, Program

Mode = Literal["batch", "strict"]
Status = Literal[
    "ok",  # every reward is a finite number
    "rejected",  # static checks refused the source; nothing ran
    "syntax",  # the source does not compile
    "contract",  # no class Reward, or no reward_fn, or a signature that is not of the contract
    "init",  # Reward(extra_info) raised
    "runtime",  # reward_fn raised
    "type",  # reward_fn returned something that is not a number
    "nonfinite",  # NaN, infinity, or a value beyond Limits.max_abs
    "timeout",  # wall or CPU time used up; killed
    "memory",  # memory used up
    "killed",  # died by a signal, left with an exit code, or answered outside the protocol
    "mismatch",  # strict mode: the second permutation gave other rewards: it looks at more than the state
]


@dataclass(frozen=True)
class Limits:
    """Limits of one run.

    Attributes:
        wall_s: seconds of wall time for the whole run.
        cpu_s: seconds of CPU time for the whole run.
        memory_mb: address space beyond the zygote's own, MiB.
        max_abs: the largest reward (absolute value) that counts as finite.
        debug_chars: characters of one debug text; the rest is cut.
    """

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_mb: int = 512
    max_abs: float = 1e9
    debug_chars: int = 4000


@dataclass(frozen=True)
class Inspection:
    """Facts about a source that need no run of it.

    Attributes:
        id: hash of the normalised syntax tree (16 hex digits): comments, docstrings and layout do not count.
        problems: friendly messages of the static checks, each with its line; () for a source that may run.
        functions: every function and class, for the record of reuse.
        takes_action: reward_fn takes (state, action, next_state) rather than (state).
        nodes: size of the syntax tree, the measure of length among equals.
    """

    id: str
    problems: tuple[str, ...]
    functions: tuple[Definition, ...]
    takes_action: bool
    nodes: int

    def program(
        self, source: str, operator: str = "initialise", parents: tuple[str, ...] = (), prior: float = 0.0
    ) -> Program:
        """The program of the inspected source."""
        return Program(self.id, source, self.nodes, operator, parents, prior, self.functions, self.takes_action)


@dataclass(frozen=True)
class DebugRequest:
    """Request for debug_fn's text right after `reward_fn` saw a state.

    Attributes:
        position: which trajectory of the run, from 0.
        step: which of its states, from 0.
    """

    position: int
    step: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """Outcome of a run.

    Attributes:
        status: see `Status`.
        rewards: one `(T+1,)` array per trajectory, in the order of the call; () unless status is "ok". A
            program that takes actions rewards transitions: entry t+1 is r(s_t, a_t, s_{t+1}) and entry 0 is NaN.
        message: one line for a person; "" when ok.
        traceback: the program's own traceback, only its own lines, for a repair; "" if there is none.
        debug: one text per `DebugRequest`, in order, control characters stripped.
        cpu_s: CPU seconds of the child.
        wall_s: wall seconds of the run.
        peak_mb: peak resident memory of the child, MiB.
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
    """Runs programs that nobody trusts. Methods may be called from several threads at once."""

    @property
    def tier(self) -> str:
        """The tier that the canary attacks found: "A" … "E" (docs/sandbox.md)."""
        ...

    @property
    def workers(self) -> int:
        """Number of runs at once."""
        ...

    def put(self, trajectories: Sequence[Trajectory]) -> int:
        """Hand the trajectories over, once; returns the handle for `run`.

        Programs see them alike in type and precision, and with actions only if all have them (docs/sandbox.md).
        The arrays are referred to, not copied: expected to stay as they are until `drop`.
        """
        ...

    def drop(self, handle: int) -> None:
        """Forget what `put` handed over."""
        ...

    def inspect(self, source: str) -> Inspection:
        """Parse and check a source in a locked-down child; nothing of it is executed."""
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
        """Run the source over the trajectories `order` (indices into the `put` sequence), one Reward
        object for each.

        Raises:
            SandboxError: the sandbox itself failed. Whatever the program does is an `Outcome`.
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
        """Have the source's `debug(expert_states, negative_states)` compare two sets of states.

        The program knows which state is which, on purpose: its text goes into a prompt. Nothing of it reaches a
        reward: it runs in a child of its own, and text is all that comes back.

        Args:
            experts: (trajectory, step) of each state of the first set, indices into the `put` sequence.
            negatives: those of the second.

        Returns:
            An outcome without rewards. `debug` holds the text, at most `limits.debug_chars` long, without control
            characters; it is () if the source has no `debug`, or has nothing to say.

        Raises:
            SandboxError: the sandbox itself failed.
            ValueError: a state that is not there.
        """
        ...

    def close(self) -> None:
        """Stop every worker."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *exc: object) -> None: ...
