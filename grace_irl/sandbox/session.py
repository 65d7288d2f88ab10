"""Sessions. In a session, a reward program computes rewards while episodes run, for example to train a policy.

The program runs in a locked-down process of its own, as long as the session lasts. In each turn, the host (the user's
process, where this module runs) sends the steps of several episodes, and the program's process answers with the
rewards. The host may send many turns before it reads the answers (`RewardSession.post`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import GraceError, InputError
from grace_irl.programs.contract import ACTION_DTYPE
from grace_irl.sandbox import memory, wire
from grace_irl.sandbox.candidate import TERM_NAME, TERMS
from grace_irl.sandbox.ending import Ended
from grace_irl.sandbox.host import ZygoteHandle
from grace_irl.sandbox.job import stripped
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import Limits
from grace_irl.sandbox.session_child import NO_ACTION, OPEN, REPLY, REWARD, SLOT, TURN
from grace_irl.sandbox.tiers import open_sandbox
from grace_irl.states.layout import StateLayout

_ENDLESS_S = 2e6
"""Time limit of a whole session in seconds: 23 days, just below the longest wait that the kernel accepts. In practice,
the limit of one turn (`SessionLimits.turn_s`) ends a program that takes too long."""

_START_S, _END_S = 60.0, 10.0  # time limits of a session's start, and of the zygote's report about its end
FORGED = "answered outside the protocol"
_MOST_BYTES = 16 << 20
"""Maximum size in bytes of one answer of the program's process. The limit is large, because an answer may hold the
components of many rewards."""

_POSTED_BYTES = 16 << 10
"""Number of bytes of turns that `RewardSession.post` collects before it sends them. A larger number costs less
time for messages, but leaves the program's process idle for longer."""

_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class SessionLimits:
    """Limits of a program in a session.

    Attributes:
        turn_s: wall time in seconds for one turn, which rewards the steps of all episodes together.
        memory_mb: address space in MiB, beyond that of the zygote (the process that forks the program's process).
        max_abs: largest accepted absolute value of a reward or of a component of a reward.
    """

    turn_s: float = 10.0
    memory_mb: int = 512
    max_abs: float = 1e9

    @classmethod
    def of(cls, limits: Limits) -> SessionLimits:
        """The limits of a session, from those of one run. A turn may take as long as a run of one state."""
        return cls(limits.wall_s, limits.memory_mb, limits.max_abs)


class Begin(NamedTuple):
    """The start of an episode.

    Attributes:
        slot: number that identifies the episode among the running episodes.
        state: first state.
        instruction: text for the program's `Reward(extra_info)`.
    """

    slot: int
    state: Any
    instruction: str


class TurnRewards(NamedTuple):
    """Result of a turn of n steps.

    Attributes:
        rewards: one reward per step, `(n,)` float64.
        terms: the components of each reward by name, from the program's terms_fn; () if the session does not ask for
            components.
    """

    rewards: NDArray[np.float64]
    terms: tuple[dict[str, float], ...] = ()

    def problem(self, max_abs: float) -> str:
        """A message about the first reward or component that is NaN or larger in size than `max_abs`; else ""."""
        found = [f"reward {value:g}" for value in self.rewards[~(np.abs(self.rewards) <= max_abs)]]
        found += [
            f"terms_fn: {name!r} is {value:g}"
            for each in self.terms
            for name, value in each.items()
            if not abs(value) <= max_abs
        ]
        return f"{found[0]}; expected a finite number of at most {max_abs:g} in size" if found else ""


