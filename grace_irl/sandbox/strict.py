"""Strict mode, in which a reward program runs twice, in two processes that get one state at a time.

A trusted process, the runner, forks the two processes as its children before it reads any state. For each trajectory,
the runner sends a child the instruction, then one state after the other, each with the action that led to it if the
program takes actions. The first child gets the trajectories in the order of the run, the second child in another order.
If a reward depends on anything but its own trajectory, such as a counter over several trajectories or a memory address,
the two children usually give different rewards. The run then has the status "mismatch".
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from grace_irl.sandbox import kernel, memory
from grace_irl.sandbox.candidate import ProgramFailure
from grace_irl.sandbox.child import NO_ACTIONS
from grace_irl.sandbox.ending import Child, Ended
from grace_irl.sandbox.job import AnswerMap
from grace_irl.sandbox.lockdown import CHILD_FAILED, Allowance, Lockdown, exit_status
from grace_irl.sandbox.parcel import TrajectoryView, Views
from grace_irl.sandbox.strict_child import BEGIN, DEBUG, FRAME, STATE, TEXT_BYTES, perform
from grace_irl.sandbox.wire import CODES, SOURCE_AT, STATUSES
from grace_irl.states.layout import LENGTH

_OK = CODES["ok"]


def run_strict(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Score all states of a job in strict mode. This is the body of the forked runner and never returns.

    A job is a run of a program, or one portion of a long run.

    Args:
        lockdown: all protections that this machine offers.
        request: a dict with `layers` (the protections that the children apply), `checks` (whether the static checks may
            refuse the program), `source` (length of the source in bytes) and `worker` (index of the zygote, the process
            that forked the runner). The limits `wall_s` and `cpu_s` in seconds and `memory_mb` in MiB hold for each
            child.
        fds: two file descriptors of shared memory. The first holds the source and the answer, the second (the parcel)
            holds the trajectories.
        base_bytes: address space of the zygote in bytes. The memory limit comes on top of it.
    """
    _stay_on_one_core(request["worker"])
    source = os.pread(fds[0], request["source"], SOURCE_AT).decode("utf-8", "surrogatepass")
    budget = Allowance(request["cpu_s"], request["memory_mb"], base_bytes)
    # The children are forked before this process reads the states or the number and order of trajectories, because a
    # program can find all data that its process inherits.
    players = _fork_players(source, lockdown, request, budget)
    answer, views = AnswerMap(fds[0]), Views(fds[1])
    second = np.array(answer.second(), dtype=np.int64)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    requests = answer.requests()
    lengths = np.array([view.length for view in views], dtype=np.int64)
    ends = np.cumsum(lengths)
    again = np.full(int(lengths.sum()), np.nan)
    starts, positions = ends - lengths, np.arange(len(views))
    passes = (
        Feed(views, starts, requests, positions, answer.rewards, answer, answer.job.first),
        Feed(views, starts, requests, second, memoryview(again.data).cast("B").cast("d"), None, answer.job.first),
    )
    for player, feed in zip(players, passes, strict=True):
        failure = player.play(feed, request["wall_s"], request["cpu_s"])
        if failure is not None:
            for waiting in players:
                waiting.stop()
            answer.fail(failure)
            os._exit(0)
    once = np.array(answer.rewards)
    differs = np.flatnonzero((once != again) & ~(np.isnan(once) & np.isnan(again)))
    if len(differs):
        first = int(differs[0])
        answer.finish("mismatch", _mismatch(first, ends, once[first], again[first], answer.job.first))
    else:
        answer.finish("ok")
    os._exit(0)


