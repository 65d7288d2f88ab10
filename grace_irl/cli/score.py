"""`grace-irl score`: a reward file on demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from grace_irl.cli.console import console, print_json, say, table_of
from grace_irl.cli.options import Kind, MaxMemory
from grace_irl.demos.label_rule import RuleChoice
from grace_irl.errors import InputError
from grace_irl.evaluate.separation import BEST_HERE
from grace_irl.methods.separated import metrics_figures
from grace_irl.runs.score import RoleScore

LABELS = ("all", "last", "goal")


def score(
    reward: Annotated[Path, typer.Argument(help="A reward file, such as a run's reward.py.")],
    demos: Annotated[
        list[str] | None,
        typer.Option(
            "--demos", metavar="PATH…", help="Files, folders or Minari ids, roles from the files; repeatable."
        ),
    ] = None,
    negatives: Annotated[
        list[str] | None,
        typer.Option("--negatives", metavar="PATH…", help="More of them, negative whatever they say; repeatable."),
    ] = None,
    kind: Kind = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Positive expert states: all, last, goal.",
            show_default="what fits the data",
            envvar="GRACE_IRL_LABEL",
        ),
    ] = None,
    log_pi: Annotated[
        str,
        typer.Option(
            "--log-pi",
            help="pi in the discriminator: constant, uniform, recorded, cloned.",
            envvar="GRACE_IRL_LOG_PI",
        ),
    ] = "constant",
    calibration: Annotated[
        str,
        typer.Option(help="Scale and offset: the file's own (file), fitted to these demonstrations (fitted), none."),
    ] = "file",
    workers: Annotated[
        int | None,
        typer.Option(help="Sandbox workers.", show_default="one per core", envvar="GRACE_IRL_WORKERS"),
    ] = None,
    allow_weak_sandbox: Annotated[
        bool,
        typer.Option(
            "--allow-weak-sandbox",
            help="Run the file even where this machine cannot confine it.",
            envvar="GRACE_IRL_ALLOW_WEAK_SANDBOX",
        ),
    ] = False,
    max_memory: MaxMemory = None,  # noqa: ARG001 - stated by its callback
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Score a reward file on demonstrations, in the sandbox."""
    from grace_irl import api

    if not demos:
        raise InputError("no demonstrations; expected --demos PATH…")
    for name, value, known in (
        ("--label", label, LABELS),
        ("--calibration", calibration, ("file", "fitted", "none")),
    ):
        if value is not None and value not in known:
            raise InputError(f"{name} {value!r} is unknown; expected one of {', '.join(known)}")
    found = api.score(
        reward,
        demos,
        negatives=negatives or (),
        kind=kind or "",
        label=label,  # type: ignore[arg-type]  # checked above
        log_pi=log_pi,
        calibration=calibration,
        workers=workers,
        allow_weak_sandbox=allow_weak_sandbox,
    )
    if as_json:
        print_json(
            {
                "reward": str(reward),
                **vars(found.metrics),
                "tasks": found.tasks,
                "roles": found.roles,
                "scale": found.scale,
                "offset": found.offset,
                "calibration": found.calibration,
                "threshold": found.threshold,
                "threshold_from": found.threshold_from,
                "kind": found.kind,
                "label": found.label,
                "label_reason": found.label_reason,
                "monotonicity": found.monotonicity,
                "trajectories": found.trajectories,
            }
        )
        return
    out = console()
    tasks = list(found.tasks.items()) if len(found.tasks) > 1 else []
    out.print(table_of(metrics_figures([*tasks, ("all", found.metrics)])))
    if found.threshold_from == "file":
        say(f"accuracy: at the file's threshold, reward > {found.threshold:.6g}")
    else:
        say(f"accuracy: {BEST_HERE}, reward > {found.threshold:.6g} (the file carries none)")
    out.print(_roles_table(found.roles))
    fitted = f"{found.scale:.6g} * r + {found.offset:.6g}"
    if found.kind:
        say(found.kind)
    say(RuleChoice(found.label, found.label_reason).line)
    say(f"calibration {found.calibration}: {fitted}")
    if found.monotonicity is not None:
        say(f"Kendall tau of reward against time along expert trajectories: {found.monotonicity:.3f}")


def _roles_table(roles: tuple[RoleScore, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("states")
    for name in ("trajectories", "number", "mean", "least", "most", "D on the right side"):
        table.add_column(name, justify="right")
    for role in roles:
        numbers = (f"{value:.4g}" for value in (role.mean, role.least, role.most))
        table.add_row(role.group, str(role.trajectories), str(role.states), *numbers, f"{role.right:.2%}")
    return table
