"""`grace-irl collect`: play episodes and keep them as demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from grace_irl.atomic import require_new
from grace_irl.cli.console import print_json, say, waiting
from grace_irl.cli.options import Kind, MaxMemory, mirrored
from grace_irl.demos.files import Format, require_writable, save
from grace_irl.demos.trajectory import Role
from grace_irl.errors import InputError, require_one_of

if TYPE_CHECKING:
    from grace_irl.rl.collect import EpisodeTally


def collect(
    env: Annotated[
        str | None, typer.Option("--env", help="Gymnasium id, such as BabyAI-GoToObj-v0, or file.py:function.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="bot (BabyAI), random, or a Stable-Baselines3 .zip.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Trajectories to keep.  [default: 100]")] = None,
    role: Annotated[str | None, typer.Option(help="expert or negative.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write: .parquet, .npz, or a Minari id.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the first episode.  [default: 0]")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Time limit in steps; by default the environment's.")] = None,
    keep_successes: Annotated[
        bool, typer.Option("--keep-successes", help="Keep negatives that reach the goal.")
    ] = False,
    near_miss: Annotated[
        bool, typer.Option("--near-miss", help="Let the bot do another task of the same world (BabyAI negatives).")
    ] = False,
    task: Annotated[str | None, typer.Option(help="Task name; by default the environment's id.")] = None,
    kind: Kind = None,
    format_: Annotated[str | None, typer.Option("--format", help=f"{', '.join(get_args(Format))}.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A TOML file that says all this for several files.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")] = False,
) -> None:
    """Play episodes with a policy and keep them as demonstrations.

    Example: grace-irl collect --env BabyAI-GoToObj-v0 --policy bot --episodes 30 --role expert --out expert.parquet
    """
    if recipe is not None:
        beside: dict[str, object] = {"env": env, "policy": policy, "episodes": episodes, "role": role, "out": out}
        beside |= {"seed": seed, "max-steps": max_steps, "keep-successes": keep_successes or None}
        beside |= {"near-miss": near_miss or None, "task": task, "format": format_}
        beside |= {"kind": None if mirrored("kind", kind) else kind}
        if (name := next((name for name, value in beside.items() if value is not None), None)) is not None:
            raise InputError(f"--recipe beside --{name}; expected one or the other")
        from grace_irl.rl.recipe import run_recipe

        for path, tally in run_recipe(recipe, force=force):
            _report(path, tally, as_json=json_)
        return
    given = {"--env": env, "--policy": policy, "--role": role, "--out": out}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise InputError(f"no {missing[0]}; expected --env, --policy, --role and --out, or --recipe")
    require_one_of("--role", role, get_args(Role))
    require_one_of("--format", format_, get_args(Format))
    path = Path(cast(Path, out))
    require_new(path, force=force)
    require_writable(path, cast("Format | None", format_))
    from grace_irl.rl.collect import EpisodeTally
    from grace_irl.rl.collect import collect as play

    tally, count = EpisodeTally(), 100 if episodes is None else episodes
    console = waiting()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_live, transient=True) as bar:
        line = bar.add_task(str(env), total=count)
        demonstrations = play(
            str(env),
            str(policy),
            count,
            cast(Role, role),
            seed or 0,
            max_steps=max_steps,
            keep_successes=keep_successes,
            near_miss=near_miss,
            task=task,
            kind=kind or "",
            tally=tally,
            progress=lambda kept: bar.update(line, completed=kept),
        )
    save(demonstrations, path, cast("Format | None", format_))
    if demonstrations.choice is not None and not json_:
        say(demonstrations.choice.line)
    _report(path, tally, as_json=json_)


def _report(path: Path, tally: EpisodeTally, *, as_json: bool) -> None:
    for line in tally.lines():
        say(line, err=True)
    if not as_json:
        say(f"{path}: {tally.kept} trajectories")
        return
    dropped, failures = tally.dropped_successes, dict(tally.failures)
    print_json({"path": str(path), "trajectories": tally.kept, "dropped_successes": dropped, "failures": failures})
