"""`grace-irl demos select`: select trajectories from files of demonstrations, and write them to new files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.table import Table
from rich.text import Text

from grace_irl.atomic import require_new
from grace_irl.cli.columns import EpisodeColumn, StateColumns, chosen_columns
from grace_irl.cli.console import console, print_json, say, waiting
from grace_irl.cli.options import Kind, MaxMemory
from grace_irl.demos.conditions import Conditions
from grace_irl.demos.files import Format
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.select import Selected, Selection, Selector, empty
from grace_irl.demos.select_recipe import read_select_recipe
from grace_irl.demos.trajectory import LabelRule, Role
from grace_irl.errors import InputError, require_one_of

SCREENSHOTS = "Of screens: embed them, refer to where they lie, or none."
PATTERN = "Python regular expression, searched in the instruction; case is ignored"


def select(
    sources: Annotated[list[str] | None, typer.Option("--from", help="Files, folders or Minari ids.")] = None,
    out: Annotated[str | None, typer.Option(help="File to write; the folder of a recipe's files.")] = None,
    goal: Annotated[str | None, typer.Option(help=f"{PATTERN}.")] = None,
    not_goal: Annotated[
        str | None, typer.Option(help="Pattern, as for --goal, that the instruction must not contain.")
    ] = None,
    package: Annotated[
        list[str] | None, typer.Option(help="App of at least one screen, such as '*.deskclock'; several: any of them.")
    ] = None,
    not_package: Annotated[list[str] | None, typer.Option(help="App that no screen may show.")] = None,
    min_states: Annotated[int | None, typer.Option(help="Minimum number of states.")] = None,
    max_states: Annotated[int | None, typer.Option(help="Maximum number of states.")] = None,
    success: Annotated[
        bool | None,
        typer.Option("--success/--failure", help="Rewards above 0 in sum, or, without rewards, ended by itself."),
    ] = None,
    from_role: Annotated[str | None, typer.Option(help="Role that the source states.")] = None,
    from_task: Annotated[str | None, typer.Option(help="Task that the source states.")] = None,
    role: Annotated[str | None, typer.Option(help="Role to give: expert or negative.")] = None,
    task: Annotated[str | None, typer.Option(help="Task name to give.")] = None,
    label: Annotated[str | None, typer.Option(help="Rule that fits what is chosen: all, last or goal.")] = None,
    kind: Kind = None,
    state_columns: StateColumns = None,
    episode_column: EpisodeColumn = None,
    sample: Annotated[int | None, typer.Option(help="Maximum number of trajectories, drawn by the seed.")] = None,
    held_out: Annotated[float | None, typer.Option(help="Share to hold out, by the seed, such as 0.2.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of --sample and --held-out.  [default: 0, or the recipe's]")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="A TOML file that says all this for several files.")] = None,
    format_: Annotated[str | None, typer.Option("--format", help=f"{', '.join(get_args(Format))}.")] = None,
    screenshots: Annotated[str, typer.Option(help=SCREENSHOTS)] = "embed",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is chosen, and write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
) -> None:
    """Choose trajectories by goal, app, length, success, task and role, and write them.

    Example: grace-irl demos select --from shards/ --goal 'set .*timer' --success --role expert --out timer.parquet
    """
    for option, value, allowed in (
        ("--role", role, get_args(Role)),
        ("--from-role", from_role, get_args(Role)),
        ("--label", label, get_args(LabelRule)),
        ("--format", format_, get_args(Format)),
        ("--screenshots", screenshots, get_args(Keep)),
    ):
        require_one_of(option, value, allowed)
    if not sources:
        raise InputError("no --from; expected files, folders or Minari ids to choose from")
    if out is None and not dry_run:
        raise InputError("no --out; expected the file to write (the folder, of a recipe), or --dry-run")
    conditions: dict[str, Any] = {
        "goal": goal,
        "not_goal": not_goal,
        "package": tuple(package or ()),
        "not_package": tuple(not_package or ()),
        "min_states": min_states,
        "max_states": max_states,
        "success": success,
        "from_role": from_role,
        "from_task": from_task,
    }
    settings: dict[str, Any] = {"role": role, "task": task, "sample": sample, "held_out": held_out}
    selections: Sequence[Selection]
    if recipe is not None:
        beside = next((name for name, value in {**conditions, **settings}.items() if value not in (None, ())), None)
        if beside is not None:
            raise InputError(f"--recipe beside --{beside.replace('_', '-')}; expected one or the other")
        read = read_select_recipe(recipe)
        selections = read.into(out or "")
        seed = read.seed if seed is None else seed
        label = read.label if label is None else label
    else:
        selections = (Selection(out or "(dry run)", Conditions(**conditions), **settings),)
    if not dry_run:
        for selection in selections:
            require_new(Path(selection.out), force=force)
    with waiting().status("") as line:
        selector = Selector(
            sources,
            selections,
            seed or 0,
            label=cast("LabelRule | None", label),
            kind=kind or "",
            columns=chosen_columns(state_columns, episode_column),
            progress=lambda file: line.update(Text(f"reading {file}")),
        )
        chosen = selector.choose()
        if not dry_run:
            selector.write(chosen, cast("Format | None", format_), cast("Keep", screenshots))
    _report(chosen, written=not dry_run, as_json=json_)


def _report(chosen: Sequence[Selected], *, written: bool, as_json: bool) -> None:
    for one in chosen:
        if not one.matches:
            say(empty(one), err=True)
        elif one.missing:
            wanted = one.selection.sample
            say(f"{one.selection.out}: {len(one.matches)} of the {wanted} that were asked for", err=True)
    if as_json:
        print_json({"files": [_object(one) for one in chosen], "written": written})
        return
    for one in chosen:
        console().print(_table(one))
        role_, task_ = one.selection.role or "as they state", one.selection.task or "as they state"
        verb = "written" if written else "would be written"
        say(
            f"{one.selection.out}: {len(one.matches)} trajectories, {one.states} states {verb}"
            f"{_held(one)}; role {role_}, task {task_}"
        )
        say("")


def _table(one: Selected) -> Table:
    """A table with the number of trajectories left after each condition."""
    table = Table(title=one.selection.out, title_justify="left", box=None, pad_edge=False)
    table.add_column("condition", overflow="fold")
    table.add_column("left", justify="right")
    table.add_row("trajectories read", str(one.funnel.seen))
    for name, count in one.funnel.left.items():
        table.add_row(name, str(count))
    if one.taken:
        table.add_row("not in an earlier file", str(one.free))
    if one.selection.sample is not None:
        table.add_row(f"sample of at most {one.selection.sample}", str(len(one.matches)))
    return table


def _held(one: Selected) -> str:
    return "" if one.held_out is None else f", {one.number_held_out} held out"


def _object(one: Selected) -> dict[str, Any]:
    return {
        "path": one.selection.out,
        "read": one.funnel.seen,
        "left": one.funnel.left,
        "taken": one.taken,
        "trajectories": len(one.matches),
        "states": one.states,
        "held_out": None if one.held_out is None else one.number_held_out,
        "role": one.selection.role,
        "task": one.selection.task,
    }
