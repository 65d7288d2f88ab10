"""`grace-irl fit`: recover a reward file from demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from grace_irl.cli.options import (
    AsJson,
    ConfigFile,
    Executor,
    Given,
    HelpAll,
    Jobs,
    MaxMemory,
    RayAddress,
    Sets,
    at_home,
    mirrored,
)
from grace_irl.config import METHOD, Config
from grace_irl.runs.config import is_read, settings_of
from grace_irl.settings import Setting, declared, mirror

COMMON = ("--out", "--resume")
"""Flags that `fit --help` shows in addition to the settings declared as `common`."""


def settings(method: str) -> Sequence[Setting]:
    """The settings that a method reads. Each setting with a flag becomes an option of `fit`."""
    method = method or METHOD
    return tuple(each for each in settings_of(method).values() if is_read(each.key, method))


def own(method: str) -> Sequence[str]:
    """The flags of a method's search. `fit --method NAME --help` shows them beside the common flags."""
    if not method:
        return ()
    shared = declared(Config)
    return tuple(
        f"--{each.flag}"
        for each in settings(method)
        if each.flag and each.key not in shared and not each.key.startswith(("fitness.", "policy.", "stop."))
    )


def fit(
    given: Given,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The run's folder, new.",
            show_default="runs/<set>-<time>",
            envvar=mirror("out"),
            callback=at_home,
            rich_help_panel="Run",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="RUN", help="Go on with this run, in place of a new one.", rich_help_panel="Run"
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="RUN",
            help="A new run with the settings and answers of this one, or of a recording made by export: no model.",
            rich_help_panel="Run",
        ),
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="Only print the calls, tokens and cost that such a run asks of a model; writes nothing, and no model "
            "answers.",
            rich_help_panel="Run",
        ),
    ] = False,
    executor: Executor = None,
    jobs: Jobs = None,
    ray_address: RayAddress = None,
    config: ConfigFile = None,
    set_: Sets = None,
    as_json: AsJson = False,
    help_all: HelpAll = False,  # noqa: ARG001 - its callback prints the help
) -> None:
    """Recover a reward function from demonstrations.

    Writes a run folder (config.toml, run.db, reward.py, report.html) and prints reward.py. Ctrl-C saves; --resume
    continues.

    Example: grace-irl fit --demos babyai-go-to-obj (`grace-irl example` writes these demonstrations)
    """
    from grace_irl.cli.console import say
    from grace_irl.cli.fit_results import leave, print_estimate, print_run
    from grace_irl.cli.progress import FitProgress
    from grace_irl.cli.report import report_of_fit
    from grace_irl.runs import proposers
    from grace_irl.runs.acting import worded
    from grace_irl.runs.caller import Parts
    from grace_irl.runs.effects import require_alone, require_effect, words
    from grace_irl.runs.estimate import estimated
    from grace_irl.runs.expand import expansion
    from grace_irl.runs.folder import RunPaths
    from grace_irl.runs.loading import require_demonstrations
    from grace_irl.runs.recording import recorded_config
    from grace_irl.runs.run import Interrupted
    from grace_irl.work import Workplace

    sets, workplace = tuple(set_ or ()), Workplace.of(executor, jobs, ray_address)
    try:
        if resume is not None:
            own = None if mirrored("config", config) else config
            place = None if mirrored("out", out) else out
            require_alone(out=place, config=own, replay=replay, estimate=estimate)
            with FitProgress(workplace.at_work) as progress:
                parts = Parts(listener=progress, note=progress.note, workplace=workplace)
                if where := workplace.said():
                    progress.note(where)
                run = expansion.resume(resume, given, sets=sets, parts=parts)
        else:
            resolved = worded(config, sets, given, recorded_config(replay) if replay else None)
            require_effect(resolved, words(resolved, config, sets, given))
            require_demonstrations(resolved)
            if estimate:
                if said := proposers.destination(proposers.settled(resolved)):
                    say(said, err=True)
                print_estimate(estimated(resolved), as_json=as_json)
                return
            with FitProgress(workplace.at_work) as progress:
                parts = Parts(listener=progress, note=progress.note, workplace=workplace)
                if where := workplace.said():
                    progress.note(where)
                run = expansion.start(resolved, out, parts)
    except Interrupted as interrupted:
        leave(interrupted)
    try:
        report = report_of_fit(run.folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; the reward is complete: {run.reward_path}. Make the report with: "
            f"grace-irl report {RunPaths(run.folder).quoted}"
        ) from None
    print_run(run, report, as_json=as_json)
