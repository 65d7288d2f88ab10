"""Sources split into tokens: what the host may do with text that nobody trusts; it is never parsed or run here."""

from __future__ import annotations

import contextlib
import io
import tokenize

TokenInfo = tokenize.TokenInfo


def normalised(source: str) -> str:
    """The source with line ends as Python's parser counts them, and one at the end."""
    return source.replace("\r\n", "\n").replace("\r", "\n").strip("\n") + "\n"


def tokens(text: str) -> list[TokenInfo]:
    """The tokens that matter (no comments, no empty lines); those up to a mistake where the text is no Python."""
    found: list[TokenInfo] = []
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                found.append(token)
    return found


def names(text: str) -> set[str]:
    """Every name and keyword in a text."""
    return {token.string for token in tokens(text) if token.type == tokenize.NAME}
