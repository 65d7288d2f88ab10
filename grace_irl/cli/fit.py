"""`grace-irl fit`: from demonstrations to a reward file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from grace_irl.api import SETTINGS
from grace_irl.cli.output import console, metrics_object, metrics_table, print_json, print_source
from grace_irl.cli.progress import FitProgress
from grace_irl.errors import InputError
from grace_irl.runs import fit as fits
from grace_irl.runs.config import Config, resolve
from grace_irl.runs.paths import RunPaths
from grace_irl.runs.run import Interrupted, Run

DATA, SEARCH, STOP, RUN = "Data", "Search", "Stop rules", "Run"
_DEFAULTS = Config()


def _option(name: str, help: str, default: object, panel: str) -> Any:
    """An option whose default shows in help, and lives in `Config`: None means that it was not given."""
    shown = "none" if default is None else str(default)
    mirror = f"GRACE_IRL_{name.upper().replace('-', '_')}"
    return typer.Option(f"--{name}", help=help, show_default=shown, envvar=mirror, rich_help_panel=panel)


def fit(
    demos: Annotated[
        list[str] | None,
        typer.Option(
            "--demos",
            metavar="PATH…",
            help="Files, folders or Minari ids, roles from the files; repeatable. Example: "
            "--demos datasets/babyai-go-to-obj",
        ),
    ] = None,
    negatives: Annotated[
        list[str] | None,
        typer.Option("--negatives", metavar="PATH…", help="More of them, negative whatever they say; repeatable."),
    ] = None,
    label: Annotated[
        str | None,
        _option("label", "Positive expert states: all, last, goal.", "by the data, else all", DATA),
    ] = None,
    held_out: Annotated[
        float | None,
        _option("held-out", "Share of trajectories held out, 0 to 1; 0: none.", _DEFAULTS.data.held_out, DATA),
    ] = None,
    proposer: Annotated[
        str | None, _option("proposer", "Who writes programs.", _DEFAULTS.proposer.name, SEARCH)
    ] = None,
    method: Annotated[str | None, _option("method", "Preset.", _DEFAULTS.method, SEARCH)] = None,
    population: Annotated[
        int | None, _option("population", "Programs kept.", _DEFAULTS.search.population, SEARCH)
    ] = None,
    elite: Annotated[
        int | None, _option("elite", "Best programs that always survive.", _DEFAULTS.search.elite, SEARCH)
    ] = None,
    generations: Annotated[
        int | None,
        _option("generations", "Rounds of mutation at most.", _DEFAULTS.search.generations, SEARCH),
    ] = None,
    log_pi: Annotated[
        str | None,
        _option(
            "log-pi",
            "pi in the discriminator: constant, uniform, recorded, cloned.",
            _DEFAULTS.fitness.log_pi,
            SEARCH,
        ),
    ] = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Fit a scale and an offset to the reward, or take it as it comes.",
            show_default="calibrate",
            envvar="GRACE_IRL_CALIBRATE",
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        _option("max-seconds", "Wall seconds of search, over all sittings.", _DEFAULTS.stop.max_seconds, STOP),
    ] = None,
    max_calls: Annotated[
        int | None, _option("max-calls", "Proposals asked for.", _DEFAULTS.stop.max_calls, STOP)
    ] = None,
    max_tokens: Annotated[
        int | None, _option("max-tokens", "Tokens in and out.", _DEFAULTS.stop.max_tokens, STOP)
    ] = None,
    target_accuracy: Annotated[
        float | None,
        _option(
            "target-accuracy",
            "Train accuracy at which to stop, 0.5 to 1.",
            _DEFAULTS.stop.target_accuracy,
            STOP,
        ),
    ] = None,
    plateau: Annotated[
        int | None, _option("plateau", "Generations without improvement.", _DEFAULTS.stop.plateau, STOP)
    ] = None,
    workers: Annotated[int | None, _option("workers", "Sandbox workers.", "one per core", RUN)] = None,
    allow_weak_sandbox: Annotated[
        bool | None,
        typer.Option(
            "--allow-weak-sandbox",
            help="Run programs even where this machine cannot confine them (see grace-irl doctor).",
            show_default="off",
            envvar="GRACE_IRL_ALLOW_WEAK_SANDBOX",
        ),
    ] = None,
    seed: Annotated[
        int | None, _option("seed", "Seed of the split, the search and the proposer.", _DEFAULTS.seed, RUN)
    ] = None,
    out: Annotated[Path | None, _option("out", "The run's folder, new.", "runs/<set>-<time>", RUN)] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="RUN", help="Go on with this run, in place of beginning a new one."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="A TOML file of settings, such as a run's config.toml. Precedence: file < --set < flags.",
            envvar="GRACE_IRL_CONFIG",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="One setting, such as search.lag=4; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Recover a reward function from demonstrations.

    Writes a run folder (config.toml, run.db, reward.py) and prints reward.py. Ctrl-C saves; --resume goes on.
    """
    given = locals()
    flags: dict[str, object] = {setting: given[name] for name, setting in SETTINGS.items()}
    flags["proposer.name"] = proposer
    flags["data.demos"] = tuple(demos) if demos else None
    flags["data.negatives"] = tuple(negatives) if negatives else None
    sets = tuple(set_ or ())
    try:
        if resume is not None:
            if out is not None or config is not None:
                raise InputError("--resume with --out or --config; expected one or the other: the run has its own")
            with FitProgress(generations or _DEFAULTS.search.generations) as progress:
                run = fits.resume(resume, flags, sets=sets, listener=progress)
        else:
            resolved = resolve(config, sets, flags)
            if not resolved.data.demos:
                raise InputError("no demonstrations; expected --demos PATH…, such as --demos datasets/babyai-go-to-obj")
            with FitProgress(resolved.search.generations) as progress:
                run = fits.start(resolved, out, listener=progress)
    except Interrupted as interrupted:
        _leave(interrupted)
    _print(run, as_json=as_json)


