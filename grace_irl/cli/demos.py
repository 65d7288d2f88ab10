"""`grace-irl demos`: inspect, select, convert and scramble demonstrations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grace_irl.cli.columns import EpisodeColumn, StateColumns, chosen_columns, fields_named
from grace_irl.cli.console import PlainConsole, print_json, say
from grace_irl.cli.options import CommandGroup, Kind, MaxMemory
from grace_irl.cli.pictures import in_terminal, save_pictures
from grace_irl.cli.select import SCREENSHOTS, select
from grace_irl.demos.convert import Copied, Stated
from grace_irl.demos.convert import convert as convert_files
from grace_irl.demos.convert import scramble as scramble_files
from grace_irl.demos.files import Format, iter_trajectories
from grace_irl.demos.goals import GoalRow, goal_rows, load_goals
from grace_irl.demos.screenshots import Keep
from grace_irl.demos.summary import EXAMPLES, DemosSummary, summarise
from grace_irl.demos.trajectory import LabelRule, Role
from grace_irl.errors import InputError, require_one_of
from grace_irl.text import line

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Look at demonstrations, choose, convert and scramble them."
)
app.command()(select)

Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]


@app.command()
def inspect(
    path: Annotated[str, typer.Argument(help="File, folder or Minari id.")],
    kind: Kind = None,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    json_: Json = False,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Leave pictures of states out.")] = False,
    images: Annotated[Path | None, typer.Option(help="Folder for pictures of some states.")] = None,
    goals: Annotated[Path | None, typer.Option(help="Show the goal states that this TOML file marks.")] = None,
    state_columns: StateColumns = None,
    episode_column: EpisodeColumn = None,
) -> None:
    """Show the contents of demonstrations: counts, shapes, tasks, value ranges and drawings of some states.

    Example: grace-irl demos inspect babyai-go-to-obj
    """
    marked = None if goals is None else load_goals(goals)
    columns = chosen_columns(state_columns, episode_column)
    summary = summarise(path, kind or "", columns, "" if goals is None else str(goals))
    rows = None if marked is None else goal_rows(iter_trajectories(path, kind=kind or "", columns=columns), marked)
    unknown = sorted(set(marked or ()) - {row.digest for row in rows or ()})
    written = [] if images is None else save_pictures(summary, images)
    if json_:
        about = summary.to_json() | {"command": _command(summary)}
        if images is not None:
            about["images"] = list(map(str, written))
        if rows is not None:
            about |= {"goals": [asdict(row) for row in rows], "goals_of_others": unknown}
        print_json(about)
        return
    out = PlainConsole()
    out.print(_about(summary))
    out.print(_groups(summary))
    if rows is not None:
        out.print(goal_table(rows, unknown))
    if summary.values is not None:
        out.print(summary.values.table(summary.metadata.fields, EXAMPLES))
    drawn = None if no_picture else in_terminal(summary)
    if drawn is not None:
        out.print(drawn)
    for file in written:
        say(f"picture: {file}")
    for note in (*summary.notes, *summary.unsplit):
        say(note)
    for name in summary.silent[:EXAMPLES]:
        say(f"{name}: no role in the data, and the file's name gives none; --experts or --negatives says which")
    if len(summary.silent) > EXAMPLES:
        say(f"and {len(summary.silent) - EXAMPLES} more without a role")
    how = f"{len(summary.silent)} of {len(summary.files)} files have no role: pass each of them with --experts or "
    how += "--negatives of grace-irl fit, and the others with --demos"
    say(f"to recover a reward: {_command(summary) or how}")


def _command(summary: DemosSummary) -> str:
    """The command that fits a reward, with a model if the synthesiser cannot read these states; "" if there is none."""
    from grace_irl.synthesis.synthesiser import SKETCHERS

    model = "" if summary.metadata.kind in SKETCHERS or not summary.command else " --llm-url URL"
    return summary.command + model


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="File, folder or Minari id.")],
    target: Annotated[
        str, typer.Argument(metavar="DST", help=".parquet, .npz, .tfrecord or Minari id; a folder if SRC is one.")
    ],
    format_: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(get_args(Format))}; by default, DST's name decides."),
    ] = None,
    role: Annotated[str | None, typer.Option(help="Role of every episode: expert or negative.")] = None,
    task: Annotated[str | None, typer.Option(help="Task name of every episode.")] = None,
    environment: Annotated[
        str | None, typer.Option("--env", help="Gymnasium id; of MuJoCo's, it names the fields, too.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Positive expert states: all, last or goal.")] = None,
    fields: Annotated[str | None, typer.Option(help="Names of a vector's numbers: a,b,c.")] = None,
    state_columns: StateColumns = None,
    episode_column: EpisodeColumn = None,
    kind: Kind = None,
    screenshots: Annotated[str, typer.Option(help=SCREENSHOTS)] = "embed",
    force: Force = False,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    json_: Json = False,
) -> None:
    """Write demonstrations in another format, with options for roles, tasks and names of fields.

    Example: grace-irl demos convert hopper.npz hopper.parquet --role expert --env Hopper-v4 --label all
    """
    require_one_of("--format", format_, get_args(Format))
    require_one_of("--role", role, get_args(Role))
    require_one_of("--label", label, get_args(LabelRule))
    require_one_of("--screenshots", screenshots, get_args(Keep))
    named = None if fields is None else fields_named(fields)
    usual: tuple[str, ...] = ()
    if named is None and environment is not None:
        from grace_irl.rl.views import vector_fields

        usual = vector_fields(environment)
    stated = Stated(cast("Role | None", role), task, environment, cast("LabelRule | None", label), named, usual, kind)
    columns = chosen_columns(state_columns, episode_column)
    to, keep = cast("Format | None", format_), cast("Keep", screenshots)
    copied = convert_files(source, target, to, stated, keep, columns, force=force)
    _report(copied, None, json_)


@app.command()
def scramble(
    paths: Annotated[
        list[str], typer.Argument(metavar="SRC... DST", help="Files or folders, then the target file or folder.")
    ],
    seed: Annotated[int, typer.Option(help="Seed of the new names and codes.")] = 0,
    map_: Annotated[Path | None, typer.Option("--map", help="Use this map again instead of a new one.")] = None,
    kind: Kind = None,
    state_columns: StateColumns = None,
    episode_column: EpisodeColumn = None,
    force: Force = False,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    json_: Json = False,
) -> None:
    """Write copies with other codes, axes, fields and words, so that a model's knowledge of a benchmark does not help.

    A JSON file beside the copies lists all replacements.

    Example: grace-irl demos scramble babyai-go-to-obj /tmp/scrambled --seed 1
    """
    if len(paths) < 2:
        raise InputError(f"scramble {paths[0]}: no DST; expected SRC... DST: name the target file or folder")
    columns = chosen_columns(state_columns, episode_column)
    copied, place = scramble_files(paths[:-1], paths[-1], seed, map_, kind or "", columns, force=force)
    _report(copied, place, json_)


def _report(copied: list[Copied], place: Path | None, as_json: bool) -> None:
    if as_json:
        about = {"files": [asdict(one) for one in copied], "map": None if place is None else str(place)}
        print_json(about)
        return
    for one in copied:
        say(f"{one.source} -> {one.path}: {one.trajectories} trajectories, {one.states} states")
        for note in one.notes:
            say(note)
    if place is not None:
        say(f"map: {place}")


def _about(summary: DemosSummary) -> RenderableType:
    metadata = summary.metadata
    shapes = ", ".join(
        f"{'x'.join(map(str, shape))} {dtype}".lstrip() + (f" ({count})" if len(summary.shapes) > 1 else "")
        for (shape, dtype), count in summary.shapes.most_common(EXAMPLES)
    )
    total = sum(group.trajectories for group in summary.groups.values())
    has = [f"{name} in {'all' if n == total else n}" for name, n in summary.has.items() if n]
    table = Table.grid(padding=(0, 2))
    for name, value in (
        ("set", summary.path),
        ("files", str(len(summary.files))),
        ("states", f"{metadata.kind}, {shapes}{', …' if len(summary.shapes) > EXAMPLES else ''}"),
        *([("kind", summary.choice.line)] if summary.choice is not None else []),
        ("environment", metadata.environment or "not stated"),
        ("view", metadata.view or "not stated"),
        ("label", summary.label),
        ("beside states", "; ".join(has) or "nothing"),
    ):
        table.add_row(Text(name, style="bold"), value)
    return table


def _groups(summary: DemosSummary) -> RenderableType:
    table = Table(title="Trajectories", title_justify="left")
    table.add_column("task", overflow="fold")
    table.add_column("role")
    for name in ("number", "held out", "states", "length", "ended", "return"):
        table.add_column(name, justify="right", no_wrap=True)
    for (task, role), group in summary.groups.items():
        total, count = group.returns
        table.add_row(
            task,
            role,
            str(group.trajectories),
            str(group.held_out),
            str(group.states),
            f"{group.shortest}" if group.shortest == group.longest else f"{group.shortest}-{group.longest}",
            str(group.terminated),
            f"{total / count:.4g}" if count else "-",
        )
    texts = Counter(text for group in summary.groups.values() for text in group.instructions.elements())
    if not texts:
        return table
    lines: list[RenderableType] = [Text(f"{len(texts)} different instructions, such as", style="bold")]
    lines += [f"  {line(text)}  ({count} trajectories)" for text, count in texts.most_common(EXAMPLES)]
    return Group(table, *lines, "")


SHOWN = 60
"""Maximum number of trajectories in the table of goal states; `--json` has all of them."""


def goal_table(rows: Sequence[GoalRow], unknown: Sequence[str]) -> RenderableType:
    """A table of expert trajectories and their goal states, with a line of counts below the table.

    Args:
        rows: one row per expert trajectory.
        unknown: digests in the user's file of goal states (`--goals`) that match no expert trajectory.
    """
    table = Table(title="Goal states of experts", title_justify="left")
    table.add_column("trajectory", overflow="fold")
    table.add_column("task", overflow="fold")
    table.add_column("states", justify="right")
    table.add_column("digest", no_wrap=True)
    table.add_column("goal states", overflow="fold")
    for row in rows[:SHOWN]:
        table.add_row(row.source, row.task, str(row.states), row.digest, _said(row.goals))
    with_goals = sum(bool(row.goals) for row in rows)
    silent = sum(row.goals is None for row in rows)
    lines = [
        f"{len(rows)} expert trajectories: {with_goals} with goal states, "
        f"{len(rows) - with_goals - silent} with none, {silent} not marked"
    ]
    if len(rows) > SHOWN:
        lines.append(f"{len(rows) - SHOWN} more are not shown; --json has all of them")
    if unknown:
        others = ", ".join(unknown[:3]) + (", …" if len(unknown) > 3 else "")
        lines.append(f"{len(unknown)} entries of the goals file name none of these experts: {others}")
    return Group(table, *lines, "")


def _said(goals: tuple[int, ...] | None) -> str:
    if goals is None:
        return "not marked"
    return ", ".join(map(str, goals)) or "none"
