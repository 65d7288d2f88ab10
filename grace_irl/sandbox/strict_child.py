"""Code of a child process of strict mode. The child runs a program, and holds one or two states at a time.

The runner, the trusted parent process (`strict.py`), sends one question at a time over a pipe: start a trajectory,
reward a state, or return a debug text.
"""

from __future__ import annotations

import gc
import json
import math
import os
import struct
from typing import Any, NoReturn

import numpy as np

from grace_irl.programs.contract import ACTION_DTYPE
from grace_irl.sandbox.candidate import Candidate, ProgramFailure, Reward, explain, number
from grace_irl.sandbox.child import debug_text, prepare
from grace_irl.sandbox.protocol import Status
from grace_irl.sandbox.wire import CHILD_IN, CHILD_OUT, CODES, read_pipe, write_pipe
from grace_irl.states.layout import LENGTH, StateLayout

FRAME = struct.Struct("<Bd")
"""Format of an answer: a status code and a number. The number depends on the question:

- `BEGIN`: 1 if the program takes actions, else 0.
- `STATE`: the reward.
- `DEBUG`: the length in bytes of the text that follows.
- Any question on which the program failed: the length in bytes of the failure that follows.
"""

BEGIN, STATE, DEBUG = b"R", b"S", b"D"
"""First byte of each question."""
TEXT_BYTES = 1 << 16
"""Maximum length of a debug text in bytes."""

_OK = CODES["ok"]


def perform(source: str, *, checks: bool) -> NoReturn:
    """Answer one question at a time until the runner closes the pipe. This function never returns.

    Args:
        source: text of the program.
        checks: whether the static checks may refuse the program.
    """
    gc.enable()
    candidate = prepare(source, checks=checks)
    if isinstance(candidate, ProgramFailure):
        read_pipe(1)  # wait for the first question
        _reply_failure(candidate)
        os._exit(0)
    stage = Stage(candidate)
    phase: Status = "init"
    try:
        while True:
            op = os.read(CHILD_IN, 1)
            if op == STATE:
                phase = "runtime"
                os.write(CHILD_OUT, FRAME.pack(_OK, stage.state()))
            elif op == BEGIN:
                phase = "init"
                stage.begin()
                write_pipe(FRAME.pack(_OK, float(candidate.takes_action)))
            elif op == DEBUG:
                text = stage.debug().encode("utf-8", "replace")[:TEXT_BYTES]
                write_pipe(FRAME.pack(_OK, len(text)) + text)
            else:
                os._exit(0)
    except BaseException as error:
        _reply_failure(explain(error, phase, source))
    os._exit(0)


class Stage:
    """The current trajectory in a child of strict mode: its `Reward` object and the bytes of its last two states."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._reward: Reward | None = None
        self._layout: StateLayout
        self._actions: list[int] | None = None
        self._before = self._last = self._action = b""

    def begin(self) -> None:
        """Read the start of a trajectory, and create its `Reward` object."""
        said = json.loads(read_pipe(LENGTH.unpack(read_pipe(LENGTH.size))[0]))
        self._layout = StateLayout.from_json(said["state"])
        self._actions = said["action"]
        self._before = self._last = self._action = b""
        self._reward = self._candidate.start(said["extra_info"])

    def state(self) -> float:
        """Read the next state, and return its reward.

        If the program takes actions, first read the action that led to the state. The reward of the first state, which
        has no such action, is then NaN.
        """
        assert self._reward is not None
        if not self._candidate.takes_action:
            self._last = self._layout.received(read_pipe)
            value = self._reward.call(self._layout.state(self._last))
            return value if type(value) is float else number(value)
        first = not self._last
        if not first and self._actions is not None:
            self._action = read_pipe(math.prod(self._actions) * ACTION_DTYPE.itemsize)
        self._before, self._last = self._last, self._layout.received(read_pipe)
        return float("nan") if first else number(self._reward.call(*self._transition()))

    def debug(self) -> str:
        """The text of debug_fn about the last rewarded state."""
        assert self._reward is not None
        if not self._candidate.takes_action:
            return debug_text(self._reward, self._layout.state(self._last))
        return debug_text(self._reward, *self._transition()) if self._before else ""

    def _transition(self) -> tuple[Any, Any, Any]:
        assert self._actions is not None
        action = np.frombuffer(self._action, ACTION_DTYPE).reshape(self._actions).copy()
        # a discrete action is a number, as in batch mode
        taken = action if self._actions else action[()]
        return self._layout.state(self._before), taken, self._layout.state(self._last)


def _reply_failure(failure: ProgramFailure) -> None:
    said = failure.to_json()
    write_pipe(FRAME.pack(CODES[failure.status], len(said)) + said)
