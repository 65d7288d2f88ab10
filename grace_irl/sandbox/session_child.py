"""The child of a session: it keeps one program alive, and rewards the steps of several episodes as they happen."""

from __future__ import annotations

import gc
import json
import os
import struct
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from grace_irl.programs.contract import ACTION_DTYPE
from grace_irl.sandbox.candidate import ProgramFailure, explain
from grace_irl.sandbox.child import prepare
from grace_irl.sandbox.lockdown import Allowance, Lockdown
from grace_irl.sandbox.protocol import Status
from grace_irl.sandbox.slots import Slots, rewards_of
from grace_irl.sandbox.wire import CODES
from grace_irl.states.layout import StateLayout

OPEN = struct.Struct("<I")
"""Number of bytes of JSON that follow: the source, and the layout of a state."""

TURN = struct.Struct("<IIIi")
"""Steps, episodes that begin, bytes of JSON (the instructions), and the shape of an action: `NO_ACTION`, 0 for a
number, n for a vector of n."""

NO_ACTION = -1

REPLY = struct.Struct("<BI")
"""A status code, and how many bytes follow: JSON, or for a turn that went well the rewards and JSON of the terms."""

SLOT = np.dtype("<u4")
REWARD = np.dtype("<f8")

_IN, _OUT = 3, 4
_OK = CODES["ok"]


def run_session(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Serve one host until it hangs up; the body of a forked child, which never returns.

    Args:
        lockdown: the layers.
        request: `layers`, `checks`, `cpu_s`, `memory_mb`.
        fds: the pipe to read from and the pipe to write to.
        base_bytes: the address space of the zygote.
    """
    lockdown.apply(request["layers"], Allowance(request["cpu_s"], request["memory_mb"], base_bytes), keep=fds)
    gc.enable()
    said = json.loads(_receive(OPEN.unpack(_receive(OPEN.size))[0]))
    source = said["source"]
    candidate = prepare(source, checks=request["checks"])
    if isinstance(candidate, ProgramFailure):
        _fail(candidate)
    try:
        layout = StateLayout.from_json(said["layout"])
        slots = Slots(candidate, layout.kind)
        _send(REPLY.pack(_OK, 1) + (b"1" if candidate.takes_action else b"0"))
        table = EpisodeTable(slots, layout, terms=said["terms"])
        while True:
            table.turn(source)
    except BaseException as error:
        _fail(explain(error, "runtime", source))


class EpisodeTable:
    """Plays turns: the steps of running episodes first, then the episodes that begin.

    Args:
        slots: the episodes.
        layout: of every state on the wire.
        terms: send the components of every reward.
    """

    def __init__(self, slots: Slots, layout: StateLayout, *, terms: bool) -> None:
        self._slots, self._layout, self._terms = slots, layout, terms

    def turn(self, source: str) -> None:
        """Read one turn and answer it."""
        steps, begins, text, action_shape = TURN.unpack(_receive(TURN.size))
        numbers = self._numbers(steps)
        actions = self._actions(steps, action_shape)
        states = self._layout.states(steps, _receive)
        starting = self._numbers(begins)
        firsts = self._layout.states(begins, _receive)
        instructions = json.loads(_receive(text)) if text else []
        phase: Status = "runtime"
        try:
            rewards, terms = rewards_of(self._slots, numbers, actions, states, terms=self._terms)
            phase = "init"
            for slot, state, instruction in zip(starting, firsts, instructions, strict=True):
                self._slots.begin(slot, state, instruction)
        except BaseException as error:
            _fail(explain(error, phase, source))
        data = np.array(rewards, REWARD).tobytes() + (json.dumps(terms).encode() if self._terms else b"")
        _send(REPLY.pack(_OK, len(data)) + data)

    def _numbers(self, count: int) -> list[int]:
        found: list[int] = np.frombuffer(_receive(count * SLOT.itemsize), SLOT).tolist()
        return found

    @staticmethod
    def _actions(count: int, shape: int) -> Any:
        if shape == NO_ACTION:
            return None
        data = _receive(count * max(1, shape) * ACTION_DTYPE.itemsize)
        actions = np.frombuffer(data, ACTION_DTYPE)
        return actions.reshape(count, shape) if shape else actions


def _receive(size: int) -> bytes:
    if not size:
        return b""
    data = os.read(_IN, size)
    if len(data) == size:
        return data
    parts, left = [data], size - len(data)
    while left:
        data = os.read(_IN, left)
        if not data:
            os._exit(0)
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def _send(data: bytes) -> None:
    written = os.write(_OUT, data)
    while written < len(data):
        written += os.write(_OUT, data[written:])


def _fail(failure: ProgramFailure) -> NoReturn:
    said = json.dumps({"message": failure.message[:4000], "traceback": failure.traceback[:16000]}).encode()
    _send(REPLY.pack(CODES[failure.status], len(said)) + said)
    os._exit(0)
