"""The console for tables and lines: text is text here, and never markup."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType  # noqa: TID251  (made harmless here)
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from grace_irl.errors import InputError
from grace_irl.methods.account import Figures
from grace_irl.programs.parsing import canonical
from grace_irl.text import HarmlessStream, harmless, line


class PlainConsole(Console):
    """A console on which no text steers the terminal, and none is read as Rich's markup.

    Texts become harmless before Rich measures them, so that columns stay straight; whatever comes another way becomes
    so when it is written. Only what Rich itself adds reaches the terminal as it is: colours, a live line.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    @property
    def file(self) -> IO[str]:
        """Its stream: past `HarmlessStream`, which would spell colours out, too."""
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
        """The text to write: pieces with their colours."""
        for part in super().render(renderable, options):
            yield part if part.control else Segment(harmless(part.text), part.style)


def console() -> PlainConsole:
    """Standard output. Without a terminal lines are as long as they are: a log is not wrapped."""
    terminal = PlainConsole()
    return terminal if terminal.is_terminal else PlainConsole(width=200)


def say(text: str, *, err: bool = False) -> None:
    """One line to standard output or error, at once."""
    print(line(text), file=sys.stderr if err else sys.stdout, flush=True)


def plain(value: object) -> Any:
    """A value for strict JSON: dataclasses as objects, tuples as lists, what is not finite as null."""
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
    """One JSON object on one line of stdout."""
    print(json.dumps(plain(dict(answer)), allow_nan=False), flush=True)


def plain_table(*columns: str, title: str = "", numbers: bool = False) -> Table:
    """A table without lines. With `numbers`, all columns but the first stand to the right."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if numbers and place else "left")
    return table


def table_of(figures: Figures) -> Table:
    """A table of a method's figures, one named row each."""
    table = plain_table(*figures.head, title=figures.title, numbers=True)
    for row in figures.rows:
        table.add_row(*row)
    return table


def print_source(out: PlainConsole, source: str) -> None:
    """Python source, in colours on a terminal and plain elsewhere; what a reader would not see is spelt out."""
    source = canonical(source)
    if out.is_terminal:
        out.print(Syntax(harmless(source), "python", word_wrap=True, background_color="default"))
    else:
        print(source, flush=True)


def require_new(path: Path, *, force: bool) -> None:
    """Raises InputError for a file that exists, unless it may be overwritten."""
    if path.is_file() and not force:
        raise InputError(f"{path}: exists already; expected a new file: choose another, or overwrite it with --force")
