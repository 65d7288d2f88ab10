"""Parses Python, one thread at a time.

Up to Python 3.11.7 an interpreter keeps one count of the depth of syntax trees for all its threads: where two parse at
once, one of them may end in a SystemError (python/cpython#106905).
"""

from __future__ import annotations

import ast
import threading

_LOCK = threading.Lock()


def parse(source: str, filename: str = "<unknown>") -> ast.Module:
    """The syntax tree of a source.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _LOCK:
        return ast.parse(source, filename)
