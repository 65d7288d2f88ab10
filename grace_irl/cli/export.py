"""`grace-irl export`: write a program, the shared functions or the answers of a run to a file."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Annotated

import typer

from grace_irl.atomic import require_new, write_atomically
from grace_irl.cli.console import print_json, say
from grace_irl.errors import InputError
from grace_irl.methods.registry import method_of
from grace_irl.runs.provenance import export_record
from grace_irl.runs.run import best_record, best_records, opened

SCORES = "scores.csv"
EXPORTED = re.compile(r"\d+-[0-9a-f]{16}\.py|scores\.csv")
"""Names of the files that `--best` writes."""


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file to write, such as reward.py or library.py; with --best a folder."),
    ] = None,
    program: Annotated[
        str,
        typer.Option("--program", metavar="ID", help="Another program than the best; a prefix of its id will do."),
    ] = "",
    best: Annotated[
        int | None,
        typer.Option(
            "--best", metavar="N", min=1, help="The N best valid programs with their scores, in the folder --out."
        ),
    ] = None,
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
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a file that exists, or an earlier export of --best.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Write the best program of a run as one self-contained Python file with its provenance.

    --best N writes more of them, with a table of their scores; --library writes the functions that programs of the run
    share; --recording writes the answers of the run.
    """
    path = _target(out, program, best, recording, library=library)
    if best is None:
        _require_writable(path, force=force)
    if best is not None:
        _best(run, path, best, force=force, as_json=as_json)
    elif recording is not None:
        _recording(run, path, as_json=as_json)
    elif library:
        _library(run, path, as_json=as_json)
    else:
        _program(run, path, program, as_json=as_json)


def _target(out: Path | None, program: str, best: int | None, recording: Path | None, *, library: bool) -> Path:
    """The file or folder to write.

    Raises:
        InputError: the options exclude each other, or do not name a place to write to.
    """
    given = {"--program": program, "--best": best, "--library": library, "--recording": recording}
    wanted = [name for name, value in given.items() if value]
    if len(wanted) > 1:
        raise InputError(f"{' with '.join(wanted)}; expected one of them: each writes something of its own")
    if recording is not None:
        if out is not None:
            raise InputError(f"--recording {recording} with --out {out}; expected --recording FILE alone")
        return recording
    if out is None and best is not None:
        raise InputError(f"no folder to write; expected --out FOLDER, such as --best {best} --out best")
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


def _best(run: Path, folder: Path, count: int, *, force: bool, as_json: bool) -> None:
    """Write the best programs of a run as `1-ID.py` and so on, and their scores as `scores.csv`.

    With `force`, the files of an earlier export in this folder are removed.

    Raises:
        InputError: the folder holds something else, the run has no valid program, or an id is none.
    """
    if folder.is_file():
        raise InputError(f"{folder}: a file; expected a new folder for the programs")
    foreign = [path for path in folder.iterdir() if not EXPORTED.fullmatch(path.name)] if folder.is_dir() else []
    old = [path for path in folder.iterdir() if path not in foreign] if folder.is_dir() else []
    if foreign or (old and not force):
        hint = "" if foreign else ", or replace these programs with --force"
        raise InputError(f"{folder}: not empty; expected a new folder: choose another{hint}")
    with opened(run) as (store, config):
        best_record(store, run)  # says so if there is none
        account, files, table = method_of(config).account, dict[str, str](), io.StringIO()
        rows = csv.writer(table, lineterminator="\n")
        columns = [each.name for each in account.columns]
        rows.writerow(["rank", "file", "program", account.score, *columns, "bits", "operator", "candidate", "parents"])
        for rank, record in enumerate(best_records(store)[:count], 1):
            name, evaluation = f"{rank}-{record.program.id}.py", record.evaluation
            if not EXPORTED.fullmatch(name):  # somebody else's store may hold anything, such as a path
                raise InputError(f"{run}: a program with id {record.program.id!r}; expected 16 hex digits")
            files[name] = export_record(record, store, config)
            figures = [evaluation.metrics.get(each.metric) for each in account.columns]
            made = (record.program.size, record.program.operator, record.index, " ".join(record.program.parents))
            rows.writerow([rank, name, record.program.id, evaluation.score, *figures, *made])
        for path in old:
            path.unlink()
        for name, text in (files | {SCORES: table.getvalue()}).items():
            write_atomically(folder / name, text)
    if as_json:
        print_json({"run": str(run), "folder": str(folder), "files": [*files]})
    else:
        say(f"rewards: {folder} ({len(files)} programs; their scores: {SCORES})")


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
