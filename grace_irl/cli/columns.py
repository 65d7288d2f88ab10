"""Options that choose the columns of a table, and the reader of option values that list names, such as `a,b,c`."""

from __future__ import annotations

from typing import Annotated

import typer

from grace_irl.demos.foreign.columns import Columns
from grace_irl.errors import InputError

StateColumns = Annotated[str | None, typer.Option(help="Columns of a table that are the numbers of a state: a,b,c.")]
EpisodeColumn = Annotated[str | None, typer.Option(help="Column of a table that numbers the episodes.")]


def chosen_columns(state: str | None, episode: str | None) -> Columns:
    """The user's choice of columns, from the values of `--state-columns` and `--episode-column`."""
    return Columns(() if state is None else fields_named(state, "--state-columns"), episode or "")


def fields_named(text: str, flag: str = "--fields") -> tuple[str, ...]:
    """The names in a text such as `a,b,c`.

    Raises:
        InputError: a name is empty or occurs twice.
    """
    names = tuple(name.strip() for name in text.split(","))
    if "" in names or len(set(names)) < len(names):
        raise InputError(f"{flag} {text[:80]!r}; expected different names, separated by commas")
    return names
