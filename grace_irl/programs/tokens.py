"""Sources split into tokens: what the host may do with text that nobody trusts; it is never parsed or run here."""

from __future__ import annotations

import contextlib
import io
import tokenize
from collections.abc import Iterable, Iterator

from grace_irl.programs.characters import canonical

TokenInfo = tokenize.TokenInfo


def normalised(source: str) -> str:
    """The source with line ends as Python's parser counts them, and one at the end."""
    text = canonical(source).strip("\n") + "\n"
    return f"{text}\n" if text.endswith("\\\n") else text  # a line that goes on needs one that it goes on to


def every_token(text: str) -> list[TokenInfo]:
    """All tokens, comments and empty lines among them; those up to a mistake where the text is no Python."""
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
