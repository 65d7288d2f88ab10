"""Signals that end a command. At SIGTERM, which schedulers send, `fit` and `compare` save and clean up as at Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SAVES = ("fit", "compare")
"""Commands that treat SIGTERM as Ctrl-C."""
_code = 128 + signal.SIGINT


def interrupted_code() -> int:
    """Exit code of an interrupted command: 143 after SIGTERM, otherwise 130."""
    return _code


@contextmanager
def terminable(command: str | None) -> Iterator[None]:
    """While the context is open, treat the first SIGTERM as Ctrl-C, if the command saves and this is the main thread.

    Further SIGTERMs are ignored: the command is about to end. Some programs, such as `timeout`, send two.
    """
    global _code
    _code = 128 + signal.SIGINT
    if command not in SAVES or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        global _code
        if _code == 128 + number:
            return
        _code = 128 + number
        # The handler is asyncio's while a search runs. In a script's background, the shell has Ctrl-C ignored.
        ctrl_c = signal.getsignal(signal.SIGINT)
        (ctrl_c if callable(ctrl_c) else signal.default_int_handler)(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def leave(code: int) -> None:
    """Ignore signals while the interpreter shuts down, so that the process ends with this exit code.

    A command that was interrupted may still wait for its threads, so another Ctrl-C counts.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    # Python sends itself SIGINT at its end if the last text given to `exec` was interrupted, as in a dataclass.
    exec("")
    past = {128 + signal.SIGINT: (), 128 + signal.SIGTERM: (signal.SIGTERM,)}
    for number in past.get(code, (signal.SIGINT, signal.SIGTERM)):
        signal.signal(number, signal.SIG_IGN)
