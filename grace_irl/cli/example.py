"""`grace-irl example`: write the demonstrations that ship with the package."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

import typer

from grace_irl.atomic import part_of
from grace_irl.cli.console import print_json, say
from grace_irl.errors import InputError

NAME = "babyai-go-to-obj"
PACKAGE = Path(__file__).resolve().parents[1]
PLACES = (PACKAGE / "example", PACKAGE.parent / "datasets" / NAME)
"""Possible folders of the demonstrations: first in an installed package (made by `setup.py`), then in a checkout."""


def example(
    folder: Annotated[Path, typer.Argument(help="The folder to write, new.")] = Path(NAME),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Write the demonstrations that ship with the package: 30 successful and 30 failed episodes of BabyAI's GoToObj.

    Example: grace-irl example
    """
    files = write(folder)
    command = f"grace-irl fit --demos {shlex.quote(str(folder))}"
    if as_json:
        print_json({"folder": str(folder), "files": files, "command": command})
        return
    say(f"{folder}: {', '.join(files)}")
    say(f"look at them: grace-irl demos inspect {shlex.quote(str(folder))}")
    say(f"recover their reward: {command}")


def write(folder: Path) -> list[str]:
    """Write the demonstrations as a new folder, all files or none, and return the names of the files.

    Raises:
        InputError: the folder exists or cannot be written, or the demonstrations are not installed.
    """
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder}: exists already; expected a new folder: name another, grace-irl example FOLDER")
    source = next((place for place in PLACES if place.is_dir()), None)
    if source is None:
        raise InputError(f"{PLACES[0]}: not there; expected the demonstrations that ship: install grace-irl again")
    part = part_of(folder.absolute())
    try:
        part.mkdir(parents=True)
        try:
            for file in source.iterdir():
                shutil.copyfile(file, part / file.name)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        remedy = "free some space or choose another place"
        raise InputError(f"{folder}: cannot be written ({error.strerror}); {remedy}") from None
    return sorted(path.name for path in folder.iterdir())
