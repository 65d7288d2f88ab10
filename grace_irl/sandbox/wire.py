"""How host and zygote talk: framed JSON with descriptors, and a job's shared memory. Never pickle."""

from __future__ import annotations

import json
import socket
import struct
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import numpy as np

from grace_irl.sandbox.protocol import Status

MESSAGE_BYTES = 4096
TRACEBACK_BYTES = 16384
INSPECTION_BYTES = 4 << 20
MAX_FDS = 64
"""Descriptors in one message; Linux allows 253."""

STATUSES: tuple[Status, ...] = get_args(Status)

CODES: dict[str, int] = {status: code for code, status in enumerate(STATUSES, 1)}
"""A status on the wire. 0 is what a fresh job holds, so that silence is not success."""

_LENGTH = struct.Struct("<I")
ANSWER = struct.Struct("<4q")  # code, bytes of message, bytes of traceback, 1 where transitions are rewarded
COUNTS = struct.Struct("<6q")

TRAJECTORY = np.dtype(
    [
        ("length", "<i8"),  # T + 1
        ("segment", "<i4"),  # which descriptor holds the states
        ("layout", "<i4"),  # index of (dtype, shape) of one state
        ("offset", "<i8"),  # bytes
        ("action_layout", "<i4"),  # -1: none
        ("text_length", "<i4"),  # bytes of extra_info, UTF-8
        ("action_offset", "<i8"),
        ("text_offset", "<i8"),
    ]
)
"""One row per trajectory that was put; actions and texts lie in segment 0, where the table lies too."""


class ClosedError(Exception):
    """The other side is gone."""


def send(sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """One message. Descriptors travel with its first byte.

    Raises:
        ClosedError: nobody listens any more.
    """
    data = json.dumps(message, separators=(",", ":")).encode()
    data = _LENGTH.pack(len(data)) + data
    try:
        sent = socket.send_fds(sock, [data], list(fds)) if fds else sock.send(data)
        sock.sendall(data[sent:])
    except (BrokenPipeError, ConnectionError) as error:
        raise ClosedError from error


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and its descriptors.

    Raises:
        ClosedError: the other side ended.
        TimeoutError: the socket's timeout passed.
    """
    try:
        data, fds, _, _ = socket.recv_fds(sock, 65536, MAX_FDS)
        while data and len(data) < _LENGTH.size:
            data += _more(sock, 65536)
        if not data:
            raise ClosedError
        size = _LENGTH.unpack_from(data)[0] + _LENGTH.size
        while len(data) < size:
            data += _more(sock, size - len(data))
    except ConnectionError as error:
        raise ClosedError from error
    return json.loads(data[_LENGTH.size :]), fds


def _more(sock: socket.socket, size: int) -> bytes:
    data = sock.recv(size)
    if not data:
        raise ClosedError
    return data


@dataclass(frozen=True)
class Job:
    """Where everything lies in a job's memory.

    In: counts, the source, the order, strict mode's second order, debug requests. Out: the answer, rewards,
    message, traceback, debug texts. The source lies first, so that strict mode's child can read it knowing
    nothing else.

    Attributes:
        source: bytes of the source.
        positions: trajectories of the run.
        states: states of them all.
        requests: debug requests.
        debug_bytes: room for one debug text.
        message: room for the message.
    """

    source: int
    positions: int = 0
    states: int = 0
    requests: int = 0
    debug_bytes: int = 0
    message: int = MESSAGE_BYTES

    SOURCE_AT = 64

    @cached_property
    def answer_at(self) -> int:
        return _aligned(self.SOURCE_AT + self.source)

    @cached_property
    def order_at(self) -> int:
        return self.answer_at + 64

    @cached_property
    def second_at(self) -> int:
        return self.order_at + 8 * self.positions

    @cached_property
    def requests_at(self) -> int:
        return self.second_at + 8 * self.positions

    @cached_property
    def rewards_at(self) -> int:
        return _aligned(self.requests_at + 16 * self.requests)

    @cached_property
    def message_at(self) -> int:
        return self.rewards_at + 8 * self.states

    @cached_property
    def traceback_at(self) -> int:
        return self.message_at + self.message

    @cached_property
    def debug_at(self) -> int:
        return self.traceback_at + TRACEBACK_BYTES

    @cached_property
    def size(self) -> int:
        return self.debug_at + self.requests * (8 + self.debug_bytes)

    def pack(self) -> bytes:
        """The counts, as they lie at offset 0."""
        return COUNTS.pack(*(getattr(self, field.name) for field in fields(self)))

    @classmethod
    def unpack(cls, data: bytes) -> Job:
        """The inverse of `pack`."""
        return cls(*COUNTS.unpack_from(data))


def _aligned(offset: int) -> int:
    return -(-offset // 64) * 64
