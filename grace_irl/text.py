"""Escaping of untrusted text for a terminal, a page or a program.

Python's escape sequences replace characters that control a terminal, are invisible, or reorder other text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO, cast

KEPT = "\n\t"  # control characters that are not escaped
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Unicode letters and marks that are invisible, but allowed in names of a program."""

_BREAKS = re.compile(r"[\r\n\t]+")

SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Variation selectors, which are invisible and change the look of the character before them."""


def harmless(text: str) -> str:
    """The text with all invisible characters escaped as in a Python literal. Line feeds and tabs stay.

    A character is visible if `str.isprintable` accepts it and it is not in `FILLERS`. Control, format, private and
    unassigned characters, lone surrogates, and all spaces except U+0020 count as invisible.
    """
    if text.isprintable() and FILLERS.isdisjoint(text):
        return text
    return "".join(sign if shows(sign) or sign in KEPT else escaped(sign) for sign in text)


def line(text: str) -> str:
    """The text as from `harmless`, but in one line. One space replaces each sequence of line ends and tabs."""
    return harmless(_BREAKS.sub(" ", text))


def shows(sign: str) -> bool:
    """Whether a character is visible to a reader."""
    return sign.isprintable() and sign not in FILLERS


def escaped(sign: str) -> str:
    """A character escaped as in a Python literal, such as `\\x1b`, `\\u202e` or `\\U000e0041`."""
    return ascii(sign)[1:-1]


def quoted(text: str) -> str:
    """A Python string literal on one line, in double quotes, with quotes and invisible characters escaped."""
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    # Variation selectors are printable for Python, so `harmless` alone would keep them.
    plain = SELECTORS.sub(lambda found: escaped(found[0]), inside)
    return f'"{harmless(plain)}"'


def packed(entries: Sequence[str], width: int, indent: str = "    ") -> list[str]:
    """Lay out entries in lines of at most `width` characters, with a comma after each entry."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + len(entry) + 2 <= width:
            lines[-1] += f" {entry},"
        else:
            lines.append(f"{indent}{entry},")
    return lines


class HarmlessStream:
    """A text stream that escapes invisible characters in all output, also of warnings, logs and libraries.

    The Rich console (`grace_irl.cli.console`) writes directly to the inner stream. The console escapes text by itself,
    and its colour codes must not be escaped.

    Args:
        stream: the inner stream. It receives the escaped text, and also all calls of other methods.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the escaped text, and return the length of the original."""
        self.stream.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for each in lines:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        if name == "stream":  # `copy` reads this attribute before `__init__` has set it.
            raise AttributeError(name)
        return getattr(self.stream, name)


def harmless_stream(stream: TextIO) -> TextIO:
    """The stream wrapped in a `HarmlessStream`."""
    return cast(TextIO, HarmlessStream(stream))
