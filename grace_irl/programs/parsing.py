"""Functions that parse Python sources, split them into tokens, and check their characters.

Only one thread parses at a time. Up to Python 3.11.7, all threads share one counter for the depth of syntax trees, and
parsing in two threads may raise a SystemError (python/cpython#106905).

The check of characters (`unseen`) refuses invisible characters and characters that reorder a text. With such
characters, a source can look different from the program that runs (CVE-2021-42574), or control the terminal that shows
the source. The check only scans the text, so it is safe outside the sandbox, too.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
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
"""Unicode categories whose characters `unseen` refuses, except LF and tab."""
_WORDS = {
    "Cc": "a control character",
    "Cs": "half of a character",
    "Co": "a character for private use",
    "Cn": "a character that Unicode does not know",
}
_REPORTED = 20


def canonical(source: str) -> str:
    """The source in the form in which it is stored: with LF line ends and without a byte order mark."""
    return source.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")


def unseen(source: str) -> tuple[SourceProblem, ...]:
    """The first `_REPORTED` problems with invisible characters in a source.

    The source must be a result of `canonical`. The same character several times in one line is one problem.

    The check refuses control characters except LF and tab, direction marks, characters of zero width, line and
    paragraph separators, letters and marks without a glyph, and private or unassigned characters. It refuses variation
    selectors after a letter or a digit, because names with and without them look equal. It allows spaces of any width
    above 0.
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
    """The text with a space in place of each character that `unseen` refuses."""
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
        warnings.simplefilter("ignore")  # an invalid escape causes a warning, and in later Python versions an error
        return ast.parse(source, filename)


def literal(text: str) -> object:
    """The value of a Python literal.

    Raises:
        ValueError: the text is an expression, but not a literal.
        SyntaxError, RecursionError, MemoryError: as `ast.parse`.
    """
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


def why_not_compiled(source: str, filename: str) -> str:
    """The reason why a source does not compile, in one line; "" if it compiles. The compiler runs in another process.

    Args:
        source: text to compile.
        filename: file name of the source, for the reason.
    """
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
    """The canonical source without empty lines at its start and end, but with a line end after the last line."""
    text = canonical(source).strip("\n") + "\n"
    return f"{text}\n" if text.endswith("\\\n") else text  # a line that ends in a backslash needs a next line


def every_token(text: str) -> list[TokenInfo]:
    """All tokens, including comments and empty lines. The tokens end at the first syntax error."""
    found: list[TokenInfo] = []
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            found.append(token)
    return found


def tokens(text: str) -> list[TokenInfo]:
    """All tokens except comments and empty lines."""
    return [token for token in every_token(text) if matters(token)]


def matters(token: TokenInfo) -> bool:
    """Whether a token is neither a comment nor an empty line."""
    return token.type not in (tokenize.COMMENT, tokenize.NL)


def statements(found: Iterable[TokenInfo]) -> Iterator[list[TokenInfo]]:
    """Yield the logical lines that begin at the left margin, each as a list of tokens.

    A logical line may extend over several lines of text, for example within brackets.

    Args:
        found: the result of `tokens`.
    """
    line: list[TokenInfo] = []
    for token in found:
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if line and line[0].start[1] == 0:
                yield line
            line = []
        elif token.type not in (tokenize.INDENT, tokenize.DEDENT):
            line.append(token)


_FIELD_OF_F_STRING = re.compile(r"\{([^{}]*)")


def names(text: str) -> set[str]:
    """All names and keywords in a Python source, also in f-strings.

    Up to Python 3.11, an f-string is a single token. Words in its format specifications then count as names, too.
    """
    found: set[str] = set()
    for token in tokens(text):
        if token.type == tokenize.NAME:
            found.add(token.string)
        elif token.type == tokenize.STRING and "f" in re.split("['\"]", token.string, maxsplit=1)[0].lower():
            for field in _FIELD_OF_F_STRING.findall(token.string.replace("{{", "")):
                found.update(re.findall(r"\b[^\W\d]\w*", field))
    return found


def only_reads(text: str, name: str) -> bool:
    """Whether a definition uses a name only to read a variable of its module.

    Then no argument, attribute, member of a class or variable of the definition has this name.
    """
    for node in ast.walk(parse(text)):
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)) or isinstance(node, ast.Constant):
            continue
        fields = [value for _, value in ast.iter_fields(node)]
        if any(name == value or (isinstance(value, list) and name in value) for value in fields):
            return False
    return True
