"""Code of a session's child process, in which one program rewards the steps of several episodes as they happen.

The process exchanges messages with the host (`session.py`) over two pipes. This module also defines the formats of
these messages.
"""

from __future__ import annotations

import gc
import json
import os
import struct
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import ACTION_DTYPE
from grace_irl.sandbox.candidate import ProgramFailure, explain
from grace_irl.sandbox.child import prepare
from grace_irl.sandbox.lockdown import Allowance, Lockdown
from grace_irl.sandbox.slots import Slots
from grace_irl.sandbox.wire import CODES, PipeReader, write_pipe
from grace_irl.states.layout import Receive, StateLayout

OPEN = struct.Struct("<I")
"""Format of the first message's header: the number of bytes that follow. These bytes are JSON with the program's
source, the layout of a state, and whether to compute the components of rewards. The reply is "1" if the program takes
actions, else "0"."""

TURN = struct.Struct("<IIIi")
"""Format of a turn's header: the number of steps, the number of new episodes, the length in bytes of their task
instructions in JSON, and the form of an action. The form is `NO_ACTION`, 0 for a number, or n for a vector of n
numbers."""

NO_ACTION = -1

REPLY = struct.Struct("<BI")
"""Format of a reply's header: a status code and the number of bytes that follow. After a successful turn, these bytes
are the rewards, and the components in JSON if the host wants components. After a failure, they describe the failure in
JSON."""

SLOT = np.dtype("<u4")
REWARD = np.dtype("<f8")
"""Types of slots and rewards in messages. A slot is the number of an episode."""

_OK = CODES["ok"]


def run_session(lockdown: Lockdown, request: dict[str, Any], fds: Sequence[int], base_bytes: int) -> NoReturn:
    """Answer one turn after the other until the host closes the pipe.

    In a turn, the host sends the steps of several episodes, and this process answers with the rewards. The function is
    the body of a forked child and never returns.

    Args:
        lockdown: protections that this process applies to itself.
        request: a dict with `layers` (the protections to apply), `checks` (whether the static checks may refuse the
            program), `cpu_s` (CPU limit in seconds) and `memory_mb` (memory limit in MiB).
        fds: pipe to read from, and pipe to write to.
        base_bytes: address space in bytes of the zygote, the parent process. The memory limit comes on top of it.
    """
    lockdown.apply(request["layers"], Allowance(request["cpu_s"], request["memory_mb"], base_bytes), keep=fds)
    gc.enable()
    read = PipeReader().read
    said = json.loads(read(OPEN.unpack(read(OPEN.size))[0]))
    source = said["source"]
    candidate = prepare(source, checks=request["checks"])
    if isinstance(candidate, ProgramFailure):
        _fail(candidate)
    try:
        layout = StateLayout.from_json(said["layout"])
        slots = Slots(candidate, layout.kind)
        write_pipe(REPLY.pack(_OK, 1) + (b"1" if candidate.takes_action else b"0"))
        while True:
            _turn(read, slots, layout, source, terms=said["terms"])
    except BaseException as error:
        _fail(explain(error, "runtime", source))


def _turn(read: Receive, slots: Slots, layout: StateLayout, source: str, *, terms: bool) -> None:
    """Read one turn, and send the rewards. The steps of running episodes come first, then the new episodes."""
    steps, begins, text, action_shape = TURN.unpack(read(TURN.size))
    numbers = _numbers(read, steps)
    actions = _actions(read, steps, action_shape)
    states = layout.states(steps, read)
    starting = _numbers(read, begins)
    firsts = layout.states(begins, read)
    instructions = json.loads(read(text)) if text else []
    try:
        rewards, named = slots.turn(numbers, actions, states, terms=terms)
        for slot, state, instruction in zip(starting, firsts, instructions, strict=True):
            slots.begin(slot, state, instruction)
    except BaseException as error:
        _fail(explain(error, slots.phase, source))
    data = np.array(rewards, REWARD).tobytes() + (json.dumps(named).encode() if terms else b"")
    write_pipe(REPLY.pack(_OK, len(data)) + data)


def _numbers(read: Receive, count: int) -> list[int]:
    found: list[int] = np.frombuffer(read(count * SLOT.itemsize), SLOT).tolist()
    return found


def _actions(read: Receive, count: int, shape: int) -> NDArray[Any] | None:
    if shape == NO_ACTION:
        return None
    actions = np.frombuffer(read(count * max(1, shape) * ACTION_DTYPE.itemsize), ACTION_DTYPE)
    return actions.reshape(count, shape) if shape else actions


def _fail(failure: ProgramFailure) -> NoReturn:
    said = failure.to_json()
    write_pipe(REPLY.pack(CODES[failure.status], len(said)) + said)
    os._exit(0)
