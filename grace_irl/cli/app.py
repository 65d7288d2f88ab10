"""The command-line application. The module of a command is imported only if the command is called."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from grace_irl.cli.completion import Install, Show
from grace_irl.errors import GraceError
from grace_irl.version import __version__

SECTIONS = {
    "Recover a reward": ("example", "fit", "demos", "collect"),
    "Judge and use it": ("show", "report", "score", "export", "compare"),
    "Machines": ("work", "serve", "doctor"),
}
"""Headings in the help, with the commands below each heading."""
COMMANDS = {
    "example": "Write the demonstrations that ship, to try the rest on.",
    "fit": "Recover a reward function from demonstrations.",
    "compare": "Compare GRACE with GAIL, AIRL, BC and PPO on the true reward.",
    "score": "Score a reward file on demonstrations, in the sandbox.",
    "export": "Write the best program of a run, or its answers, as a file.",
    "show": "Show a run: best programs, progress, each candidate's fate.",
    "report": "Write the report of a run as one HTML file.",
    "collect": "Play episodes and keep them as demonstrations.",
    "work": "Work on jobs of fit and compare from a shared folder.",
    "serve": "Start a vLLM server with flags for this work.",
    "doctor": "Probe the sandbox by attacks, and list what is installed.",
}
"""Commands, with one line of help each. Each command is in the module of the same name."""

GROUPS = {"demos": "Look at demonstrations, choose, convert and scramble them."}
HELP = """Recover a reward function from demonstrations, as one readable Python file.

    \b
    Example: grace-irl example
             grace-irl fit --demos babyai-go-to-obj
    """


class StoppedError(GraceError):
    """Ctrl-C ended a command."""

    exit_code = 130


class Commands(TyperGroup):
    """The group of all commands. Its help shows them by section."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            StoppedError: Ctrl-C. Typer itself would exit without a message.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise StoppedError(str(error) or "interrupted") from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the signature is click's
        """Write the commands, one section below each heading."""
        lines = {**COMMANDS, **GROUPS}
        with formatter.section("Commands"):
            for heading, names in SECTIONS.items():
                with formatter.section(heading):
                    formatter.write_dl([(name, lines[name]) for name in names])


def _version(wanted: bool) -> None:
    if wanted:
        print(f"grace-irl {__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


def misused(error: Exception, arguments: Sequence[str] = ()) -> str | None:
    """The error line for a wrong option, argument or value; None for any other error.

    If the user gave no command, print the help and return "".

    Args:
        error: the error.
        arguments: the words of the command line.
    """
    # The base class of `BadParameter` is click's `UsageError`. Newer versions of typer contain a copy of click.
    usage_error: type = typer.BadParameter.__mro__[1]
    if not isinstance(error, usage_error):
        return None
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help())
        return ""
    said = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    option = getattr(error, "option_name", "")
    if option and context and context.info_name == "fit":
        from grace_irl.runs.config import other_methods

        words = dict(_words(arguments))
        recording = words.get("--replay", "")
        # If the recording existed, the parser would know its method, and the option might be valid.
        if recording and not os.path.exists(os.path.expanduser(recording)):
            said = f"{recording}: no such file; expected the folder of a run, or a recording, for --replay"
        elif option == "--env" and "--task" in words:
            said = "--env with --task; expected --task alone, which names the environment"
        elif other := other_methods(option, ""):
            said = f"{option} has no effect with this method; expected it with --method {other}, or left out"
    if option and context and context.info_name == "compare":
        from grace_irl.runs.config import key_of_flag

        if key := key_of_flag(option):
            said = f"{option} is a setting of the searches of a comparison; expected --set {key}=VALUE"
    page = "--help-all" if getattr(getattr(context, "command", None), "common", ()) else "--help"
    return f"{said}; see {context.command_path} {page}" if context else said


def build(loaded: Collection[str] = (), method: str = "") -> typer.Typer:
    """Build the application with some commands loaded. The help lists the other commands, too.

    Loading few commands makes the help fast. The import of a command's module imports no other command's module.

    Args:
        loaded: names of the commands and groups to load.
        method: name of the method whose settings become options; "" for the default method.
    """
    app = typer.Typer(
        name="grace-irl",
        cls=Commands,
        help=HELP,
        no_args_is_help=True,
        add_completion=False,  # replaced by the options of `grace_irl.cli.completion`, which take a shell's name
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def options(version: Version = False, install: Install = None, show: Show = None) -> None:
        del version, install, show  # The callbacks of these options have already run.

    options.__doc__ = HELP
    for name, line in {**COMMANDS, **GROUPS}.items():
        if name not in loaded:
            app.command(name, help=line)(_not_loaded)
            continue
        module = importlib.import_module(f"grace_irl.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
            continue
        from grace_irl.cli.options import command_showing, with_settings

        command, common = getattr(module, name), getattr(module, "COMMON", ())
        if hasattr(module, "settings"):
            settings = module.settings(method)
            command = with_settings(command, settings)
            if common:
                common = (*common, *(f"--{each.flag}" for each in settings if each.common))
                common += getattr(module, "own", lambda _: ())(method)
        app.command(name, cls=command_showing(common))(command)
    return app


def method_of(arguments: Sequence[str]) -> str:
    """Find the method that an unparsed command line selects; "" for the default method.

    The parser needs the method, because the settings of the method are flags of `fit`.
    """
    words: dict[str, str] = {}
    for name, value in _words(arguments):
        words[name] = value
        if name == "--set" and value.partition("=")[0].strip() == "method":
            words["method"] = value.partition("=")[2].strip(" \"'")
    named = words.get("--method") or os.environ.get("GRACE_IRL_METHOD") or words.get("method")
    file = words.get("--resume") or words.get("--replay") or words.get("--config") or os.environ.get("GRACE_IRL_CONFIG")
    if named or not file:
        return named or ""
    from grace_irl.runs.config import method_named

    return method_named(Path(os.path.expanduser(file)))


def _words(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of each word of an unparsed command line and the word after it, which is the value of a flag before it.

    For a word such as `--seed=3`, the pair is `--seed` and `3`.
    """
    for flag, after in pairwise([*arguments, ""]):
        name, found, value = flag.partition("=")
        yield name, value if found else after


def _not_loaded() -> None:
    """Placeholder for a command that is not loaded."""
