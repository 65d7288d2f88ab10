"""Parses Python, one thread at a time, and looks at the characters of a source.

Up to Python 3.11.7 an interpreter keeps one count of the depth of syntax trees for all its threads: if two parse at
once, one of them may end in a SystemError (python/cpython#106905).

What hides in a source or reorders it makes a reader approve another program than the one that runs (CVE-2021-42574),
and steers the terminal that shows it. A scan of the text finds them, so the host may make it, too.
"""

from __future__ import annotations

import ast
import contextlib
import io
import subprocess
import sys
import threading
import tokenize
import unicodedata
import warnings
from collections.abc import Iterable, Iterator

from grace_irl.programs.contract import SourceProblem
from grace_irl.text import FILLERS, SELECTORS, escaped

BOM = "\ufeff"
_REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_WORDS = {
    "Cc": "a control character",
    "Cs": "half of a character",
    "Co": "a character for private use",
    "Cn": "a character that Unicode does not know",
}
_REPORTED = 20


def canonical(source: str) -> str:
    """The source as it is kept: lines end in LF, as Python's parser has them, and no byte order mark begins it."""
    return source.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")


def unseen(source: str) -> tuple[SourceProblem, ...]:
    """Characters of a canonical source that a reader does not see: each once on a line, the first of them only.

    Refused are control characters but LF and tab, direction marks, characters without width, line and paragraph
    separators, letters and marks that show nothing, and characters that Unicode leaves private or unassigned; also
    variation selectors behind a letter or a digit, if they tell equal names apart. Spaces of other widths stay.
    """
    if source.isascii() and source.replace("\n", "").replace("\t", "").isprintable():
        return ()
    found: dict[tuple[int, str], SourceProblem] = {}
    for place, sign in _refused(source):
        number = source.count("\n", 0, place) + 1
        if (number, sign) not in found:
            column = place - source.rfind("\n", 0, place)
            found[number, sign] = SourceProblem(number, _said(sign, column), "syntax")
            if len(found) == _REPORTED:
                break
    return tuple(found.values())


def seen(text: str) -> str:
    """A text with a space in the place of each character that a source may not hold."""
    signs = list(text)
    for place, _ in _refused(text):
        signs[place] = " "
    return "".join(signs)


def _refused(text: str) -> Iterator[tuple[int, str]]:
    before = ""
    for place, sign in enumerate(text):
        if sign not in "\n\t" and not " " <= sign <= "~":
            hides = sign in FILLERS or unicodedata.category(sign) in _REFUSED
            if hides or (SELECTORS.match(sign) and f"x{before}".isidentifier() and before):
                yield place, sign
        before = sign


def _said(sign: str, column: int) -> str:
    name = unicodedata.name(sign, "") or _WORDS.get(unicodedata.category(sign), "a character without a name")
    return (
        f"U+{ord(sign):04X}, {name}, in column {column}: a reader does not see it; "
        f'leave it out, or write "{escaped(sign)}" in a string'
    )


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
