"""Completion of commands and flags in a shell: the script for the shell, and the command line to complete."""

from __future__ import annotations

import importlib
import os
import shlex
from typing import Annotated, Any

import typer

from grace_irl.errors import InputError

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "grace-irl", "_GRACE_IRL_COMPLETE"
WORDS = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Environment variables that hold the command line to complete: the first for bash, the second for other shells."""


def asked() -> list[str] | None:
    """The words of the command line to complete, without the program's name; None for an ordinary call."""
    if not os.environ.get(VARIABLE):
        return None
    _typer().completion_init()
    text = next((os.environ[name] for name in WORDS if os.environ.get(name)), "")
    try:
        return shlex.split(text)[1:]
    except ValueError:  # a quotation that the user has not closed yet
        return text.split()[1:]


def _typer() -> Any:
    """Typer's completion module, imported late because few calls need it."""
    return importlib.import_module("typer.completion")


def _shell(option: str, shell: str) -> str:
    if shell not in SHELLS:
        raise InputError(f"{option} {shell}; expected one of {', '.join(SHELLS)}")
    return shell


def _show(shell: str | None) -> None:
    if shell is None:
        return
    named = _shell("--show-completion", shell)
    print(_typer().get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=named))
    raise typer.Exit


def _install(shell: str | None) -> None:
    if shell is None:
        return
    named = _shell("--install-completion", shell)
    _, path = _typer().install(shell=named, prog_name=PROGRAM, complete_var=VARIABLE)
    print(f"{path}: completion for {named}; it works in the next shell that you open")
    raise typer.Exit


Show = Annotated[
    str | None,
    typer.Option(
        "--show-completion",
        metavar="SHELL",
        callback=_show,
        is_eager=True,
        help=f"Print the completion script for a shell: {', '.join(SHELLS)}.",
    ),
]
Install = Annotated[
    str | None,
    typer.Option(
        "--install-completion",
        metavar="SHELL",
        callback=_install,
        is_eager=True,
        help="Add the completion of commands and flags to your shell's own settings.",
    ),
]
