"""Parses Python, one thread at a time.

Up to Python 3.11.7 an interpreter keeps one count of the depth of syntax trees for all its threads: if two parse at
once, one of them may end in a SystemError (python/cpython#106905).
"""

from __future__ import annotations

import ast
import contextlib
import io
import subprocess
import sys
import threading
import tokenize
import warnings
from collections.abc import Iterable, Iterator

from grace_irl.programs.characters import canonical

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
    """The reason why a file with this text does not compile, in a line; "" if it does. A new process tries it."""
    python = [sys.executable, "-I", "-S", "-W", "ignore", "-c", _COMPILE, filename]
    try:
        tried = subprocess.run(
            python, input=source.encode("utf-8", "surrogatepass"), capture_output=True, check=False, timeout=_WITHIN_S
        )
    except subprocess.TimeoutExpired:
        return f"not done in {_WITHIN_S:g} s"
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return "" if tried.returncode == 0 else said[-1] if said else f"exit code {tried.returncode}"


TokenInfo = tokenize.TokenInfo


def normalised(source: str) -> str:
    """The source with line ends as Python's parser counts them, and one at the end."""
    text = canonical(source).strip("\n") + "\n"
    return f"{text}\n" if text.endswith("\\\n") else text  # a line that goes on needs one that it goes on to


def every_token(text: str) -> list[TokenInfo]:
    """All tokens, comments and empty lines among them; those up to the mistake if the text is no Python."""
    found: list[TokenInfo] = []
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            found.append(token)
    return found


def tokens(text: str) -> list[TokenInfo]:
    """Those that matter: no comments, no empty lines."""
    return [token for token in every_token(text) if matters(token)]


def matters(token: TokenInfo) -> bool:
    """Whether a token is neither a comment nor an empty line."""
    return token.type not in (tokenize.COMMENT, tokenize.NL)


def statements(found: Iterable[TokenInfo]) -> Iterator[list[TokenInfo]]:
    """The logical lines at the left margin, from tokens that matter."""
    line: list[TokenInfo] = []
    for token in found:
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if line and line[0].start[1] == 0:
                yield line
            line = []
        elif token.type not in (tokenize.INDENT, tokenize.DEDENT):
            line.append(token)


def names(text: str) -> set[str]:
    """Every name and keyword in a text."""
    return {token.string for token in tokens(text) if token.type == tokenize.NAME}