def _stay_on_one_core(worker: int) -> None:
    """Pin this process and its children to one core.

    Runner and child take turns, so one core is enough. Messages between two cores take 5 times as long.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[worker % len(cores)]})


def _mismatch(at: int, ends: NDArray[np.int64], reward: float, again: float, number: int) -> str:
    position = number + int(np.searchsorted(ends, at, side="right"))
    return (
        f"another order of trajectories gave other rewards (for {position}: {reward:g}, then {again:g}); "
        "expected a reward that depends on its own trajectory only"
    )


@dataclass(frozen=True)
class Feed:
    """Input and output of one pass, in which one child scores all trajectories of the job.

    Attributes:
        views: trajectories of the job.
        starts: index of each trajectory's first reward in `rewards`.
        requests: states for which the caller wants the text of the program's debug_fn, as
            `{position: {step: index of the request}}`. The position is the index of the trajectory in `views`.
        positions: order of the trajectories in this pass.
        rewards: output, one double per state.
        texts: output for the texts of debug_fn; None in the second pass, which drops the texts. The second pass still
            calls debug_fn, because side effects of debug_fn must occur in both passes.
        first: index of the job's first trajectory in the run, for messages. It is 0 except in later portions of a run.
    """

    views: Views
    starts: NDArray[np.int64]
    requests: dict[int, dict[int, int]]
    positions: NDArray[np.int64]
    rewards: memoryview[float]
    texts: AnswerMap | None
    first: int


class ProtocolError(Exception):
    """An answer of a child that does not have the expected format."""


class Player:
    """The runner's side of one locked-down child, which scores one pass.

    Args:
        pid: process id of the child.
        to_child: pipe to the child.
        from_child: pipe from the child.
    """

    def __init__(self, pid: int, to_child: int, from_child: int) -> None:
        self._child = Child(pid)
        self._to, self._from = to_child, from_child
        self._stopped = False

    def play(self, feed: Feed, wall_s: float, cpu_s: float) -> ProgramFailure | None:
        """Let the child score one pass, and return the failure; None if every state got its reward.

        Args:
            feed: input and output of the pass.
            wall_s: limit of wall time in seconds.
            cpu_s: limit of CPU time in seconds.
        """
        failure: ProgramFailure | None = None
        self._child.started = time.monotonic()
        # A timer kills the child at a limit, and the runner then finds the child's pipe closed. So the runner need not
        # read a clock for each state.
        signal.signal(signal.SIGALRM, lambda *_: self._tick(wall_s, cpu_s))
        self._tick(wall_s, cpu_s)
        try:
            for position in feed.positions.tolist():
                failure = self._trajectory(feed, position)
                if failure is not None:
                    break
            else:
                failure = self._silence()
        except (ProtocolError, BrokenPipeError):
            failure = ProgramFailure("killed", "answered outside the protocol")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        ended = self.stop()
        assert ended is not None  # `play` is called once, and before any other `stop`
        return self._verdict(failure, ended, cpu_s)

    def stop(self) -> Ended | None:
        """Kill the child, and return how it ended; None if it was stopped before."""
        if self._stopped:
            return None
        self._stopped = True
        self._child.kill()
        os.close(self._to)
        os.close(self._from)
        return self._child.reap()

    def _verdict(self, failure: ProgramFailure | None, ended: Ended, cpu_s: float) -> ProgramFailure | None:
        """The final failure of a pass: `failure`, or the kernel's report if the child died before `stop` killed it."""
        if failure is None or failure.status != "killed":
            return failure
        if not ended.timeout and ended.signal == signal.SIGKILL and ended.cpu_s < cpu_s:
            return failure  # `stop` sent the signal, so the child had not died before
        found = ended.verdict(cpu_s)
        return ProgramFailure(*found) if found else failure

    def _tick(self, wall_s: float, cpu_s: float) -> None:
        left = self._child.remaining_s(wall_s, cpu_s)
        if self._child.timeout:
            self._child.kill()
        else:
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-3))

    def _trajectory(self, feed: Feed, position: int) -> ProgramFailure | None:
        view, number = feed.views[position], feed.first + position
        value, failure = self._ask(BEGIN, _begin(view))
        if failure is not None:
            return _at(failure, f"trajectory {number}")
        takes_action = value == 1.0
        if feed.texts is not None:
            feed.texts.transitions = takes_action
        if takes_action and view.actions is None:
            return ProgramFailure("contract", NO_ACTIONS)
        requests, start = feed.requests.get(position, {}), int(feed.starts[position])
        actions, rewards = view.actions, feed.rewards
        for step in range(view.length):
            state = view.wire(step)
            if takes_action and step and actions is not None:
                state = actions[step - 1].tobytes() + state
            value, failure = self._ask(STATE, state)
            if failure is not None:
                return _at(failure, f"state {step} of trajectory {number}")
            rewards[start + step] = value
            if step in requests:
                length, failure = self._ask(DEBUG, b"")
                if failure is not None:
                    return _at(failure, f"state {step} of trajectory {number}")
                text = self._read(_size(length)).decode("utf-8", "replace")
                if feed.texts is not None:
                    feed.texts.debug(requests[step], text)
        return None

    def _ask(self, op: bytes, payload: bytes) -> tuple[float, ProgramFailure | None]:
        data = op + payload
        written = os.write(self._to, data)
        if written < len(data):
            rest = memoryview(data)
            while written < len(data):
                written += os.write(self._to, rest[written:])
        frame = os.read(self._from, FRAME.size)
        if len(frame) < FRAME.size:
            frame += self._read(FRAME.size - len(frame))
        code, value = FRAME.unpack(frame)
        if code == _OK:
            return value, None
        if not 0 < code <= len(STATUSES):
            raise ProtocolError
        try:
            said = json.loads(self._read(_size(value)))
            return 0.0, ProgramFailure(STATUSES[code - 1], str(said["message"]), str(said["traceback"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ProtocolError from error

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = os.read(self._from, size - len(data))
            if not more:
                raise ProtocolError
            data += more
        return data

    def _silence(self) -> ProgramFailure | None:
        """Check that the child still runs and has written nothing after its last answer. Return None, or the failure.

        A program that forges answers adds them to the child's own answers, so some answers are left in the pipe.
        """
        os.set_blocking(self._from, False)
        try:
            ahead = os.read(self._from, 1)
        except BlockingIOError:
            return None
        return ProgramFailure("killed", "answered outside the protocol" if ahead else "ended before the run was over")


def _fork_players(source: str, lockdown: Lockdown, request: dict[str, Any], budget: Allowance) -> list[Player]:
    """Fork two locked-down children that wait for their first trajectory.

    A child cannot find out whether it is the first or the second child.
    """
    pipes = [(os.pipe(), os.pipe()) for _ in range(2)]
    pids = []
    for (child_in, _), (_, child_out) in pipes:
        pids.append(kernel.fork())
        if pids[-1] == 0:
            try:
                pids.clear()
                lockdown.apply(request["layers"], budget, keep=(child_in, child_out))
                perform(source, checks=request["checks"])
            except BaseException as error:
                os._exit(exit_status(error))
            finally:
                os._exit(CHILD_FAILED)
    for (child_in, _), (_, child_out) in pipes:
        memory.close(child_in, child_out)
    return [
        Player(pid, to_child, from_child) for pid, ((_, to_child), (from_child, _)) in zip(pids, pipes, strict=True)
    ]


def _begin(view: TrajectoryView) -> bytes:
    action = None if view.actions is None else view.actions.shape[1:]
    said = json.dumps({"extra_info": view.extra_info, "state": view.layout.to_json(), "action": action}).encode()
    return LENGTH.pack(len(said)) + said


def _at(failure: ProgramFailure, where: str) -> ProgramFailure:
    if failure.status in ("syntax", "rejected", "contract"):  # the program did not run
        return failure
    return ProgramFailure(failure.status, f"{failure.message} ({where})", failure.traceback)


def _size(value: float) -> int:
    if not 0 <= value <= 4 * TEXT_BYTES:
        raise ProtocolError
    return int(value)
