"""Communication between the host, its zygotes and their children, without pickle.

The host is the process that uses the sandbox, and a zygote is the process that forks a child for each program. Host and
zygote exchange JSON and file descriptors over a socket. Children that answer several requests, such as the turns of
a session, use pipes. The other children answer in memory that they share with the host, laid out by `JobLayout`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any, NamedTuple, get_args

from grace_irl.sandbox.protocol import Status

MESSAGE_BYTES = 4096
TRACEBACK_BYTES = 16384
INSPECTION_BYTES = 4 << 20
"""Maximum lengths in bytes of three texts that a child writes: a message for the user, the program's traceback, and the
JSON of an inspection (facts about a program's source)."""
MAX_FDS = 4
"""Maximum number of file descriptors that `receive` accepts at once."""

STATUSES: tuple[Status, ...] = get_args(Status)

CODES: dict[str, int] = {status: code for code, status in enumerate(STATUSES, 1)}
"""Code of each status in a child's answer. Codes start at 1, because the memory for a missing answer still holds 0."""

_LENGTH = struct.Struct("<I")
ANSWER = struct.Struct("<4q")  # status code, bytes of message, bytes of traceback, 1 if transitions are rewarded
HEADER = struct.Struct("<15q")  # the numbers of a `JobLayout`
SOURCE_AT = 128  # offset of the source in a job's memory, bytes


class ClosedError(Exception):
    """The other process has closed the connection."""


def send(sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send a message with file descriptors.

    Raises:
        ClosedError: the other process has closed the connection.
    """
    data = json.dumps(message, separators=(",", ":")).encode()
    data = _LENGTH.pack(len(data)) + data
    try:
        sent = socket.send_fds(sock, [data], list(fds)) if fds else sock.send(data)
        sock.sendall(data[sent:])
    except (BrokenPipeError, ConnectionError) as error:
        raise ClosedError from error


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and its file descriptors.

    Raises:
        ClosedError: the other process has closed the connection.
        TimeoutError: no message came within the socket's timeout.
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


_PIECE = 1 << 16
"""Number of bytes to read from a pipe at once. This is the capacity of a pipe on Linux."""

CHILD_IN, CHILD_OUT = 3, 4
"""File descriptors of a child that answers several requests: the pipe to read from, and the pipe to write to."""


class PipeReader:
    """Reader of this child's pipe. It reads ahead in large pieces, because each system call costs time."""

    def __init__(self) -> None:
        self._data, self._at = b"", 0

    def read(self, size: int) -> bytes:
        """The next `size` bytes. The child ends if the other process has closed the pipe."""
        at, end = self._at, self._at + size
        if end > len(self._data):
            self._fill(size)
            at, end = 0, size
        self._at = end
        return self._data[at:end]

    def _fill(self, size: int) -> None:
        """Read until the buffer holds at least `size` bytes. Bytes that `read` has already returned are dropped."""
        parts = [self._data[self._at :]]
        left = size - len(parts[0])
        while left > 0:
            parts.append(os.read(CHILD_IN, max(left, _PIECE)))
            if not parts[-1]:
                os._exit(0)
            left -= len(parts[-1])
        self._data = b"".join(parts)


def read_pipe(size: int) -> bytes:
    """Return the next `size` bytes for this child. The child ends if the other process has closed the pipe."""
    data = os.read(CHILD_IN, size)
    if len(data) == size:
        return data
    parts, left = [data], size - len(data)
    while left:
        parts.append(os.read(CHILD_IN, left))
        if not parts[-1]:
            os._exit(0)
        left -= len(parts[-1])
    return b"".join(parts)


def write_pipe(data: bytes) -> None:
    """Send an answer of this child."""
    left = memoryview(data)
    while len(left):
        left = left[os.write(CHILD_OUT, left) :]


def _more(sock: socket.socket, size: int) -> bytes:
    data = sock.recv(size)
    if not data:
        raise ClosedError
    return data


class JobLayout(NamedTuple):
    """Layout of the memory of a job (`job.py`).

    The memory begins with the attributes of this class as integers, which a child can read quickly.

    The input is the source, the order of the trajectories in strict mode's second pass, and the debug requests. A debug
    request names a trajectory and a step. The output is the answer, the rewards, the message, the traceback and the
    debug texts. The source has a fixed offset, so that strict mode can read the source without the rest.

    Attributes:
        source: length of the source in bytes. The source starts at `SOURCE_AT`.
        first: index of the job's first trajectory in the run, for messages. A run over many trajectories takes several
            jobs; `first` is 0 in the first job.
        positions: number of trajectories of the job.
        states: total number of states of these trajectories.
        requests: number of debug requests.
        debug_bytes: maximum length of one debug text in bytes.
        message: maximum length of the message in bytes.
        answer_at, second_at, requests_at, rewards_at, message_at, traceback_at, debug_at: offsets in bytes.
        size: total size in bytes.
    """

    source: int
    first: int
    positions: int
    states: int
    requests: int
    debug_bytes: int
    message: int
    answer_at: int
    second_at: int
    requests_at: int
    rewards_at: int
    message_at: int
    traceback_at: int
    debug_at: int
    size: int

    @classmethod
    def plan(
        cls, source: int, positions: int, states: int, requests: int, debug_bytes: int, message: int, first: int
    ) -> JobLayout:
        """Compute the offsets and the total size. The arguments are attributes of the class."""
        answer_at = _aligned(SOURCE_AT + source)
        second_at = answer_at + 64
        requests_at = second_at + 8 * positions
        rewards_at = _aligned(requests_at + 16 * requests)
        message_at = rewards_at + 8 * states
        traceback_at = message_at + message
        debug_at = traceback_at + TRACEBACK_BYTES
        size = debug_at + requests * (8 + debug_bytes)
        offsets = (answer_at, second_at, requests_at, rewards_at, message_at, traceback_at, debug_at)
        return cls(source, first, positions, states, requests, debug_bytes, message, *offsets, size)


def _aligned(offset: int) -> int:
    return -(-offset // 64) * 64
