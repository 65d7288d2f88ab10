"""The commands and the modules that hold them."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

import typer

from grace_irl.version import __version__

COMMANDS = {
    "fit": "grace_irl.cli.fit",
    "compare": "grace_irl.cli.compare",
    "score": "grace_irl.cli.score",
    "export": "grace_irl.cli.export",
    "show": "grace_irl.cli.show",
    "report": "grace_irl.cli.report",
    "collect": "grace_irl.cli.collect",
    "serve": "grace_irl.cli.serve",
    "doctor": "grace_irl.cli.doctor",
}
GROUPS = {"demos": "grace_irl.cli.demos"}
HELP = "Recover a reward function from demonstrations, as one readable Python file."


def _version(wanted: bool) -> None:
    if wanted:
        print(f"grace-irl {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


def misused(error: Exception) -> str | None:
    """A wrong option, argument or value as one line; "" where help was shown for want of a command; None for others."""
    # Typer's public BadParameter is a UsageError: of click's, or in later versions of a copy inside typer.
    usage_error: type = typer.BadParameter.__mro__[1]
    if not isinstance(error, usage_error):
        return None
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help())
        return ""
    said = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    return f"{said}; see {context.command_path} --help" if context else said


def build(called: str | None) -> typer.Typer:
    """The application with the command that is called, or with all of them where none is (for help).

    So a command imports nothing that only another one needs.
    """
    app = typer.Typer(
        name="grace-irl",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def options(version: Version = False) -> None:
        del version  # answered by its callback

    options.__doc__ = HELP
    everything = {**COMMANDS, **GROUPS}
    for name in [called] if called in everything else list(everything):
        module = importlib.import_module(everything[name])
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app
