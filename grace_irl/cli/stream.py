"""Standard output and error as commands have them: what is written arrives harmless, whoever writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO, cast

from grace_irl.text import harmless


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
