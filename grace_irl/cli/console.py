"""The console for tables and lines: text is text here, and never markup."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType  # noqa: TID251  (made harmless here)
from rich.segment import Segment
from rich.text import Text

from grace_irl.cli.stream import HarmlessStream
from grace_irl.text import harmless, line


class PlainConsole(Console):
    """A console on which no text steers the terminal, and none is read as Rich's markup.

    Texts become harmless before Rich measures them, so that columns stay straight; whatever comes another way becomes
    so when it is written. Only what Rich itself adds reaches the terminal as it is: colours, a live line.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    @property
    def file(self) -> IO[str]:
        """Where it writes: past `HarmlessStream`, which would spell colours out, too."""
        found = super().file
        while isinstance(found, HarmlessStream):
            found = found.stream
        return found

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def render_str(self, text: str, **more: Any) -> Text:
        """A text as it is; Rich calls this for every plain one, those in tables included."""
        return super().render_str(harmless(text), **more)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is written: pieces of text with their colours."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(harmless(part.text), part.style)


def console() -> PlainConsole:
    """Standard output. Without a terminal lines are as long as they are: a log is not wrapped."""
    terminal = PlainConsole()
    return terminal if terminal.is_terminal else PlainConsole(width=200)


def say(text: str, *, err: bool = False) -> None:
    """One line to standard output or error, at once."""
    print(line(text), file=sys.stderr if err else sys.stdout, flush=True)
