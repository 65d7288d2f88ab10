"""`grace-irl export`: write a program, the shared functions or the answers of a run to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grace_irl.atomic import require_new, write_atomically
from grace_irl.cli.console import print_json, say
from grace_irl.errors import InputError
from grace_irl.runs.provenance import export_record
from grace_irl.runs.run import best_record, opened


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write, such as reward.py or library.py.")
    ] = None,
    program: Annotated[
        str,
        typer.Option("--program", metavar="ID", help="Another program than the best; a prefix of its id will do."),
    ] = "",
    library: Annotated[
        bool,
        typer.Option(
            "--library", help="Not a program, but the functions and classes that at least two valid programs share."
        ),
    ] = False,
    recording: Annotated[
        Path | None,
        typer.Option(
            "--recording",
            metavar="FILE.jsonl",
            help="Not a program, but every answer and training of the run, for fit --replay FILE.jsonl.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Write the best program of a run as one self-contained Python file with its provenance.

    --library writes the functions that programs of the run share; --recording writes the answers of the run.
    """
    path = _target(out, program, recording, library=library)
    _require_writable(path, force=force)
    if recording is not None:
        _recording(run, path, as_json=as_json)
    elif library:
        _library(run, path, as_json=as_json)
    else:
        _program(run, path, program, as_json=as_json)


def _target(out: Path | None, program: str, recording: Path | None, *, library: bool) -> Path:
    """The file to write.

    Raises:
        InputError: the options exclude each other, or do not name a file.
    """
    wanted = [
        name for name, given in (("--program", program), ("--library", library), ("--recording", recording)) if given
    ]
    if len(wanted) > 1:
        raise InputError(f"{' with '.join(wanted)}; expected one of them: each writes a file of its own")
    if recording is not None:
        if out is not None:
            raise InputError(f"--recording {recording} with --out {out}; expected --recording FILE alone")
        return recording
    if out is None:
        example = "library.py" if library else "reward.py"
        raise InputError(f"no file to write; expected --out FILE, such as --out {example}, or --recording FILE.jsonl")
    return out


def _require_writable(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise InputError(f"{path}: a folder; expected the path of a file, such as {path / 'reward.py'}")
    require_new(path, force=force)


def _program(run: Path, path: Path, prefix: str, *, as_json: bool) -> None:
    from grace_irl.cli.show import find

    with opened(run) as (store, config):
        record = find(store, run, prefix) if prefix else best_record(store, run)
        if not record.evaluation.valid:
            raise InputError(f"{record.program.id}: invalid ({record.evaluation.status}); expected a valid program")
        write_atomically(path, export_record(record, store, config))
    if as_json:
        print_json({"run": str(run), "reward_path": str(path), "program": record.program.id})
    else:
        say(f"reward: {path}")


def _library(run: Path, path: Path, *, as_json: bool) -> None:
    from grace_irl.runs.provenance import library

    with opened(run) as (store, config):
        text, count = library(store, config)
        write_atomically(path, text)
    if as_json:
        print_json({"run": str(run), "library_path": str(path), "functions": count})
    else:
        say(f"library: {path} ({count} functions and classes)")


def _recording(run: Path, path: Path, *, as_json: bool) -> None:
    from grace_irl.runs.recording import write_recording

    with opened(run) as (store, config):
        found = write_recording(store, config, path)
    if as_json:
        about = {"run": str(run), "recording_path": str(path)}
        print_json({**about, "answers": found.answers, "trainings": found.trainings})
    else:
        trained = f", {found.trainings} trainings" if found.trainings else ""
        say(f"recording: {path} ({found.answers} answers{trained})")
