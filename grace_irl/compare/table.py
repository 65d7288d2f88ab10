"""Results and standings as tables: CSV for programs, Markdown for people."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence

from grace_irl.compare.outcome import Result
from grace_irl.compare.settings import Settings
from grace_irl.compare.standings import Standing
from grace_irl.text import line

MEASURED = ("seconds", "steps_per_second")
"""Columns of the CSV file that the machine decides and not the seed."""

Row = list[str]


def csv_text(results: Sequence[Result]) -> str:
    """One row for each method, seed and environment, and one for each failure."""
    names = sorted({name for each in results for outcome in each.outcomes for name in outcome.components})
    head = ["method", "seed", "environment", "transfer", "episodes", "success", "return", "return_deviation", "length"]
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow([*head, *map(line, names), "steps", "epic", *MEASURED, "failure"])
    for result in sorted(results, key=lambda each: (each.method, each.seed)):
        for each in result.outcomes:
            out.writerow(
                [
                    *(result.method, result.seed, line(each.environment), int(each.transfer), each.episodes),
                    *(_plain(each.success), _plain(each.mean), _plain(each.deviation), _plain(each.length)),
                    *(_plain(each.components.get(name)) for name in names),
                    *(each.steps, _plain(each.epic), _plain(each.seconds), _plain(each.rate), ""),
                ]
            )
        if result.failure:
            empty = [""] * (len(head) - 2 + len(names) + 2 + len(MEASURED))
            out.writerow([result.method, result.seed, *empty, line(result.failure)])
    return text.getvalue()


def markdown(settings: Settings, found: Sequence[Standing], notes: Sequence[str]) -> str:
    """The tables, one for each environment, and their notes."""
    comparison, fit = settings.comparison, settings.fit
    form = f"episodes of {comparison.horizon} steps" if comparison.horizon else "episodes as the environment ends them"
    expansion = f"; grace expands in {fit.expand.rounds} rounds" if fit.expand.rounds else ""
    lines = [
        f"Environment steps of each run: {comparison.steps:,}; seeds: {comparison.seeds}; episodes of evaluation: "
        f"{comparison.episodes}; {form}{expansion}.",
        "",
    ]
    for environment in dict.fromkeys(each.environment for each in found):
        part = [each for each in found if each.environment == environment]
        carried = " (rewards recovered elsewhere)" if part[0].transfer else ""
        head, rows = rows_of(part)
        lines += [f"## {_said(environment)}{carried}", "", _line(head), _line(["---"] * len(head))]
        lines += [_line(row) for row in rows]
        lines.append("")
    if notes:
        lines += ["Notes:", "", *(f"- {_said(note)}" for note in notes), ""]
    return "\n".join(lines)


def rows_of(part: Sequence[Standing]) -> tuple[Row, list[Row]]:
    """Head and rows of one environment's table, as text."""
    what = "success" if part[0].success else "return"
    names = sorted({name for each in part for name in each.components})
    head = ["method", "runs", f"{what}: mean ± deviation", "IQM [95 %]", "of ppo-true"]
    head += (["return"] if part[0].success else []) + [name.removeprefix("reward_") for name in names]
    head += ["length", "EPIC", "steps/s"]
    rows = []
    for each in part:
        runs = f"{len(each.seeds)} ({each.failed} failed)" if each.failed else str(len(each.seeds))
        score = each.score
        row = [each.method, runs]
        if score is None:
            row += ["failed", "-", "-"]
        else:
            row.append(f"{_number(score.mean)} ± {_number(score.deviation)}")
            row.append(f"{_number(score.iqm)} [{_number(score.iqm_interval[0])}, {_number(score.iqm_interval[1])}]")
            row.append(_number(each.fraction))
        row += [_number(each.returns)] if each.success else []
        row += [_number(each.components.get(name)) for name in names]
        row += [_number(each.length), _number(each.epic), "-" if each.rate is None else f"{each.rate:.0f}"]
        rows.append(row)
    return head, rows


def _number(value: float | None) -> str:
    """Three decimals for shares, one for what is larger."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _said(text: str) -> str:
    """A text of others in Markdown: one line, without elements, pictures or links."""
    return re.sub(r"([<\[])", r"\\\1", line(text))
