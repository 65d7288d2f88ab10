"""The child of strict mode: one question, one answer, and nothing else in its memory."""

from __future__ import annotations

import gc
import json
import os
import struct
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from grace_irl.programs.contract import ACTION_DTYPE, state_dtype
from grace_irl.sandbox.candidate import Candidate, ProgramFailure, Reward, explain, number
from grace_irl.sandbox.child import debug_text, prepare
from grace_irl.sandbox.protocol import Status
from grace_irl.sandbox.screen_parcel import LENGTH
from grace_irl.sandbox.wire import CODES

FRAME = struct.Struct("<Bd")
"""An answer: a status code, and a reward or the length of what follows."""

BEGIN, STATE, DEBUG = b"R", b"S", b"D"
TEXT_BYTES = 1 << 16

_IN, _OUT = 3, 4
_OK = CODES["ok"]


def perform(source: str, *, checks: bool) -> NoReturn:
    """The child: answer one question at a time."""
    gc.enable()
    candidate = prepare(source, checks=checks)
    if isinstance(candidate, ProgramFailure):
        _receive(1)
        _reply_failure(candidate)
        os._exit(0)
    stage = Stage(candidate)
    phase: Status = "init"
    try:
        while True:
            op = os.read(_IN, 1)
            if op == STATE:
                phase = "runtime"
                os.write(_OUT, FRAME.pack(_OK, stage.state()))
            elif op == BEGIN:
                phase = "init"
                stage.begin()
                os.write(_OUT, FRAME.pack(_OK, float(candidate.takes_action)))
            elif op == DEBUG:
                text = stage.debug().encode("utf-8", "replace")[:TEXT_BYTES]
                os.write(_OUT, FRAME.pack(_OK, len(text)) + text)
            else:
                os._exit(0)
    except BaseException as error:
        _reply_failure(explain(error, phase, source))
    os._exit(0)


class Stage:
    """The trajectory at hand inside a strict child: its Reward and the bytes of the last state."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._reward: Reward | None = None
        self._layout: dict[str, tuple[np.dtype[Any], np.dtype[Any], tuple[int, ...], int]] = {}
        self._before = self._last = self._action = b""

    def begin(self) -> None:
        """Read what a trajectory starts with, and make its Reward."""
        said = json.loads(_receive(LENGTH.unpack(_receive(LENGTH.size))[0]))
        self._layout = {
            name: _layout(*said[name], is_state=name == "state") for name in ("state", "action") if said[name]
        }
        self._before = self._last = self._action = b""
        self._reward = self._candidate.start(said["extra_info"])

    def state(self) -> float:
        """Read the next state, with the action that led to it, and reward it."""
        assert self._reward is not None
        if not self._candidate.takes_action:
            self._last = self._receive_state()
            value = self._reward.call(self._state())
            return value if type(value) is float else number(value)
        first = not self._last
        self._action = b"" if first or "action" not in self._layout else _receive(self._layout["action"][3])
        self._before, self._last = self._last, _receive(self._layout["state"][3])
        return float("nan") if first else number(self._reward.call(*self._transition()))

    def debug(self) -> str:
        """debug_fn's text on the state that was just rewarded."""
        assert self._reward is not None
        if not self._candidate.takes_action:
            return debug_text(self._reward, self._state())
        return debug_text(self._reward, *self._transition()) if self._before else ""

    def _receive_state(self) -> bytes:
        if "state" in self._layout:
            return _receive(self._layout["state"][3])
        return _receive(LENGTH.unpack(_receive(LENGTH.size))[0])

    def _state(self) -> NDArray[Any] | str:
        return self._array("state", self._last) if "state" in self._layout else self._last.decode()

    def _transition(self) -> tuple[NDArray[Any], ...]:
        action = self._array("action", self._action)
        return self._array("state", self._before), action, self._array("state", self._last)

    def _array(self, name: str, data: bytes) -> NDArray[Any]:
        stored, handed, shape, _ = self._layout[name]
        array = np.frombuffer(data, stored).reshape(shape).astype(handed)
        return array if shape else array[()]  # a discrete action is a number, as in batch mode


def _layout(
    dtype: str, shape: list[int], *, is_state: bool
) -> tuple[np.dtype[Any], np.dtype[Any], tuple[int, ...], int]:
    stored = np.dtype(dtype)
    handed = state_dtype(len(shape)) if is_state else ACTION_DTYPE
    return stored, handed, tuple(shape), int(np.prod(shape, dtype=np.int64)) * stored.itemsize


def _receive(size: int) -> bytes:
    data = os.read(_IN, size)
    if len(data) == size:
        return data
    parts, left = [data], size - len(data)
    while left:
        parts.append(os.read(_IN, left))
        if not parts[-1]:
            os._exit(0)
        left -= len(parts[-1])
    return b"".join(parts)


def _reply_failure(failure: ProgramFailure) -> None:
    said = json.dumps({"message": failure.message[:4000], "traceback": failure.traceback[:16000]}).encode()
    os.write(_OUT, FRAME.pack(CODES[failure.status], len(said)) + said)
