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
    """While the context is open, treat the first SIGTERM as Ctrl-C.

    This holds only for the commands in `SAVES`, and only in the main thread. Further SIGTERMs are ignored: the command
    is about to end. Some programs, such as `timeout`, send two.
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
        # While a search runs, the handler of SIGINT is asyncio's. A shell makes commands in the background of a script
        # ignore SIGINT. Then there is no handler to call.
        ctrl_c = signal.getsignal(signal.SIGINT)
        (ctrl_c if callable(ctrl_c) else signal.default_int_handler)(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def leave(code: int) -> None:
    """Ignore Ctrl-C and SIGTERM while the interpreter shuts down, so that the process ends with this exit code.

    After an interruption, the command may still wait for its threads. So another Ctrl-C is not ignored then.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    # If Ctrl-C interrupted the last call of `exec`, Python sends itself SIGINT at the end of the process. One more call
    # of `exec` prevents that. The decorator `dataclass`, for example, calls `exec`.
    exec("")
    past = {128 + signal.SIGINT: (), 128 + signal.SIGTERM: (signal.SIGTERM,)}
    for number in past.get(code, (signal.SIGINT, signal.SIGTERM)):
        signal.signal(number, signal.SIG_IGN)
