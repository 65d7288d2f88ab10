"""The output of commands: JSON for programs, tables and source for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.syntax import Syntax
from rich.table import Table

from grace_irl.cli.console import PlainConsole
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import BEST_HERE, Metrics, shown
from grace_irl.programs.characters import canonical
from grace_irl.runs.codec import plain
from grace_irl.text import harmless


def print_json(answer: Mapping[str, object]) -> None:
    """One JSON object on one line of stdout."""
    print(json.dumps(plain(dict(answer)), allow_nan=False), flush=True)


def metrics_object(metrics: Metrics | None) -> dict[str, Any] | None:
    """Metrics as an object for `--json`."""
    found: dict[str, Any] | None = plain(metrics)
    return found


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


def accuracy_line(threshold: float | None) -> str:
    """Which threshold the accuracies of a run's program are at."""
    if threshold is None:
        return f"accuracy: {BEST_HERE}, training and held-out data each (an older version made the run)"
    return f"accuracy: where a reward > {threshold:.6g} counts as an expert's, the best threshold on training data"


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
