"""Output of `grace-irl fit`: the result of a run, or an estimate of the calls, tokens and cost of a run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from rich.table import Table

from grace_irl.cli.console import console, plain_table, print_json, print_source, say, table_of
from grace_irl.cli.ending import interrupted_code
from grace_irl.cli.report import report_of_fit
from grace_irl.cli.rounds import rounds_table
from grace_irl.methods.registry import judged_by
from grace_irl.runs.estimate import Cap, Estimate, Total
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.front import front_figures
from grace_irl.runs.run import Interrupted, Run


def print_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print an estimate of the calls, tokens and cost of a run, as tables or as one JSON object."""
    if as_json:
        totals = {name: _object(getattr(estimate, name)) for name in ("typical", "most")}
        label = {"label": estimate.label.rule, "label_reason": estimate.label.reason}
        print_json(vars(estimate) | totals | label)
        return
    out = console()
    if estimate.prompts:
        say(f"proposer {estimate.proposer}, model {estimate.model or 'not known'}")
        out.print(_prompts(estimate))
        out.print(_totals(estimate))
    else:
        say(f"proposer {estimate.proposer}")
    for cap in estimate.caps:
        say(_cap(cap))
    if estimate.judged:
        say(estimate.label.line)
    for line in (*estimate.assumptions, *estimate.notes):
        say(f"- {line}")


def _object(total: Total) -> dict[str, object]:
    return vars(total) | {"tokens": total.tokens}


def _prompts(estimate: Estimate) -> Table:
    table = plain_table("", "typical", "at most", title="tokens of one call", numbers=True)
    for name, size in estimate.prompts.items():
        table.add_row(f"prompt, {name}{' (a guess)' if size.guess else ''}", str(size.typical), str(size.most))
    answers = f"each of {estimate.samples} answers" if estimate.samples > 1 else "answer"
    table.add_row(f"{answers} (a guess)", str(estimate.answer_typical), str(estimate.answer_most))
    return table


def _totals(estimate: Estimate) -> Table:
    names = ("", "programs", "calls", "of them repairs", "tokens in", "tokens out", "cost")
    table = plain_table(*names, title="the whole run", numbers=True)
    for name, total in (("typical", estimate.typical), ("at most", estimate.most)):
        counts = (total.programs, total.calls, total.repairs, total.tokens_in, total.tokens_out)
        table.add_row(name, *map(str, counts), f"{total.cost:.4g}" if total.cost else "no prices given")
    return table


def _cap(cap: Cap) -> str:
    """One line about a limit of the run, and about whether the estimated run reaches the limit."""
    if cap.most <= cap.limit:
        said = f"never reached (at most {cap.most:.4g})"
    elif cap.typical <= cap.limit:
        said = f"a typical run takes {cap.typical / cap.limit:.0%} of it; it would end the longest run"
    else:
        said = f"ends a typical run when {cap.limit / cap.typical:.0%} of the run is done"
    return f"--{cap.name} {cap.limit:.10g}: {said}"


def print_run(run: Run, report: Path | None, *, as_json: bool) -> None:
    """Print the result of a run as tables. With `as_json`, print one JSON object; on a terminal, the tables, too."""
    out = console()
    best, account = run.best, judged_by(run.method, run.task).account
    if not as_json or out.is_live:
        print_source(out, run.reward_path.read_text(encoding="utf-8"))
        for figures in account.figures(best.evaluation):
            out.print(table_of(figures))
        verdict = account.verdict(best.evaluation)
        for remark in account.remarks(best.evaluation):
            if remark not in verdict:
                say(remark)
        if len(run.front_rows) > 1 and run.front_rows[0].auc is not None:
            out.print(table_of(front_figures(run.front_rows)))
        tried = f"{run.programs} programs in {run.calls} answers, generations complete: {run.generations}"
        if run.tokens:
            tried += f", {run.tokens} tokens" + (f" for {run.cost:.4g}" if run.cost else "")
            tried += " in all searches" if run.rounds else ""
        say(f"{tried}, {run.seconds:.1f} s of search; ended by {run.reason}")
        say(verdict)
        if run.rounds:
            out.print(rounds_table(run.rounds))
        if run.rest is not None:
            say(run.rest.line)
        if run.audit is not None and run.audit.contrast is not None:
            say(run.audit.contrast.line)
        for warning in run.warnings:
            say(warning.line)
        say(f"reward: {run.reward_path}")
        if run.favourite is not None:
            say(f"policy: {run.folder / run.favourite.policy} ({_best_by(run)})")
        if report is not None:
            say(f"report: {report}")
    if as_json:
        print_json(
            {
                "run": str(run.folder),
                "reward_path": str(run.reward_path),
                "policy_path": None if run.favourite is None else str(run.folder / run.favourite.policy),
                "report_path": None if report is None else str(report),
                **account.values(best.evaluation),
                "program": best.program.id,
                "programs": run.programs,
                "calls": run.calls,
                "tokens": run.tokens,
                "cost": run.cost,
                "generations": run.generations,
                "seconds": run.seconds,
                "proposer": run.proposer,
                "label": run.label.rule if run.label else "",
                "label_reason": run.label.reason if run.label else "",
                "notes": run.notes,
                "front": run.front_rows,
                "rest": run.rest,
                "contrast": run.audit and run.audit.contrast,
                "warnings": run.warnings,
                "reason": run.reason,
                "rounds": run.rounds,
            }
        )


def leave(interrupted: Interrupted) -> NoReturn:
    """Print how to resume, write the report, and exit without waiting for threads that still compute."""
    resume = RunPaths(interrupted.folder).resume
    say(f"grace-irl: interrupted; saved. Go on with: grace-irl fit {resume}", err=True)
    if interrupted.best is not None:
        say(f"best so far: {RunPaths(interrupted.folder).reward}", err=True)
    sys.stderr.flush()
    try:
        report_of_fit(interrupted.folder)
    except KeyboardInterrupt:
        say("grace-irl: no report", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(interrupted_code())


def _best_by(run: Run) -> str:
    """The reason why a round's policy is the best one of an expansion (`grace_irl.runs.expand.round.favourite`)."""
    if run.label is not None and run.label.rule != "all":
        return "of all rounds' policies, its rollouts most often look like an expert's"
    return "it earns the most reward of all rounds' policies"
