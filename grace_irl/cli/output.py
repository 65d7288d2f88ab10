"""What commands print: JSON for programs, tables and source for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import Metrics, shown
from grace_irl.runs.codec import plain


def print_json(answer: Mapping[str, object]) -> None:
    """One JSON object on one line of stdout."""
    print(json.dumps(plain(dict(answer)), allow_nan=False), flush=True)


def metrics_object(metrics: Metrics | None) -> dict[str, Any] | None:
    """Metrics as an object for `--json`."""
    found: dict[str, Any] | None = plain(metrics)
    return found


def console() -> Console:
    """Where tables go. Without a terminal lines are as long as they are: a log is not wrapped."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=200)


def metrics_table(rows: Sequence[tuple[str, Metrics | None]], title: str = "") -> Table:
    """A table of metrics, one named row each."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in ("fitness", "auc", "accuracy", "separated", "positive", "negative"):
        table.add_column(name, justify="right")
    for name, metrics in rows:
        if metrics is None:
            table.add_row(name, *["-"] * 6)
            continue
        table.add_row(
            name,
            shown(metrics.fitness),
            f"{metrics.auc:.4f}",
            f"{metrics.accuracy:.4f}",
            "yes" if metrics.separated else "no",
            str(metrics.experts),
            str(metrics.negatives),
        )
    return table


def print_source(out: Console, source: str) -> None:
    """Python source, in colours on a terminal and untouched elsewhere."""
    if out.is_terminal:
        out.print(Syntax(source, "python", word_wrap=True, background_color="default"))
    else:
        print(source, flush=True)


def require_new(path: Path, *, force: bool) -> None:
    """Raises InputError for a file that exists, unless it may be overwritten."""
    if path.is_file() and not force:
        raise InputError(f"{path}: exists already; expected a new file: choose another, or overwrite it with --force")
