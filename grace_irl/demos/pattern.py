"""A regular expression of anybody, searched in texts by a process that is ended where it does not end by itself."""

from __future__ import annotations

import json
import re
import reprlib
import subprocess
import sys
import warnings
import weakref
from multiprocessing.connection import wait

from grace_irl.errors import InputError

SEARCH_S = 10.0
"""For one text. Backtracking may take longer than anybody waits, and no thread can stop it."""

SEARCH_BYTES = 1 << 30
"""Of address space: backtracking takes memory, too."""

CHILD = f"""
import json, re, resource, sys, warnings
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, ({SEARCH_BYTES}, {SEARCH_BYTES}))
pattern = re.compile(json.loads(sys.stdin.readline()), re.IGNORECASE)
for line in sys.stdin:
    sys.stdout.write("01"[pattern.search(json.loads(line)) is not None])
    sys.stdout.flush()
"""


class Pattern:
    """A regular expression of Python's; case is ignored.

    Its process begins with the first search, and ends with the object.

    Args:
        text: the expression.
        name: of the option or key that gives it, for messages.

    Raises:
        InputError: it is none.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._process: subprocess.Popen[bytes] | None = None
        try:
            with warnings.catch_warnings():  # of what a later Python reads otherwise
                warnings.simplefilter("ignore")
                re.compile(text, re.IGNORECASE)
        except (re.error, OverflowError, RecursionError, ValueError) as error:  # ValueError: of flags
            raise InputError(
                f"{name} {reprlib.repr(text)}: no regular expression ({str(error)[:200]}); expected one of Python's"
            ) from None

    def found(self, text: str) -> bool:
        """Whether the expression is found in a text.

        Raises:
            InputError: the search takes too long, or too much memory.
        """
        process = self._process = self._process or self._begun()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(text).encode() + b"\n")
            process.stdin.flush()
            said = process.stdout.read(1) if wait([process.stdout.fileno()], SEARCH_S) else b""
        except BrokenPipeError:  # it ended at the expression
            said = b""
        if not said:
            process.kill()
            raise InputError(
                f"{self._name} {reprlib.repr(self._text)}: searching a text of {len(text):,} characters takes more "
                f"than {SEARCH_S:g} s or {SEARCH_BYTES >> 30} GiB; expected a simpler expression, without "
                "repetitions of repetitions"
            )
        return said == b"1"

    def _begun(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        weakref.finalize(self, _end, process)
        assert process.stdin is not None
        process.stdin.write(json.dumps(self._text).encode() + b"\n")
        return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()
