"""`grace-irl export`: a program of a run as a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grace_irl.atomic import write_atomically
from grace_irl.cli.output import console, print_json
from grace_irl.errors import InputError
from grace_irl.runs.provenance import export_record
from grace_irl.runs.run import best_record, opened


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, such as reward.py.")],
    program: Annotated[
        str,
        typer.Option("--program", metavar="ID", help="Another program than the best; a prefix of its id will do."),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Write the best program of a run as one self-contained Python file with its provenance."""
    from grace_irl.cli.show import find

    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InputError(f"{out}: cannot be written there; expected a file in a folder that exists")
    if out.exists() and not force:
        raise InputError(f"{out}: exists already; expected a new file: choose another, or overwrite it with --force")
    with opened(run) as (store, config):
        record = find(store, run, program) if program else best_record(store, run)
        if not record.evaluation.valid:
            raise InputError(f"{record.program.id}: invalid ({record.evaluation.status}); expected a valid program")
        write_atomically(out, export_record(record, store, config))
    if as_json:
        print_json({"run": str(run), "reward_path": str(out), "program": record.program.id})
    else:
        console().print(f"reward: {out}", soft_wrap=True)