def _print(run: Run, *, as_json: bool) -> None:
    out = console()
    best = run.best
    if not as_json or out.is_terminal:
        print_source(out, run.reward_path.read_text(encoding="utf-8"))
        out.print(metrics_table([("train", best.train), ("held out", best.held_out)]))
        for name, (train, held_out) in best.evaluation.tasks.items() if len(best.evaluation.tasks) > 1 else ():
            out.print(metrics_table([(f"{name}, train", train), (f"{name}, held out", held_out)]))
        tried = f"{run.programs} programs in {run.calls} answers, generations complete: {run.generations}"
        out.print(f"{tried}, {run.seconds:.1f} s of search; ended by {run.reason}")
        out.print(f"reward: {run.reward_path}", soft_wrap=True)
    if as_json:
        print_json(
            {
                "run": str(run.folder),
                "reward_path": str(run.reward_path),
                "fitness": best.fitness,
                "train": metrics_object(best.train),
                "held_out": metrics_object(best.held_out),
                "tasks": best.evaluation.tasks,
                "monotonicity": best.evaluation.monotonicity,
                "scale": best.evaluation.scale,
                "offset": best.evaluation.offset,
                "program": best.program.id,
                "programs": run.programs,
                "calls": run.calls,
                "generations": run.generations,
                "seconds": run.seconds,
                "proposer": run.proposer,
                "reason": run.reason,
            }
        )


def _leave(interrupted: Interrupted) -> None:
    """Says what is saved and leaves at once: a thread that still computes would hold the exit up."""
    print(
        f"grace-irl: interrupted; saved. Go on with: grace-irl fit --resume {interrupted.folder}",
        file=sys.stderr,
    )
    if interrupted.best is not None:
        print(f"best so far: {RunPaths(interrupted.folder).reward}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)
