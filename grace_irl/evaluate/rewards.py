"""Rewards of programs over trajectories, from the sandbox or a cache.

The labels of states (positive or negative) stay outside the sandbox, so no program can read them.
"""

from __future__ import annotations

import secrets
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.programs.program import Program
from grace_irl.sandbox.protocol import Limits, Mode, Outcome, Sandbox


class RewardCache(Protocol):
    """A store of rewards by program id and trajectory digest. Several threads may call its methods."""

    def get(self, program_id: str, digests: Iterable[str]) -> dict[str, Floats]:
        """Known rewards by digest, `(T+1,)` each. Digests without known rewards are missing."""
        ...

    def put(self, program_id: str, rewards: Mapping[str, Floats]) -> None:
        """Store rewards by digest."""
        ...


class MemoryCache:
    """A cache of rewards in memory."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Floats] = {}
        self._lock = threading.Lock()

    def get(self, program_id: str, digests: Iterable[str]) -> dict[str, Floats]:
        """See `RewardCache`."""
        with self._lock:
            found = {digest: self._known.get((program_id, digest)) for digest in digests}
        return {digest: values for digest, values in found.items() if values is not None}

    def put(self, program_id: str, rewards: Mapping[str, Floats]) -> None:
        """See `RewardCache`."""
        with self._lock:
            self._known.update({(program_id, digest): values for digest, values in rewards.items()})


def pack(values: Floats) -> bytes:
    """Compress rewards without loss, NaN included. Many rewards of a trajectory are equal, so deflate works well."""
    return zlib.compress(np.ascontiguousarray(values, dtype="<f8").tobytes(), 1)


def unpack(blob: bytes, states: int) -> Floats:
    """Decompress rewards.

    Args:
        blob: a result of `pack`.
        states: expected number of values. Decompression stops at the first surplus byte.

    Raises:
        ValueError: the blob holds another number of values.
        zlib.error: the bytes are not a blob.
    """
    inflate = zlib.decompressobj()
    data = inflate.decompress(blob, 8 * states + 1)
    if len(data) != 8 * states or not inflate.eof:
        raise ValueError(f"a blob of rewards holds other than {states} values")
    return np.frombuffer(data, dtype="<f8").astype(np.float64)


Floats = NDArray[np.float64]

CPU_PER_STATE = 1e-3  # seconds added to the CPU limit per state: about fifty times the need of a realistic reward
CPU_PER_SCREEN_BYTE = 2.5e-7
"""Seconds added to the CPU limit per byte of a screen: about ten times the need of a program that parses
the screen and searches it once or twice."""

WALL_PER_STATE: dict[Mode, float] = {"batch": 5e-3, "strict": 25e-3}
"""Seconds added to the wall limit per state. The values are large, so that no program times out on a busy machine, such
as a machine that also serves a language model. Strict mode needs more time: it sends each state to the program and
waits for the reward."""


WALL_PER_PARSING = 5
"""Seconds by which the wall limit grows for each second that `CPU_PER_SCREEN_BYTE` adds to the CPU limit."""


class RewardSource:
    """Rewards of programs over one set of trajectories.

    The sandbox gets equal trajectories only once. Each run scores trajectories in a new random order. The operating
    system seeds this order, so programs cannot predict the order. If rewards of a program depend on the order, a second
    run usually gives different rewards (`differs_in_strict_mode`).
    """

    def __init__(
        self, trajectories: Sequence[Trajectory], sandbox: Sandbox, cache: RewardCache, limits: Limits
    ) -> None:
        self._by_digest = {trajectory.digest: trajectory for trajectory in trajectories}
        self._place = {digest: place for place, digest in enumerate(self._by_digest)}
        self._sandbox = sandbox
        self._cache = cache
        self._limits = limits
        self._rng = np.random.default_rng(secrets.randbits(128))
        self._lock = threading.Lock()
        self._handle = sandbox.put(list(self._by_digest.values())) if self._by_digest else -1

    @property
    def digests(self) -> tuple[str, ...]:
        """Digests of the trajectories in order, without repetition."""
        return tuple(self._by_digest)

    def states(self, digests: Sequence[str]) -> int:
        """Number of states of these trajectories."""
        return sum(len(self._by_digest[digest].states) for digest in digests)

    def _parsed_bytes(self, digests: Sequence[str]) -> int:
        """Total size in bytes of those states of the trajectories that programs must parse, such as screens.

        The states of a trajectory are padded to equal length. The size includes the padding.
        """
        trajectories = (self._by_digest[digest] for digest in digests)
        return sum(each.state_kind.nbytes(each.states) for each in trajectories if each.state_kind.parsed)

    def known(self, program: Program) -> dict[str, Floats]:
        """The cached rewards of this program, by digest."""
        return self._cache.get(program.id, self._by_digest)

    def run(self, program: Program, digests: Sequence[str], mode: Mode = "batch") -> tuple[Outcome, dict[str, Floats]]:
        """Run the program over these trajectories. Return the outcome and, if it is ok, rewards by digest.

        Rewards of batch mode enter the cache.
        """
        with self._lock:
            shuffled = [digests[i] for i in self._rng.permutation(len(digests))]
        states = self.states(digests)
        parsing_s = CPU_PER_SCREEN_BYTE * self._parsed_bytes(digests)
        cpu_s = CPU_PER_STATE * states + parsing_s
        limits = replace(
            self._limits,
            wall_s=self._limits.wall_s + WALL_PER_STATE[mode] * states + WALL_PER_PARSING * parsing_s,
            cpu_s=self._limits.cpu_s + cpu_s,
        )
        order = [self._place[digest] for digest in shuffled]
        outcome = self._sandbox.run(program.source, self._handle, order, mode=mode, limits=limits)
        if outcome.status == "timeout":  # add the limit, for the model that repairs the program
            allowed = (
                f"{limits.cpu_s:.0f} s of CPU, and {limits.wall_s:.0f} s in all, are allowed for {states} states; each "
                f"additional state adds {cpu_s / states:.2g} s of CPU"
            )
            return replace(outcome, message=f"{outcome.message}; {allowed}"), {}
        if outcome.status != "ok":
            return outcome, {}
        rewards = dict(zip(shuffled, outcome.rewards, strict=True))
        if not program.takes_action and any(np.isnan(values[:1]).any() for values in outcome.rewards):
            # Only rewards of transitions begin with NaN. A program with rewards of states gets here only if it tampered
            # with the child process.
            return replace(outcome, status="nonfinite", rewards=(), message="no reward for a first state"), {}
        if mode == "batch":
            self._cache.put(program.id, rewards)
        return outcome, rewards

    def complete(
        self, program: Program, digests: Sequence[str], known: Mapping[str, Floats]
    ) -> tuple[Outcome, dict[str, Floats]]:
        """Run the program over the trajectories whose rewards are missing in `known`.

        Return the outcome of the run, and all rewards by digest, known ones and new ones.
        """
        missing = [digest for digest in digests if digest not in known]
        outcome, fresh = self.run(program, missing) if missing else (Outcome("ok"), {})
        return outcome, {**known, **fresh}

    def differs_in_strict_mode(self, program: Program, digests: Sequence[str], known: dict[str, Floats]) -> Outcome:
        """Run the program in strict mode. The status is "mismatch" if a reward differs from batch mode.

        Args:
            program: the program.
            digests: the trajectories to run.
            known: rewards of batch mode by digest, for all these trajectories.
        """
        outcome, strict = self.run(program, digests, "strict")
        if outcome.status == "ok":
            for digest, values in strict.items():
                if not np.array_equal(values, known[digest], equal_nan=True):
                    message = "rewards differ between two runs: the program looks at more than the states so far"
                    return replace(outcome, status="mismatch", rewards=(), message=message)
        return outcome

    def close(self) -> None:
        """Remove the trajectories from the sandbox."""
        if self._handle >= 0:
            self._sandbox.drop(self._handle)