class RewardSession:
    """A program in the sandbox that rewards the steps of several episodes.

    A turn has at most one step of each episode. The method `turn` sends a turn and waits for the rewards. The method
    `post` does not wait: the program computes the rewards while the caller goes on, and `settle` returns them.

    Args:
        source: text of the program.
        name: name of the program in messages.
        layout: byte layout of the states.
        terms: whether each turn also returns the components of the rewards, from the program's terms_fn.
        limits: limits of the program.
        allow_weak: whether a temporary sandbox may have tier E (see `open_sandbox`).
        pool: an open sandbox, which starts the session's process; None to open a temporary sandbox.
        checks: whether the static checks may refuse the program. Only tests of the other protections set it to False.

    Raises:
        GraceError: the program is invalid.
        SandboxError: the machine has no sandbox, or the sandbox does not start.
    """

    def __init__(
        self,
        source: str,
        name: str,
        layout: StateLayout,
        *,
        terms: bool = False,
        limits: SessionLimits = SessionLimits(),
        allow_weak: bool = False,
        pool: ZygotePool | None = None,
        checks: bool = True,
    ) -> None:
        self._name, self._limits, self._terms = name, limits, terms
        self._layout = layout
        with contextlib.ExitStack() as stack:
            opened = pool or stack.enter_context(open_sandbox(workers=1, allow_weak=allow_weak))
        # A temporary pool is closed now. `lone_zygote` takes the zygote that the pool has left.
        layers, self._zygote = list(opened.layers), opened.lone_zygote()
        theirs, self._to = os.pipe()
        self._from, answers = os.pipe()
        self._finalize = weakref.finalize(self, _end, self._zygote, self._to, self._from)
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        request = {"op": "session", "layers": layers, "checks": checks, "memory_mb": limits.memory_mb}
        try:
            self._zygote.post(request | {"wall_s": _ENDLESS_S, "cpu_s": _ENDLESS_S}, (theirs, answers))
        except BaseException:
            self.close()
            raise
        finally:
            memory.close(theirs, answers)
        self._out: list[bytes] = []  # turns that are posted, but not sent
        self._asked: deque[int] = deque()  # number of steps of each turn without an answer
        self._received = bytearray()
        self._answers: list[TurnRewards] = []
        said = {"source": source, "layout": layout.to_json(), "terms": terms}
        data = json.dumps(said).encode()
        start_s = max(_START_S, limits.turn_s)
        self._send(OPEN.pack(len(data)) + data, start_s)
        self.takes_action = self._reply(start_s) == b"1"

    @property
    def pid(self) -> int:
        """Process id of the zygote, the parent of the program's process, for measurements."""
        return self._zygote.pid

    def turn(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[Any] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> TurnRewards:
        """Reward the steps of running episodes, then start new episodes. Wait for the rewards.

        Args:
            slots: slots of the n episodes that take a step, `(n,)`. A slot identifies a running episode (`Begin`).
            actions: actions `(n, ...)`; ignored if the program takes no actions.
            states: the n states that the steps lead to.
            begins: episodes to start after the steps.

        Raises:
            GraceError: the program failed, or returned something that is not a finite number. The session is closed.
            InputError: see `post`.
            ValueError: posted turns are not settled.
        """
        self._require_open()
        if self._asked or self._answers:
            raise ValueError(
                f"a turn after {len(self._asked) + len(self._answers)} posted ones; expected settle() first"
            )
        self.post(slots, actions, states, begins)
        return self.settle()[0]

    def post(
        self,
        slots: Sequence[int],
        actions: NDArray[Any] | None,
        states: Sequence[Any] | NDArray[Any],
        begins: Sequence[Begin] = (),
    ) -> None:
        """Send a turn without waiting for its rewards, which `settle` returns. The arguments are those of `turn`.

        The program's process may hold the states of several posted turns at a time, as in batch mode.

        Raises:
            GraceError: the program failed in an earlier turn. The session is closed.
            InputError: the program takes actions, and `actions` is not a number or a vector for each step. The session
                stays open.
        """
        self._require_open()
        shape, acted = NO_ACTION, b""
        if self.takes_action and len(slots):
            given: NDArray[Any] = np.zeros(()) if actions is None else np.asarray(actions)
            numbers = given.dtype.kind in "biuf"
            if not numbers or given.ndim not in (1, 2) or len(given) != len(slots):
                found = f"an array of shape {given.shape}" if numbers else "parts that are no array"
                found = "none" if actions is None else found
                raise InputError(f"{self._name}: actions: {found}; expected a number or a vector for each step")
            shape = 0 if given.ndim == 1 else given.shape[1]
            acted = np.ascontiguousarray(given, ACTION_DTYPE).tobytes()
        texts = json.dumps([begin.instruction for begin in begins]).encode() if begins else b""
        parts = (
            TURN.pack(len(slots), len(begins), len(texts), shape),
            np.array(slots, SLOT).tobytes(),
            acted,
            *map(self._layout.encoded, states),
            np.array([begin.slot for begin in begins], SLOT).tobytes(),
            *(self._layout.encoded(begin.state) for begin in begins),
            texts,
        )
        if not self._asked:
            self._require_silence()
        self._out.append(b"".join(parts))
        self._asked.append(len(slots))
        if sum(map(len, self._out)) >= _POSTED_BYTES:
            self._flush()

    def settle(self) -> list[TurnRewards]:
        """The rewards of all turns that were posted since the last call, in order.

        Raises:
            GraceError: the program failed, or returned something that is not a finite number. The session is closed.
        """
        self._require_open()
        self._flush()
        while self._asked:
            self._answers.append(self._rewards(self._reply(self._limits.turn_s)))
        found, self._answers = self._answers, []
        return found

    def close(self) -> None:
        """End the program's process. Repeated calls are harmless."""
        self._finalize()

    def __enter__(self) -> RewardSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _named(self, data: bytes, count: int) -> tuple[dict[str, float], ...]:
        """Read the components of `count` rewards from the untrusted JSON that the program's process sent."""
        try:
            found = json.loads(data)
            if len(found) != count or any(len(each) > TERMS for each in found):
                raise ValueError
            if any(type(value) not in (float, int) for each in found for value in each.values()):
                raise ValueError
            return tuple({stripped(name)[:TERM_NAME]: float(each[name]) for name in each} for each in found)
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            raise self._over("killed", FORGED) from None

    def _rewards(self, data: bytes) -> TurnRewards:
        """The rewards in the bytes of an answer. Answers have the order of their turns."""
        steps = self._asked.popleft()
        size = steps * REWARD.itemsize
        if len(data) < size or (len(data) > size and not self._terms):
            raise self._over("killed", FORGED)
        rewards = np.frombuffer(data[:size], REWARD).copy()
        answer = TurnRewards(rewards, self._named(data[size:], steps) if self._terms else ())
        problem = answer.problem(self._limits.max_abs)
        if problem:
            raise self._over("nonfinite", problem)
        return answer

    def _require_open(self) -> None:
        if not self._finalize.alive:
            raise GraceError(
                f"{self._name}: the sandbox session is closed; it accepts no step after a failure or close()"
            )

    def _require_silence(self) -> None:
        """End the session if the program's process sent something although no turn waits for an answer."""
        with contextlib.suppress(BlockingIOError):
            if self._received or os.read(self._from, 1):
                raise self._over("killed", FORGED)

    def _flush(self) -> None:
        """Send the posted turns, and read the answers that have come."""
        data, self._out = b"".join(self._out), []
        self._send(data, self._limits.turn_s)
        while self._asked and (payload := self._parsed()) is not None:
            self._answers.append(self._rewards(payload))
        if len(self._received) > _MOST_BYTES + REPLY.size:
            raise self._over("killed", FORGED)

    def _send(self, data: bytes, within_s: float) -> None:
        """Write to the program's process, and read the answers that come meanwhile.

        If the host only wrote, the two processes could wait for each other, because a pipe holds little data.

        Args:
            data: bytes to write.
            within_s: time limit in seconds for the process to read or answer something.
        """
        view, deadline = memoryview(data), time.monotonic() + within_s
        while len(view):
            before = len(view) - len(self._received)
            try:
                view = view[os.write(self._to, view) :]
            except BlockingIOError:
                self._wait({self._to: select.POLLOUT, self._from: select.POLLIN}, deadline, within_s)
            except BrokenPipeError:
                while self._receive():  # a failed program sends the reason before its process ends
                    pass
                while self._asked and (payload := self._parsed()) is not None:
                    self._answers.append(self._rewards(payload))
                raise self._ended() from None
            self._receive()
            if len(self._received) > _MOST_BYTES + REPLY.size:
                raise self._over("killed", FORGED)
            if len(view) - len(self._received) != before:
                deadline = time.monotonic() + within_s

    def _receive(self) -> bool:
        """Read the bytes that the program's process has sent, without waiting. Return whether there were any."""
        try:
            data = os.read(self._from, _READ_BYTES)
        except BlockingIOError:
            return False
        self._received += data
        return bool(data)

    def _reply(self, within_s: float) -> bytes:
        """Wait for the next answer, and return its payload."""
        deadline = time.monotonic() + within_s
        while (payload := self._parsed()) is None:
            try:
                data = os.read(self._from, _READ_BYTES)
            except BlockingIOError:
                self._wait({self._from: select.POLLIN}, deadline, within_s)
                continue
            if not data:
                raise self._ended()
            self._received += data
        return payload

    def _parsed(self) -> bytes | None:
        """The payload of the next answer among the received bytes; None if the answer is not complete."""
        if len(self._received) < REPLY.size:
            return None
        code, size = REPLY.unpack_from(self._received)
        if not 0 < code <= len(wire.STATUSES) or size > _MOST_BYTES:
            raise self._over("killed", FORGED)
        end = REPLY.size + size
        if len(self._received) < end:
            return None
        payload = bytes(self._received[REPLY.size : end])
        del self._received[:end]
        status = wire.STATUSES[code - 1]
        if status != "ok":
            try:
                message = str(json.loads(payload)["message"])
            except (ValueError, KeyError, TypeError, RecursionError):
                raise self._over("killed", FORGED) from None
            raise self._over(status, message)
        return payload

    def _wait(self, events: dict[int, int], deadline: float, within_s: float) -> None:
        """Wait until a pipe is ready.

        Args:
            events: map from file descriptors of pipes to masks for `select.poll`.
            deadline: end of the wait, by the clock `time.monotonic`.
            within_s: time limit that ends at the deadline, for the message.

        Raises:
            GraceError: no pipe is ready at the deadline. The session is closed.
        """
        poller = select.poll()
        for fd, mask in events.items():
            poller.register(fd, mask)
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000) and time.monotonic() >= deadline:
            what = "one turn" if self._asked else "the start"
            raise self._over("timeout", f"no answer within {within_s:g} s: the time limit of {what}")

    def _ended(self) -> GraceError:
        """The error to raise after the program's process has ended. The kernel's report states why it ended."""
        status, message = "killed", "ended before the session was over"
        with contextlib.suppress(wire.ClosedError):
            status, message = Ended(*self._zygote.reply(_END_S)["ended"]).verdict(_ENDLESS_S) or (status, message)
        return self._over(status, message)

    def _over(self, status: str, message: str) -> GraceError:
        """End the session and the program's process, and return the error to raise."""
        self.close()
        return GraceError(f"{self._name}: {status}: {' '.join(stripped(message).split())}")


def _end(zygote: ZygoteHandle, *fds: int) -> None:
    memory.close(*fds)
    zygote.close()
