"""`grace-irl report`: the report of a run, as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grace_irl.cli.console import say
from grace_irl.cli.options import Kind, MaxMemory


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or of one with --expand; it may still be running.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write it, such as report.html.", show_default="RUN/report.html"),
    ] = None,
    demos: Annotated[
        list[str] | None,
        typer.Option(
            "--demos",
            metavar="PATH…",
            help="Demonstrations whose states are shown; for a run that somebody else made, or whose files moved.",
            show_default="those that the run names, if you started it",
        ),
    ] = None,
    kind: Kind = None,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
) -> None:
    """Write the report of a run: one HTML file with reward, evidence, progress and curves. Prints the file's path."""
    from grace_irl.config import DataConfig
    from grace_irl.demos import load
    from grace_irl.demos.trajectory import Demonstrations
    from grace_irl.report.write import UNSHOWN, write_report
    from grace_irl.runs.data import columns_of

    def read(data: DataConfig) -> Demonstrations:  # the run gives the roles, so any role will do here
        return load((), experts=demos or (), kind=kind or "", columns=columns_of(data))

    path = write_report(run, out, read if demos else None, keep_states=not demos)
    say(str(path))
    if demos and UNSHOWN in path.read_text("utf-8"):
        missing = "not in --demos (or in the rollouts of its expansion)"
        say(f"grace-irl: some states of the run are {missing}, so the report leaves them out", err=True)


def report_of_fit(folder: Path) -> Path | None:
    """Write the report at the end of a fit, and return its path. After a failure, print a warning and return None."""
    from grace_irl.report import write

    return write.report_of_fit(folder, lambda text: say(f"grace-irl: warning: {text}", err=True))
