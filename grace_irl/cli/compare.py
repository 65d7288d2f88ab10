"""`grace-irl compare`: compare GRACE, GAIL, AIRL, BC, and PPO on the true reward, trained and evaluated alike."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

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
    mirrored,
)
from grace_irl.compare.settings import Comparison
from grace_irl.config import METHOD, Config
from grace_irl.errors import InputError
from grace_irl.settings import Setting, declared

if TYPE_CHECKING:
    from grace_irl.compare.comparison import Compared

BEGUN_WITH = "expected none of them: a comparison goes on with the settings that it began with"
AGAIN = ("env", "task", "transfer", "methods", "seeds")  # settings allowed with --resume
FIT = (
    *("data.demos", "data.experts", "data.negatives", "data.state_columns", "data.episode_column", "data.kind"),
    *("data.sample", "data.label", "data.goals", "data.held_out", "data.swaps"),
    "data.field_names",
    *("expand.rounds", "expand.trust", "model.url", "model.name", "model.images", "model.context"),
    *("proposer.start_from", "sandbox.allow_weak"),
)
"""Settings of `fit` that are also flags of `compare`."""
COMMON = ("--out", "--resume")


def settings(method: str) -> list[Setting]:
    """The settings that are flags of `compare`: all settings of a comparison, and some settings of `fit` (`FIT`)."""
    del method
    fit = dict(declared(Config))
    fit["data.held_out"] = replace(fit["data.held_out"], default=0.0, mirrored=False)
    fit["expand.rounds"] = replace(fit["expand.rounds"], help="Rounds of expansion of grace.", mirrored=False)
    own = dict(declared(Comparison, "compare"))
    own["compare.methods"] = replace(own["compare.methods"], many=False)
    return [*(fit[key] for key in FIT), *(replace(each, mirrored=False) for each in own.values())]


def compare(
    given: Given,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", help="Number of runs in parallel.", show_default="one per core", min=1, rich_help_panel="Run"
        ),
    ] = None,
    executor: Executor = None,
    jobs: Jobs = None,
    ray_address: RayAddress = None,
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A new folder.", show_default="comparisons/<time>", rich_help_panel="Run"),
    ] = None,
    resume_: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help="Go on with this comparison; runs that failed are done again. --methods and --seeds may change, "
            "--transfer-env adds; what somebody else's comparison names is named again.",
            rich_help_panel="Run",
        ),
    ] = None,
    config: ConfigFile = None,
    set_: Sets = None,
    as_json: AsJson = False,
    help_all: HelpAll = False,  # noqa: ARG001 - its callback prints the help
) -> None:
    """Compare GRACE with GAIL, AIRL, BC and PPO on the true reward: same PPO, networks, steps and evaluation.

    Writes results.csv, table.md, learning curves, and a folder for each run. Ctrl-C saves; --resume continues.
    """
    from grace_irl.cli.progress import ComparisonProgress
    from grace_irl.compare.comparison import resume, start
    from grace_irl.compare.effects import require_effect_on_searches
    from grace_irl.compare.settings import Settings, comparison_of, key_of, told_apart
    from grace_irl.runs.acting import worded
    from grace_irl.runs.config import config_of, method_named, with_settings
    from grace_irl.runs.effects import words
    from grace_irl.runs.folder import dated, reserved
    from grace_irl.work import Workplace

    own = {key.removeprefix("compare."): value for key, value in given.items() if key.startswith("compare.")}
    methods = own["methods"]
    own["methods"] = tuple(name.strip() for name in str(methods).split(",")) if methods is not None else None
    flags = {key: value for key, value in given.items() if not key.startswith("compare.")}
    sets, folder = tuple(set_ or ()), resume_ or out or dated("comparisons")
    if resume_ is not None:
        for key, name in (("data.label", "label"), ("data.goals", "goals"), ("model.name", "model")):
            flags[key] = None if mirrored(name, flags[key]) else flags[key]
        rest = {"out": out, "config": None if mirrored("config", config) else config}
        others = [name for name, value in {**own, **rest}.items() if value is not None and name not in AGAIN]
        if others:
            raise InputError(f"--resume with {', '.join(others)}; {BEGUN_WITH}")
    workplace = Workplace.of(executor, jobs, ray_address)
    with ComparisonProgress(workplace.at_work) as progress:
        if where := workplace.said():
            progress.note(where)
        try:
            if resume_ is not None:
                again = comparison_of({name: own[name] for name in AGAIN})
                compared = resume(
                    folder,
                    methods=again.methods if own["methods"] is not None else None,
                    seeds=again.seeds if own["seeds"] is not None else None,
                    transfer=again.transfer,
                    env=again.env if own["env"] is not None else None,
                    task=again.task if own["task"] is not None else None,
                    sets=sets,
                    flags=flags,
                    workers=workers,
                    listener=progress,
                    note=progress.note,
                    workplace=workplace,
                )
            else:
                searched = [each.partition("=")[2].strip(" \"'") for each in sets if key_of(each) == "method"]
                searched = searched[-1:] or [method_named(config) if config else ""]
                method = searched[0] or METHOD
                sets, more = told_apart(comparison_of(own).methods, sets, method)
                base = with_settings(config_of(method)(), {"method": method, "data.held_out": 0.0})
                fit = worded(config, sets, flags, base)
                if not fit.data.files and not own["task"]:
                    raise InputError(
                        "no demonstrations; expected --demos PATH…, such as the folder that grace-irl example writes, "
                        "or --task for methods that need none"
                    )
                said = words(fit, config, sets, flags)
                keys = said.keys() | {*map(key_of, sets)} | {key for key, value in flags.items() if value is not None}
                settings = Settings(comparison_of({**own, "searches": more, "given": tuple(sorted(keys))}), fit)
                said |= {key_of(each): f"--set {key_of(each)}" for each in more}
                require_effect_on_searches(settings, said)
                with nullcontext(out) if out is not None else reserved(lambda: dated("comparisons")) as folder:
                    compared = start(settings, folder, workers, progress, progress.note, workplace)
        except KeyboardInterrupt:
            progress.close()
            _leave(folder)
    _print(compared, as_json=as_json)
    if all(each.failure for each in compared.results):
        raise typer.Exit(1)


def _print(compared: Compared, *, as_json: bool) -> None:
    from grace_irl.cli.console import console, plain_table, print_json, say
    from grace_irl.compare.folder import ComparisonFolder
    from grace_irl.compare.table import BUDGETS, KEY, USE, differences_of, equal_budgets_of, rows_of, used_of

    out, place = console(), ComparisonFolder(compared.folder)
    if not as_json or out.is_live:
        for environment in dict.fromkeys(each.environment for each in compared.standings):
            part = [each for each in compared.standings if each.environment == environment]
            for title, (head, rows) in ((environment, rows_of(part)), ("", differences_of(part))):
                table = plain_table(*head, title=title)
                for row in rows:
                    table.add_row(*row)
                if rows:
                    out.print(table)
        if compared.standings:
            say(KEY)
            methods = list(dict.fromkeys(each.method for each in compared.standings))
            tables = [("what each method used", *used_of(compared.results, methods), USE)]
            tables += [(*each, BUDGETS) for each in equal_budgets_of(compared.results, methods)]
            for title, head, rows, said in tables:
                table = plain_table(*head, title=title)
                for row in rows:
                    table.add_row(*row)
                out.print(table)
                say(said)
        for note in compared.notes:
            say(f"note: {note}")
        say(f"table: {place.table}")
    if as_json:
        print_json(
            {
                "folder": str(compared.folder),
                "label": compared.label.rule,
                "label_reason": compared.label.reason,
                "standings": compared.standings,
                "results": compared.results,
                "notes": compared.notes,
            }
        )


def _leave(folder: Path) -> NoReturn:
    """Print how to resume, then exit at once. A normal exit could wait forever for threads of stopped runs."""
    from grace_irl.cli.console import say
    from grace_irl.cli.ending import interrupted_code

    if (folder / "compare.toml").exists():
        again = f"grace-irl compare --resume {shlex.quote(str(folder))}"
        say(f"grace-irl: interrupted; runs that had ended are saved. Go on with: {again}", err=True)
    else:
        say("grace-irl: interrupted; nothing was written", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(interrupted_code())
