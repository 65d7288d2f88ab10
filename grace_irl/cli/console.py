"""Output to the console: tables, lines and JSON. Text is never interpreted as markup."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Mapping
from typing import IO, Any

from pygments.token import Comment, Keyword, Name, Number, String
from rich.console import Console, ConsoleOptions, RenderableType  # noqa: TID251  (`PlainConsole` escapes its text)
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from grace_irl.cli.fitting import tables_of, wrapped
from grace_irl.methods.account import Figures
from grace_irl.programs.parsing import canonical
from grace_irl.text import HarmlessStream, harmless, line

THEME = Theme(dict.fromkeys(("progress.elapsed", "progress.remaining", "progress.download"), "none"))
"""Times and sizes of progress displays in the terminal's own text colour. Rich's yellow is unreadable on white."""
SOURCE = ANSISyntaxTheme(
    {
        Comment: Style(color="bright_black", italic=True),
        Keyword: Style(color="blue", bold=True),
        Name.Function: Style(bold=True),
        Name.Class: Style(bold=True),
        Number: Style(color="magenta"),
        String: Style(color="green"),
    }
)
"""Colours of Python source, from the terminal's palette. White and yellow are avoided: some backgrounds hide them."""


class PlainConsole(Console):
    """A console that escapes control characters in all text, and does not interpret Rich's markup.

    Plain strings are escaped before Rich measures them, so that columns stay aligned. Other text is escaped when it is
    written. Only Rich's own control sequences, for colours and for progress displays, reach the terminal unchanged.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, theme=THEME, **settings)

    @property
    def file(self) -> IO[str]:
        """The output stream without its `HarmlessStream` wrapper. The wrapper would also escape colours."""
        found = super().file
        while isinstance(found, HarmlessStream):
            found = found.stream
        return found

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    @property
    def is_live(self) -> bool:
        """Whether a display can be updated in place. Rich's `is_terminal` is also true if FORCE_COLOR is set."""
        return self.file.isatty() and not self.is_dumb_terminal

    def render_str(self, text: str, **more: Any) -> Text:
        """Escape a string. Rich calls this method for every plain string, also in tables."""
        return super().render_str(harmless(text), **more)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments to write, with escaped text. `tables_of` lays out a table that is too wide."""
        shown = [renderable]
        if isinstance(renderable, Table):
            shown = [*tables_of(renderable, (options or self.options).max_width)]
        for each in shown:
            for part in super().render(each, options):
                yield part if part.control else Segment(harmless(part.text), part.style)


def console() -> PlainConsole:
    """A console on standard output. Without a terminal it is 200 characters wide, so that lines are rarely wrapped."""
    terminal = PlainConsole()
    return terminal if terminal.file.isatty() else PlainConsole(width=200)


def waiting() -> PlainConsole:
    """A console on stderr for displays that are updated in place, and which stay away without a terminal for them."""
    terminal = PlainConsole(stderr=True)
    return terminal if terminal.is_live else PlainConsole(stderr=True, force_terminal=False)


def say(text: str, *, err: bool = False) -> None:
    """Print one line to stdout or stderr, and flush the stream. On a terminal, break a long line between words."""
    out, text = sys.stderr if err else sys.stdout, line(text)
    print(wrapped(text, shutil.get_terminal_size().columns) if out.isatty() else text, file=out, flush=True)


def plain(value: object) -> Any:
    """Convert a value for strict JSON: dataclasses to objects, tuples to lists, non-finite numbers to null."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(answer: Mapping[str, object]) -> None:
    """Print one JSON object on one line of standard output."""
    print(json.dumps(plain(dict(answer)), allow_nan=False), flush=True)


def plain_table(*columns: str, title: str = "", numbers: bool = False) -> Table:
    """A table without borders. If `numbers` is true, all columns except the first are right-aligned."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if numbers and place else "left")
    return table


def table_of(figures: Figures) -> Table:
    """A table of the figures that a search method shows for a program, such as its fitness."""
    table = plain_table(*figures.head, title=figures.title, numbers=True)
    for row in figures.rows:
        table.add_row(*row)
    return table


def print_source(out: PlainConsole, source: str) -> None:
    """Print Python source in canonical form, and in colours on a terminal. Invisible characters are escaped."""
    source = canonical(source)
    if out.is_terminal:
        out.print(Syntax(harmless(source), "python", theme=SOURCE, word_wrap=True, background_color="default"))
    else:
        print(source, flush=True)
