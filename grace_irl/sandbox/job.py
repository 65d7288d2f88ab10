"""The shared memory of a job, through which the host and a sandbox child exchange data.

A job is the work of one child process, such as a run of a program, a portion of a long run, or an inspection. An
inspection analyses a source without running it. The host, the process that uses the sandbox, writes the input before
the child starts, and reads the output after the child has ended. The host checks the output, because the program may
have forged it.
"""

from __future__ import annotations

import json
import mmap
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.program import Definition, Within
from grace_irl.sandbox import memory
from grace_irl.sandbox.candidate import ProgramFailure
from grace_irl.sandbox.ending import Ended
from grace_irl.sandbox.protocol import DebugRequest, Inspection, Limits, Outcome, Status
from grace_irl.sandbox.wire import ANSWER, CODES, HEADER, MESSAGE_BYTES, SOURCE_AT, STATUSES, TRACEBACK_BYTES, JobLayout

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Escape sequences of ECMA-48: control sequences, operating system commands and single escapes."""

_WITHIN: tuple[Within, ...] = get_args(Within)


class JobMemory:
    """The host's side of a job's memory.

    Args:
        source: the program in UTF-8.
        positions: number of trajectories of the job.
        second: order of the trajectories in strict mode's second pass, `(positions,)`; None in other modes.
        states: total number of states of the trajectories.
        debug: requests for debug texts of the program, each for one step of one trajectory.
        debug_chars: maximum length of a debug text in characters.
        message: maximum length of the child's message in bytes.
        first: index of the job's first trajectory in the run, for messages. It is 0 except in later portions of
            a run.

    Attributes:
        fd: file descriptor of the memory.
    """

    def __init__(
        self,
        source: bytes,
        positions: int = 0,
        second: NDArray[np.int64] | None = None,
        states: int = 0,
        debug: Sequence[DebugRequest] = (),
        debug_chars: int = 0,
        message: int = MESSAGE_BYTES,
        first: int = 0,
    ) -> None:
        layout = JobLayout.plan(len(source), positions, states, len(debug), 4 * debug_chars, message, first)
        self._job, self._debug_chars = layout, debug_chars
        head = bytearray(layout.rewards_at)
        HEADER.pack_into(head, 0, *layout)
        head[SOURCE_AT : SOURCE_AT + len(source)] = source
        if second is not None:
            head[layout.second_at : layout.requests_at] = second.astype("<i8").tobytes()
        if debug:
            pairs = np.array([(request.position, request.step) for request in debug], dtype="<i8")
            head[layout.requests_at : layout.requests_at + pairs.nbytes] = pairs.tobytes()
        self.fd = memory.create(layout.size)
        memory.write(self.fd, [head])
        memory.seal(self.fd, memory.SIZE_SEALED)

    def close(self) -> None:
        """Free the memory."""
        memory.close(self.fd)

    def answer(self) -> tuple[Status, str, str, bool]:
        """The child's answer: status, message, traceback, and whether the program takes actions.

        The status is "killed" if the answer is missing or invalid. Control characters are removed from the texts.
        """
        data = memory.read_all(self.fd, ANSWER.size, self._job.answer_at)
        code, said, trace, transitions = ANSWER.unpack(data)
        if not 0 < code <= len(STATUSES):
            return "killed", "ended without an answer", "", False
        message = self._text(self._job.message_at, said, self._job.message)
        lines = self._text(self._job.traceback_at, trace, TRACEBACK_BYTES)
        return STATUSES[code - 1], message, lines, transitions == 1

    def outcome(self, ended: Ended, lengths: NDArray[np.int64], limits: Limits) -> Outcome:
        """Outcome of the job. The kernel's report of the child's end takes precedence over the child's answer.

        Args:
            ended: the kernel's report of the child's end.
            lengths: number of states of each trajectory, `(positions,)`.
            limits: limits of the job.
        """
        account = Outcome("ok", cpu_s=ended.cpu_s, wall_s=ended.wall_s, peak_mb=ended.peak_mb)
        verdict = ended.verdict(limits.cpu_s)
        if verdict is not None:
            return replace(account, status=verdict[0], message=verdict[1])
        status, message, traceback, transitions = self.answer()
        if status != "ok":
            return replace(account, status=status, message=" ".join(message.split()), traceback=traceback)
        data = memory.read_all(self.fd, 8 * self._job.states, self._job.rewards_at)
        rewards, ends = np.frombuffer(data, np.float64), np.cumsum(lengths)
        found = _unusable(rewards, ends - lengths, limits.max_abs, self._job.first, transitions=transitions)
        if found:
            return replace(account, status="nonfinite", message=found)
        parts = tuple(np.split(rewards, ends[:-1])) if len(lengths) else ()
        return replace(account, rewards=parts, debug=self._debug())

    def _debug(self) -> tuple[str, ...]:
        room = 8 + self._job.debug_bytes
        texts = []
        for slot in range(self._job.requests):
            at = self._job.debug_at + slot * room
            size = int.from_bytes(memory.read_all(self.fd, 8, at), "little")
            texts.append(self._text(at + 8, size, self._job.debug_bytes)[: self._debug_chars])
        return tuple(texts)

    def _text(self, at: int, size: int, room: int) -> str:
        data = memory.read_all(self.fd, max(0, min(size, room)), at)
        return stripped(data.decode("utf-8", "replace"))


def stripped(text: str) -> str:
    """The text without terminal escape sequences and without control, format and private-use characters.

    Line ends and tabs stay.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    text = _TERMINAL.sub("", text)
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c)[0] != "C")


