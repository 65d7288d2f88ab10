"""Options made from declared settings, and options that several commands share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from grace_irl.config import Config
from grace_irl.settings import Setting, declared, mirror

PANELS = ("Data", "Search", "Model", "Expansion", "Training", "Stop rules", "Run", "Options")
"""Order of the headings in help. A method's own headings come before `Run`."""

ALL = "grace_irl.help_all"  # key in the metadata of the command's context, set if `--help-all` is given
KEYWORD = inspect.Parameter.KEYWORD_ONLY

Given = dict[str, object]
"""Values of settings by key (`section.field`); None if the user gave no value."""


def mirrored(name: str, value: object) -> bool:
    """Whether an option has the value of its environment variable.

    The user may have set the variable for other commands. So a command that refuses the flag ignores such a value.
    """
    return value is not None and os.path.expanduser(os.environ.get(mirror(name), "")) == str(value)


def at_home(value: Path | None) -> Path | None:
    """Put the home directory in place of `~` in a path. A path from an environment variable may still contain `~`."""
    return None if value is None else Path(os.path.expanduser(value))


def with_settings(command: Callable[..., None], settings: Iterable[Setting]) -> Callable[..., None]:
    """Return a function that calls `command`, with one parameter per setting with a flag instead of `given`.

    Typer makes an option of each of these parameters. The function passes their values to `command` in the argument
    `given`, a dict by the keys of the settings. All other parameters are those of `command`.
    """
    own = [each for name, each in inspect.signature(command, eval_str=True).parameters.items() if name != "given"]
    flags = {each.keyword: each for each in settings if each.flag}

    def called(**values: Any) -> None:
        given = {each.key: values.pop(name) for name, each in flags.items()}
        command(
            given={key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}, **values
        )

    made = [inspect.Parameter(name, KEYWORD, default=None, annotation=_option(each)) for name, each in flags.items()]
    called.__signature__ = inspect.Signature([*made, *(each.replace(kind=KEYWORD) for each in own)])  # type: ignore[attr-defined]
    called.__doc__ = command.__doc__
    return called


def _option(declared: Setting) -> Any:
    """The annotated type of a setting's option. An option that is not given is None, although help shows a default."""
    shown = declared.shown or ("none" if declared.default in (None, "", ()) else str(declared.default))
    flag = f"--{declared.flag}"
    if declared.kind is bool:
        shown = declared.flag if declared.default else f"no-{declared.flag}"
        flag = f"{flag}/--no-{declared.flag}"
    unit = declared.unit.upper()
    parser = None
    if declared.optional and declared.kind in (int, float):
        parser, unit = _number_or_none(declared.kind), unit or f"<{declared.kind.__name__}>"
    option = typer.Option(
        flag,
        help=f"{declared.help} Repeatable." if declared.many else declared.help,
        metavar=f"{unit}…" if declared.many else unit or None,
        show_default=shown if shown != "none" or not declared.many else False,
        envvar=declared.variable or None,
        rich_help_panel=declared.panel,
        parser=parser,
    )
    kind: Any = list[declared.kind] if declared.many else declared.kind  # type: ignore[name-defined]
    return Annotated[kind | None, option]


def _number_or_none(kind: Callable[[str], object]) -> Callable[[str], object]:
    """A parser of a number that leaves the word "none" to `grace_irl.runs.config.resolve`."""

    def parsed(text: str) -> object:
        try:
            return "none" if text.lower() == "none" else kind(text)
        except ValueError:
            number = "a whole number" if kind is int else "a number"
            raise typer.BadParameter(f"{text!r}; expected {number}, or none") from None

    return parsed


class Command(TyperCommand):
    """A command whose help groups options by panel.

    Attributes:
        common: flags that `--help` shows. If there are none, `--help` shows all flags.
    """

    common: frozenset[str] = frozenset()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, one section per panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if self.common and ctx.meta.get(ALL) is None and not self.common.intersection(each.opts):
                continue
            if record := each.get_help_record(ctx):
                kind = "Arguments" if each.param_type_name == "argument" else "Options"
                panels.setdefault(getattr(each, "rich_help_panel", None) or kind, []).append(record)
        for panel in sorted(
            panels, key=lambda name: PANELS.index(name) if name in PANELS else PANELS.index("Run") - 0.5
        ):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


class CommandGroup(TyperGroup):
    """A group of commands. The help of the group shows the whole first sentence of each command's help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        named = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(limit=1000)) for name, each in named if each])


def command_showing(common: Collection[str]) -> type[Command]:
    """A class of commands whose `--help` shows only the flags in `common`; all flags, if `common` is empty."""
    return (
        Command if not common else type("Command", (Command,), {"common": frozenset({*common, "--help", "--help-all"})})
    )


def _print_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[ALL] = True
        print(context.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", callback=_print_help, is_eager=True, help="Show all options and exit.")
]


def _state(value: str | None) -> str | None:
    """Set the memory limit for this command. The limit depends on the machine, so a run does not record it."""
    if value is not None:
        from grace_irl.demos.memory import state_limit

        state_limit(value, "--max-memory")
    return value


Kind = _option(declared(Config)["data.kind"])
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        metavar="SIZE",
        help="Memory limit, such as 4G. Of larger sets, `fit` and `compare` take a sample, and `score` reads parts.",
        show_default="80 % of what is available",
        envvar=mirror("max-memory"),
        callback=_state,
        rich_help_panel="Run",
    ),
]
Executor = Annotated[
    str | None,
    typer.Option(
        "--executor",
        help="Where the heavy work runs: local, folder (see grace-irl work) or ray.",
        show_default="local",
        rich_help_panel="Run",
    ),
]
Jobs = Annotated[
    Path | None,
    typer.Option("--jobs", metavar="DIR", help="Folder of jobs that all machines share.", rich_help_panel="Run"),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="Ray cluster: auto, or HOST:PORT of its head.",
        rich_help_panel="Run",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file of settings, such as a run's config.toml. Precedence: file < --set < flags.",
        envvar=mirror("config"),
        callback=at_home,
        rich_help_panel="Run",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="One setting, such as search.population=40. Repeatable.",
        rich_help_panel="Run",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object as the last line.", rich_help_panel="Run")]
