"""Text of others, made harmless for a terminal, a page or a program.

What steers a terminal, hides, or reorders what a reader sees becomes an escape; inside a program it is a literal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO, cast

KEPT = "\n\t"
FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks of Unicode that show nothing: programs could name things by them."""

_BREAKS = re.compile(r"[\r\n\t]+")

SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Variation selectors: they choose the look of the character before them, and show nothing themselves."""


def harmless(text: str) -> str:
    """Text that shows all that it holds; lines and tabs stay, what cannot be seen is written as in a Python literal.

    Printable is what `str.isprintable` says: no control, format, private, unassigned or half character, and of all
    spaces only the plain one. What is harmless already stays as it is.
    """
    if text.isprintable() and FILLERS.isdisjoint(text):
        return text
    return "".join(sign if shows(sign) or sign in KEPT else escaped(sign) for sign in text)


def line(text: str) -> str:
    """The same in one line: a space stands for line ends and tabs."""
    return harmless(_BREAKS.sub(" ", text))


def shows(sign: str) -> bool:
    """Whether a reader sees a character as it is."""
    return sign.isprintable() and sign not in FILLERS


def escaped(sign: str) -> str:
    """A character as a Python literal spells it: `\\x1b`, `\\u202e`, `\\U000e0041`."""
    return ascii(sign)[1:-1]


def quoted(text: str) -> str:
    """A Python string literal in double quotes on one line, with nothing in it that ends it or hides in it."""
    inside = json.dumps(text, ensure_ascii=False)[1:-1]
    # What cannot be seen, or not be written to a file, is spelt out: control and direction marks, lone surrogates.
    plain = SELECTORS.sub(lambda found: escaped(found[0]), inside)
    return f'"{harmless(plain)}"'


def packed(entries: Sequence[str], width: int, indent: str = "    ") -> list[str]:
    """Lines of entries, each with its comma, as many to a line as fit."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + len(entry) + 2 <= width:
            lines[-1] += f" {entry},"
        else:
            lines.append(f"{indent}{entry},")
    return lines


class HarmlessStream:
    """A text stream that spells out what would steer a terminal: of prints, warnings, logs and libraries alike.

    A console of Rich (`grace_irl.cli.console`) writes past it, since it colours text that it has made harmless itself.

    Args:
        stream: where the text goes; everything but writing is its own.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a text; returns how many characters were given."""
        self.stream.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes several."""
        for each in lines:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        if name == "stream":  # before `__init__`, where a copy is made
            raise AttributeError(name)
        return getattr(self.stream, name)


def harmless_stream(stream: TextIO) -> TextIO:
    """The same stream, made harmless."""
    return cast(TextIO, HarmlessStream(stream))
