"""Parses Python, one thread at a time.

Up to Python 3.11.7 an interpreter keeps one count of the depth of syntax trees for all its threads: where two parse at
once, one of them may end in a SystemError (python/cpython#106905).
"""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
import warnings

_LOCK = threading.Lock()
_COMPILE = "import sys; compile(sys.stdin.buffer.read(), sys.argv[1], 'exec', dont_inherit=True)"
_WITHIN_S = 30.0


def parse(source: str, filename: str = "<unknown>") -> ast.Module:
    """The syntax tree of a source.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that a later Python refuses
        return ast.parse(source, filename)


def literal(text: str) -> object:
    """The value of literals; raises as `parse`."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


def why_not_compiled(source: str, filename: str) -> str:
    """Why a file with this text does not compile, in a line; "" where it does. A process of its own tries it."""
    python = [sys.executable, "-I", "-S", "-W", "ignore", "-c", _COMPILE, filename]
    try:
        tried = subprocess.run(
            python, input=source.encode("utf-8", "surrogatepass"), capture_output=True, check=False, timeout=_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        return f"not done in {_WITHIN_S:g} s"
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if tried.returncode == 0 else said[-1] if said else f"exit code {tried.returncode}"