def inspection(message: str) -> Inspection | None:
    """Read an inspection from the untrusted JSON that a child wrote; None if the JSON is malformed."""
    try:
        found = json.loads(message)
        functions = tuple(map(_definition, found["functions"]))
        problems = tuple(stripped(str(problem)) for problem in found["problems"])
        return Inspection(
            stripped(str(found["id"])), problems, functions, bool(found["takes_action"]), int(found["size"])
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _definition(found: dict[str, object]) -> Definition:
    (within,) = (each for each in _WITHIN if each == found["within"])
    calls, first, last = (int(str(found[name])) for name in ("calls", "first", "last"))
    return Definition(stripped(str(found["name"])), stripped(str(found["digest"])), within, calls, first, last)


def _unusable(
    rewards: NDArray[np.float64], starts: NDArray[np.int64], max_abs: float, first: int, *, transitions: bool
) -> str:
    """A message about the first reward that is too large or not finite; "" if all rewards are usable.

    If the program rewards transitions, the first entry of each trajectory is no reward. So this entry is not checked.

    Args:
        rewards: rewards of all states of the job.
        starts: index of each trajectory's first state in `rewards`.
        max_abs: maximum absolute value of a reward.
        first: index of the job's first trajectory in the run.
        transitions: whether the program rewards transitions.
    """
    bad = ~(np.abs(rewards) <= max_abs)
    if transitions:
        bad[starts] = False
    if not bad.any():
        return ""
    at = int(np.flatnonzero(bad)[0])
    position = int(np.searchsorted(starts, at, side="right")) - 1
    step = at - int(starts[position])
    return (
        f"reward {rewards[at]:g} for state {step} of trajectory {first + position}; "
        f"expected a finite number of at most {max_abs:g} in size"
    )


class AnswerMap:
    """The child's side of a job's memory, mapped for reading and writing.

    Attributes:
        job: layout of the memory.
        rewards: rewards of all states, `(states,)` float64. Assignments to its elements write to the memory.
        mapped: size of the memory in bytes.
        transitions: whether the program takes actions, so that rewards belong to transitions. The child sets this
            attribute, and `finish` writes it to the memory.
    """

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self.job = JobLayout._make(HEADER.unpack_from(self._map))
        self.mapped = len(self._map)
        self.transitions = False
        at = self.job.rewards_at
        self.rewards = memoryview(self._map)[at : at + 8 * self.job.states].cast("d")

    def source(self) -> bytes:
        """The text of the program in UTF-8."""
        return self._map[SOURCE_AT : SOURCE_AT + self.job.source]

    def second(self) -> list[int]:
        """The order of the job's trajectories in strict mode's second pass."""
        return self._integers(self.job.second_at, self.job.positions)

    def requests(self) -> dict[int, dict[int, int]]:
        """The debug requests as `{position: {step: index of the request}}`.

        The position is the index of the trajectory in the job.
        """
        found: dict[int, dict[int, int]] = {}
        flat = self._integers(self.job.requests_at, 2 * self.job.requests)
        for slot, (position, step) in enumerate(zip(flat[::2], flat[1::2], strict=True)):
            found.setdefault(position, {})[step] = slot
        return found

    def finish(self, status: str, message: str = "", traceback: str = "") -> None:
        """Write status, message and traceback. The status comes last, so a child that dies earlier leaves no answer."""
        said = self._text(self.job.message_at, message, self.job.message)
        trace = self._text(self.job.traceback_at, traceback, TRACEBACK_BYTES)
        ANSWER.pack_into(self._map, self.job.answer_at, CODES[status], said, trace, self.transitions)

    def fail(self, failure: ProgramFailure) -> None:
        """Write the status, message and traceback of a failure."""
        self.finish(failure.status, failure.message, failure.traceback)

    def debug(self, slot: int, text: str) -> None:
        """Write the text for the debug request with index `slot`, cut to the maximum length."""
        at = self.job.debug_at + slot * (8 + self.job.debug_bytes)
        written = self._text(at + 8, text, self.job.debug_bytes)
        self._map[at : at + 8] = written.to_bytes(8, "little")

    def _text(self, at: int, text: str, room: int) -> int:
        data = text[:room].encode("utf-8", "replace")[:room]
        self._map[at : at + len(data)] = data
        return len(data)

    def _integers(self, at: int, count: int) -> list[int]:
        with memoryview(self._map)[at : at + 8 * count].cast("q") as numbers:
            return numbers.tolist()


class RunTally:
    """The outcome of a run, summed over its portions.

    A portion is a slice of the run's trajectories that one child scores.

    Args:
        lengths: number of states of each trajectory of the run, `(positions,)`.
        limits: limits of one pass over the whole run.
        debug: debug requests of the whole run.
        passes: number of passes over the trajectories: 2 in strict mode, else 1.
    """

    def __init__(
        self, lengths: NDArray[np.int64], limits: Limits, debug: Sequence[DebugRequest] = (), passes: int = 1
    ) -> None:
        self.lengths = lengths
        self._limits, self._debug, self._passes = limits, tuple(debug), passes
        self._texts: dict[DebugRequest, str] = {}
        self._sum = Outcome("ok")
        self._covered = 0

    @property
    def left(self) -> Limits:
        """The limits of one pass over the next portion: the run's limits minus the time that a pass has used so far."""
        wall_s = self._limits.wall_s - self._sum.wall_s / self._passes
        cpu_s = self._limits.cpu_s - self._sum.cpu_s / self._passes
        return replace(self._limits, wall_s=wall_s, cpu_s=cpu_s)

    @property
    def goes_on(self) -> bool:
        """Whether another portion may run: no portion has failed, and time is left."""
        return self._sum.status == "ok" and min(self.left.wall_s, self.left.cpu_s) > 0

    def requests(self, part: slice) -> list[DebugRequest]:
        """The debug requests of the portion `part`, each once, with positions relative to the start of the portion."""
        return [replace(request, position=request.position - part.start) for request in self._asked(part)]

    def add(self, part: slice, outcome: Outcome) -> None:
        """Add the outcome of the portion `part`."""
        self._texts.update(zip(self._asked(part), outcome.debug, strict=False))  # a failed portion has no texts
        self._covered = part.stop
        before = self._sum
        self._sum = replace(
            outcome,
            rewards=before.rewards + outcome.rewards,
            cpu_s=before.cpu_s + outcome.cpu_s,
            wall_s=before.wall_s + outcome.wall_s,
            peak_mb=max(before.peak_mb, outcome.peak_mb),
        )

    def outcome(self) -> Outcome:
        """Outcome of the whole run."""
        if self._sum.status != "ok":
            return replace(self._sum, rewards=(), debug=())
        if self._covered < len(self.lengths):
            message = f"stopped after {self._sum.wall_s:.1f} s, {self._sum.cpu_s:.1f} s of CPU: the time limit"
            return replace(self._sum, status="timeout", message=message, rewards=(), debug=())
        return replace(self._sum, debug=tuple(self._texts[request] for request in self._debug))

    def _asked(self, part: slice) -> list[DebugRequest]:
        """The debug requests of the portion `part`, each once."""
        return [each for each in dict.fromkeys(self._debug) if part.start <= each.position < part.stop]
