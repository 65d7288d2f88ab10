"""`grace-irl collect`: play episodes and keep them as demonstrations."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from grace_irl.cli.console import PlainConsole, print_json, require_new, say
from grace_irl.cli.options import Kind, MaxMemory
from grace_irl.demos.files import Format, open_writer, save
from grace_irl.demos.trajectory import Metadata, Role
from grace_irl.errors import InputError
from grace_irl.states.vector import VECTOR


@dataclass(frozen=True)
class Collected:
    """One file that was written, with what became of the episodes."""

    path: Path
    trajectories: int
    lines: tuple[str, ...]
    dropped_successes: int
    failures: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "path": str(self.path),
            "trajectories": self.trajectories,
            "dropped_successes": self.dropped_successes,
            "failures": self.failures,
        }


def collect(
    env: Annotated[
        str | None, typer.Option("--env", help="Gymnasium id, such as BabyAI-GoToObj-v0, or file.py:function.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="bot (BabyAI), random, or a Stable-Baselines3 .zip.")] = None,
    episodes: Annotated[int, typer.Option(help="Trajectories to keep.")] = 100,
    role: Annotated[str | None, typer.Option(help="expert or negative.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write: .parquet, .npz, or a Minari id.")] = None,
    seed: Annotated[int, typer.Option(help="Of the first episode.")] = 0,
    max_steps: Annotated[int | None, typer.Option(help="Time limit in steps; by default the environment's.")] = None,
    keep_successes: Annotated[
        bool, typer.Option("--keep-successes", help="Keep negatives that reach the goal.")
    ] = False,
    task: Annotated[str | None, typer.Option(help="Task name; by default the environment's id.")] = None,
    kind: Kind = None,
    format_: Annotated[str | None, typer.Option("--format", help=f"{', '.join(get_args(Format))}.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A TOML file that says all this for several files.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
    max_memory: MaxMemory = None,  # noqa: ARG001 - stated by its callback
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
) -> None:
    """Play episodes with a policy and keep them as demonstrations.

    Example: grace-irl collect --env BabyAI-GoToObj-v0 --policy bot --episodes 30 --role expert --out
        expert.parquet
    """
    if recipe is not None:
        if any(value is not None for value in (env, policy, role, out)):
            raise InputError("--recipe beside --env, --policy, --role or --out; expected one or the other")
        from grace_irl.rl.recipe import run_recipe

        for path, tally in run_recipe(recipe, force=force):
            done = Collected(path, tally.kept, tuple(tally.lines()), tally.dropped_successes, dict(tally.failures))
            _report(done, json_)
        return
    given = {"--env": env, "--policy": policy, "--role": role, "--out": out}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise InputError(f"no {missing[0]}; expected --env, --policy, --role and --out, or --recipe")
    for option, value, allowed in (("--role", role, get_args(Role)), ("--format", format_, get_args(Format))):
        if value is not None and value not in allowed:
            raise InputError(f"{option} {value}; expected one of {', '.join(allowed)}")
    path = Path(cast(Path, out))
    require_new(path, force=force)
    # A place that no writer takes is found out before the episodes are played, and not after.
    open_writer(path, Metadata(VECTOR.name), cast("Format | None", format_))
    from grace_irl.rl.collect import EpisodeTally
    from grace_irl.rl.collect import collect as play

    tally = EpisodeTally()
    console = PlainConsole(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        line = bar.add_task(str(env), total=episodes)
        demonstrations = play(
            str(env),
            str(policy),
            episodes,
            cast(Role, role),
            seed,
            max_steps=max_steps,
            keep_successes=keep_successes,
            task=task,
            kind=kind or "",
            tally=tally,
            progress=lambda kept: bar.update(line, completed=kept),
        )
    save(demonstrations, path, cast("Format | None", format_))
    if demonstrations.choice is not None and not json_:
        say(demonstrations.choice.line)
    _report(
        Collected(path, tally.kept, tuple(tally.lines()), tally.dropped_successes, dict(tally.failures)),
        json_,
    )


def _report(done: Collected, as_json: bool) -> None:
    for line in done.lines:
        say(line, err=True)
    if as_json:
        print_json(done.to_json())
    else:
        say(f"{done.path}: {done.trajectories} trajectories")
