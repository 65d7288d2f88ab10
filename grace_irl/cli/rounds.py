"""The rounds of an expansion (docs/expansion.md) as a table, for `fit` and `show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from grace_irl.audit.warning import RewardWarning
from grace_irl.cli.console import console, plain_table, print_json, say
from grace_irl.methods.separated import accuracy_line
from grace_irl.runs.auditing import stored_audit
from grace_irl.runs.expand.expansion import rounds_of
from grace_irl.runs.expand.round import Round, became
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.run import last_run, opened

COLUMNS = (
    *("round", "steps", "rollouts", "like experts", "accuracy on the rest", "reward"),
    *("program", "accuracy", "held out", "true return", "success"),
)


def show_rounds(folder: Path, *, as_json: bool) -> None:
    """Print the output of `show` for an expansion: one line per round of search and training."""
    rounds = rounds_of(folder)
    warnings: Sequence[RewardWarning] = ()
    if rounds:
        with opened(last_run(folder)) as (store, _):
            audit = stored_audit(store)
        warnings = audit.warnings if audit else ()
    if as_json:
        print_json({"expansion": str(folder), "rounds": rounds, "warnings": warnings})
        return
    out = console()
    out.print(rounds_table(rounds))
    if rounds:
        with opened(folder / rounds[0].run) as (store, _):
            if store.format < 2:
                say(accuracy_line(None))
        for warning in warnings:
            say(warning.line)
        say(f"reward: {RunPaths(folder).reward}")
    say(f"each search: grace-irl show {RunPaths(folder / 'rounds' / '0' / 'run').quoted}, and so on")


def rounds_table(rounds: Sequence[Round]) -> Table:
    """A table with one row per round. The true returns and success rates are measured by the environment.

    No search uses them.
    """
    table = plain_table(*COLUMNS)
    for each in rounds:
        told = each.number > 0
        table.add_row(
            str(each.number),
            str(each.steps) if told else "-",
            str(each.rollouts) if told else "-",
            str(each.alike) if told else "-",
            _number(each.new_accuracy),
            became(each),
            each.program,
            _number(each.accuracy),
            _number(each.held_out),
            f"{each.mean:.4g} ± {each.deviation:.3g}" if each.mean is not None and each.deviation is not None else "-",
            "-" if each.success is None else f"{each.success:.2f}",
        )
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
