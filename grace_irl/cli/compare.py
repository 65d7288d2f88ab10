"""`grace-irl compare`: GRACE, GAIL, AIRL, BC and PPO on the true reward, trained and measured alike."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from grace_irl.cli import fit_options as options
from grace_irl.cli.console import console, print_json, say
from grace_irl.cli.memory import MaxMemory
from grace_irl.cli.progress import ComparisonProgress
from grace_irl.compare.comparison import Compared, resume, start
from grace_irl.compare.folder import ComparisonFolder
from grace_irl.compare.settings import ALL, KEEP, Comparison, Settings, comparison_of
from grace_irl.compare.table import KEY, differences_of, rows_of
from grace_irl.errors import InputError
from grace_irl.runs.acting import worded
from grace_irl.runs.config import Config, DataConfig

DEFAULTS = Comparison()
TRAINING, RUN = "Training", "Run"
BEGUN_WITH = "expected none of them: a comparison goes on with the settings that it began with"
AGAIN = ("env", "transfer")  # what --resume takes: what is named again, and further environments


def _option(name: str, help: str, default: object, panel: str, metavar: str | None = None) -> Any:
    return typer.Option(f"--{name}", help=help, show_default=str(default), rich_help_panel=panel, metavar=metavar)


def compare(
    demos: options.Demos = None,
    negatives: options.Negatives = None,
    label: options.Label = None,
    goals: options.Goals = None,
    held_out: Annotated[
        float | None,
        _option("held-out", "Share of trajectories that no method learns from, 0 to 1.", 0.0, options.DATA),
    ] = None,
    field_names: options.FieldNames = None,
    methods: Annotated[
        str | None, _option("methods", "Names, with commas between them.", ",".join(ALL), TRAINING, "NAMES")
    ] = None,
    env: Annotated[
        str | None,
        _option("env", "A Gymnasium id, or file.py:function.", "the demonstrations' own", TRAINING, "ID"),
    ] = None,
    seeds: Annotated[int | None, _option("seeds", "Runs of each method.", DEFAULTS.seeds, TRAINING)] = None,
    steps: Annotated[
        int | None, _option("steps", "Environment steps of each run, expansion included.", DEFAULTS.steps, TRAINING)
    ] = None,
    horizon: Annotated[
        int | None,
        _option("horizon", "Give all episodes this length (docs/compare.md); 0: they end as they do.", 0, TRAINING),
    ] = None,
    transfer_env: Annotated[
        list[str] | None,
        typer.Option(
            "--transfer-env",
            metavar="ID",
            help="Train fresh policies on the recovered rewards there, too; repeatable, also with --resume.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    episodes: Annotated[
        int | None, _option("episodes", "Of the evaluation at the end of a run.", DEFAULTS.episodes, TRAINING)
    ] = None,
    looks: Annotated[
        int | None, _option("looks", "Evaluations on the way: points of a learning curve.", DEFAULTS.looks, TRAINING)
    ] = None,
    keep: Annotated[
        int | None,
        _option(
            "keep",
            "Policies kept along each training: results are of the last one, and of the one that the training's own "
            "signal pays most.",
            f"the rounds of --expand, or {KEEP}",
            TRAINING,
        ),
    ] = None,
    draw_demos: Annotated[
        int | None,
        _option(
            "draw-demos",
            "Expert and negative trajectories of each task that each seed draws, the same for all its methods; 0: all "
            "seeds have all.",
            DEFAULTS.draw_demos,
            options.DATA,
        ),
    ] = None,
    reward: Annotated[
        Path | None, _option("reward", "A reward file for grace, in place of a search.", "search", TRAINING, "FILE")
    ] = None,
    expand: Annotated[
        int | None, _option("expand", "Rounds of expansion of grace, as fit has it.", 0, TRAINING)
    ] = None,
    trust_reward: options.TrustReward = None,
    llm_url: options.LlmUrl = None,
    model: options.Model = None,
    images: options.Images = None,
    context: options.Context = None,
    start_from: options.StartFrom = None,
    tune: Annotated[
        list[str] | None,
        typer.Option(
            "--tune",
            metavar="METHOD.KEY=VALUE",
            help="One setting of a method, such as airl.demo_batch_size=512; repeatable.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    device: Annotated[str | None, _option("device", "Of torch: auto, cpu, cuda.", DEFAULTS.device, TRAINING)] = None,
    workers: Annotated[int | None, _option("workers", "Runs at once.", "one per core", RUN)] = None,
    allow_weak_sandbox: options.AllowWeakSandbox = None,
    max_memory: MaxMemory = None,  # noqa: ARG001 - stated by its callback
    out: Annotated[Path | None, _option("out", "A new folder.", "comparisons/<time>", RUN)] = None,
    resume_: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help="Go on with this comparison; runs that failed are done again. --methods and --seeds may change, "
            "--transfer-env adds; what somebody else's comparison names is named again.",
            rich_help_panel=RUN,
        ),
    ] = None,
    config: options.ConfigFile = None,
    set_: options.Sets = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare GRACE with GAIL, AIRL, BC and PPO on the true reward: same PPO, networks, steps and evaluation.

    Writes results.csv, table.md, learning curves, and a folder for each run. Ctrl-C saves; --resume goes on.
    """
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}; expected at least 1")
    named = tuple(name.strip() for name in methods.split(",")) if methods is not None else None
    given: dict[str, object] = {
        "env": env,
        "steps": steps,
        "horizon": horizon,
        "episodes": episodes,
        "looks": looks,
        "keep": keep,
        "draw_demos": draw_demos,
        "device": device,
        "transfer": tuple(transfer_env) if transfer_env else None,
        "tuned": tuple(tune) if tune else None,
        "reward": str(reward) if reward else None,
    }
    flags: dict[str, object] = {
        "data.demos": tuple(demos) if demos else None,
        "data.negatives": tuple(negatives) if negatives else None,
        "data.label": label,
        "data.goals": goals,
        "data.held_out": held_out,
        "data.field_names": field_names,
        "expand.rounds": expand,
        "expand.trust": trust_reward,
        "model.url": llm_url,
        "model.name": model,
        "model.images": images,
        "model.context": context,
        "proposer.start_from": tuple(start_from) if start_from else None,
        "sandbox.allow_weak": allow_weak_sandbox,
    }
    if resume_ is not None:
        words = (("label", "data.label", label), ("goals", "data.goals", goals), ("model", "model.name", model))
        flags |= {key: None for option, key, value in words if options.mirrored(option, value)}
        rest = {"out": out, "config": None if options.mirrored("config", config) else config}
        others = [name for name, value in {**given, **rest}.items() if value is not None and name not in AGAIN]
        if others:
            raise InputError(f"--resume with {', '.join(others)}; {BEGUN_WITH}")
    folder = resume_ or out or Path("comparisons") / time.strftime("%Y%m%d-%H%M%S")
    with ComparisonProgress() as progress:
        try:
            if resume_ is not None:
                further = tuple(transfer_env or ())
                compared = resume(
                    folder,
                    methods=named,
                    seeds=seeds,
                    transfer=further,
                    env=env,
                    sets=tuple(set_ or ()),
                    flags=flags,
                    workers=workers,
                    listener=progress,
                    note=progress.note,
                )
            else:
                fit = worded(config, tuple(set_ or ()), flags, Config(data=DataConfig(held_out=0.0)))
                if not fit.data.demos:
                    raise InputError(
                        "no demonstrations; expected --demos PATH…, such as --demos datasets/babyai-go-to-obj"
                    )
                comparison = comparison_of({**given, "methods": named, "seeds": seeds})
                compared = start(Settings(comparison, fit), folder, workers, progress, progress.note)
        except KeyboardInterrupt:
            progress.close()
            _leave(folder)
    _print(compared, as_json=as_json)
    if all(each.failure for each in compared.results):
        raise typer.Exit(1)


def _print(compared: Compared, *, as_json: bool) -> None:
    out, place = console(), ComparisonFolder(compared.folder)
    if not as_json or out.is_terminal:
        for environment in dict.fromkeys(each.environment for each in compared.standings):
            part = [each for each in compared.standings if each.environment == environment]
            for title, (head, rows) in ((environment, rows_of(part)), ("", differences_of(part))):
                table = Table(*head, title=title or None, title_justify="left", box=None, pad_edge=False)
                for row in rows:
                    table.add_row(*row)
                if rows:
                    out.print(table)
        if compared.standings:
            say(KEY)
        for note in compared.notes:
            say(f"note: {note}")
        say(f"table: {place.table}")
    if as_json:
        print_json(
            {
                "folder": str(compared.folder),
                "standings": compared.standings,
                "results": compared.results,
                "notes": compared.notes,
            }
        )


def _leave(folder: Path) -> None:
    """Says what is saved and leaves."""
    if (folder / "compare.toml").exists():
        again = f"grace-irl compare --resume {shlex.quote(str(folder))}"
        say(f"grace-irl: interrupted; runs that had ended are saved. Go on with: {again}", err=True)
    else:
        say("grace-irl: interrupted; nothing was written", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)
