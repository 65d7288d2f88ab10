"""The output of `grace-irl fit --estimate`."""

from __future__ import annotations

from rich.table import Table

from grace_irl.cli.console import console, say
from grace_irl.cli.output import print_json
from grace_irl.runs.estimate import Cap, Estimate, Total


def print_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Tables for people, one object for programs."""
    if as_json:
        print_json(vars(estimate) | {name: _object(getattr(estimate, name)) for name in ("typical", "most")})
        return
    out = console()
    say(f"proposer {estimate.proposer}, model {estimate.model or 'not known'}")
    out.print(_prompts(estimate))
    out.print(_totals(estimate))
    for cap in estimate.caps:
        say(_cap(cap))
    for line in (*estimate.assumptions, *estimate.notes):
        say(f"- {line}")


def _object(total: Total) -> dict[str, object]:
    return vars(total) | {"tokens": total.tokens}


def _prompts(estimate: Estimate) -> Table:
    table = Table(title="tokens of one call", title_justify="left", box=None, pad_edge=False)
    for name in ("", "typical", "at most"):
        table.add_column(name, justify="right" if name else "left")
    for name, size in estimate.prompts.items():
        table.add_row(f"prompt, {name}{' (a guess)' if size.guess else ''}", str(size.typical), str(size.most))
    answers = f"each of {estimate.samples} answers" if estimate.samples > 1 else "answer"
    table.add_row(f"{answers} (a guess)", str(estimate.answer_typical), str(estimate.answer_most))
    return table


def _totals(estimate: Estimate) -> Table:
    table = Table(title="the whole run", title_justify="left", box=None, pad_edge=False)
    for name in ("", "programs", "calls", "of them repairs", "tokens in", "tokens out", "cost"):
        table.add_column(name, justify="right" if name else "left")
    for name, total in (("typical", estimate.typical), ("at most", estimate.most)):
        counts = (total.programs, total.calls, total.repairs, total.tokens_in, total.tokens_out)
        table.add_row(name, *map(str, counts), f"{total.cost:.4g}" if total.cost else "no prices given")
    return table


def _cap(cap: Cap) -> str:
    """A cap beside what the run takes of it."""
    if cap.most <= cap.limit:
        said = f"never reached (at most {cap.most:.4g})"
    elif cap.typical <= cap.limit:
        said = f"a typical run takes {cap.typical / cap.limit:.0%} of it, the longest would be ended by it"
    else:
        said = f"ends a typical run after {cap.limit / cap.typical:.0%} of it"
    return f"--{cap.name} {cap.limit:.10g}: {said}"
