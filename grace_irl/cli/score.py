"""`grace-irl score`: score a reward file on demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from grace_irl.cli.console import console, plain_table, print_json, say, table_of
from grace_irl.cli.options import Given, MaxMemory
from grace_irl.demos.label_rule import RuleChoice
from grace_irl.evaluate.separation import BEST_HERE
from grace_irl.methods.grace import FitnessConfig
from grace_irl.methods.separated import episode_figures, episode_line, metrics_figures
from grace_irl.runs.config import resolve, settings_of
from grace_irl.runs.score import RoleScore
from grace_irl.settings import Setting

SETTINGS = (
    *("data.demos", "data.experts", "data.negatives", "data.state_columns", "data.episode_column", "data.kind"),
    "data.label",
    *("fitness.log_pi", "sandbox.workers", "sandbox.allow_weak"),
)
"""Settings of `fit` that are also flags of `score`."""


def settings(method: str) -> list[Setting]:
    """The settings that are flags of `score`."""
    del method
    known = settings_of()
    return [known[key] for key in SETTINGS]


def score(
    given: Given,
    reward: Annotated[Path, typer.Argument(help="A reward file, such as a run's reward.py.")],
    calibration: Annotated[
        str,
        typer.Option(help="Scale and offset: file (the file's own), fitted (to these demonstrations) or none."),
    ] = "file",
    max_memory: MaxMemory = None,  # noqa: ARG001 - its callback sets the limit
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object as the last line.")] = False,
) -> None:
    """Score a reward file on demonstrations, in the sandbox."""
    from grace_irl.runs import score as scores
    from grace_irl.runs.data import open_data
    from grace_irl.runs.loading import require_demonstrations

    config = resolve(flags=given)
    require_demonstrations(config)
    found = scores.score(
        reward,
        open_data(config.data),
        rule=config.data.label or None,
        choice=config.own(FitnessConfig).log_pi,
        calibration=calibration,
        workers=config.sandbox.workers,
        allow_weak=config.sandbox.allow_weak,
        show=say,
    )
    if as_json:
        rest = {name: each for name, each in vars(found).items() if name != "metrics"}
        print_json({"reward": str(reward), **vars(found.metrics), **rest})
        return
    out = console()
    tasks = list(found.tasks.items()) if len(found.tasks) > 1 else []
    rows = [*tasks, ("all", found.metrics)]
    if (by_episode := episode_figures(rows)) is not None:
        out.print(table_of(by_episode))
        say(episode_line(found.metrics))
    out.print(table_of(metrics_figures(rows)))
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
    names = ("states", "trajectories", "number", "mean", "least", "most", "D on the right side")
    table = plain_table(*names, numbers=True)
    for role in roles:
        numbers = (f"{value:.4g}" for value in (role.mean, role.least, role.most))
        table.add_row(role.group, str(role.trajectories), str(role.states), *numbers, f"{role.right:.2%}")
    return table
