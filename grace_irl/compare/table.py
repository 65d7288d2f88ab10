"""Tables of results (CSV) and of standings (Markdown)."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from grace_irl.compare.budgets import RESOURCES, budgets_of
from grace_irl.compare.folder import Favourite, JobResult, TrainingOutcome, Used
from grace_irl.compare.settings import Settings
from grace_irl.compare.standings import CONFIDENCE, Scores, SeedSummary, Standing
from grace_irl.methods.account import capitalised
from grace_irl.pages import page
from grace_irl.text import line

TEXTS = ("method", "environment", "data", "failure")
"""Columns of the CSV file that hold texts. All other columns hold numbers."""
PLAYED = ("success", "return", "return_deviation", "length", "score")
USED = ("programs_asked", "programs_trained", "model_calls", "tokens_in", "tokens_out", "search_steps")
"""Columns of the CSV file with the resources that the search of a method used."""
MEASURED = ("seconds", "steps_per_second", "search_seconds")
"""Columns of the CSV file with measured times. They differ even between runs with the same seed."""

KEY = (
    f"mean ± standard deviation over seeds [{CONFIDENCE:.0%} interval of the mean over seeds, Student t; '-' for one "
    f"seed or equal results]; failed runs are left out of all means; in a / b, a is of the last policies and b of the "
    f"favourites ({page('compare')})"
)

USE = "Means over the runs of a method. Programs are trained if policies judge them. A method without a search has 0"

BUDGETS = (
    "The highest score in the search, not of the policies above, that a run had reached within the budget: mean ± "
    "standard deviation over the seeds that these searches share [interval]; '-' if a run had no valid program by "
    "then. The budget is the least that one of these runs has used in all"
)

Row = list[str]


def csv_text(results: Sequence[JobResult]) -> str:
    """The CSV table, with one row for each method, seed and environment, and one for each failure."""
    names = sorted({name for each in results for outcome in each.outcomes for name in outcome.components})
    head = ["method", "seed", "environment", "transfer", "episodes", *PLAYED]
    chosen = [f"favourite_{name}" for name in ("steps", *PLAYED)]
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    columns = [*map(line, names), "steps", *chosen, "choosing_steps", *USED, "data", "epic", *MEASURED, "failure"]
    out.writerow([*head, *columns])
    for result in sorted(results, key=lambda each: (each.method, each.seed)):
        for each in result.outcomes:
            used = None if each.transfer else result.used
            out.writerow(
                [
                    *(result.method, result.seed, line(each.environment), int(each.transfer), each.episodes),
                    *_played(each),
                    *(_plain(each.components.get(name)) for name in names),
                    each.steps,
                    *_favourite(each.favourite),
                    *_used(used),
                    *(line(result.data), _plain(each.epic), _plain(each.seconds), _plain(each.rate)),
                    *(_plain(used.seconds if used else None), ""),
                ]
            )
        if result.failure:
            empty = [""] * (len(head) - 2 + len(columns) - 1)
            out.writerow([result.method, result.seed, *empty, line(result.failure)])
    return text.getvalue()


def _played(one: TrainingOutcome | Favourite) -> list[str]:
    return [*map(_plain, (one.success, one.mean, one.deviation, one.length, one.score))]


def _used(one: Used | None) -> list[str]:
    if one is None:
        return [""] * len(USED)
    return [*map(str, (one.asked, one.trained, one.calls, one.tokens_in, one.tokens_out, one.steps))]


def _favourite(one: Favourite | None) -> list[str]:
    if one is None:
        return [""] * (len(PLAYED) + 2)
    return [str(one.trained), *_played(one), str(one.choosing)]


def markdown(
    settings: Settings, found: Sequence[Standing], notes: Sequence[str], results: Sequence[JobResult] = ()
) -> str:
    """Markdown with the tables of each environment, the resources that each method used, what ran, and the notes."""
    comparison, fit = settings.comparison, settings.fit
    ends = "task" if comparison.task else "environment"
    form = f"episodes of {comparison.horizon} steps" if comparison.horizon else f"episodes as the {ends} ends them"
    expansion = f"; grace expands in {fit.expand.rounds} rounds" if fit.expand.rounds else ""
    draws = (
        f"for each seed, {count} trajectories of each task and role are drawn, which all methods get"
        if (count := comparison.draw_demos)
        else "all seeds have the same demonstrations"
    )
    draws = draws if fit.data.files else "no demonstrations"
    task = f"; task {Path(comparison.task).stem}" if comparison.task else ""
    played = {one.steps for each in results for one in each.outcomes if one.steps and not one.transfer}
    whole = f" ({played.pop():,} in whole rollouts)" if len(played) == 1 and played != {comparison.steps} else ""
    kept = max((len(one.favourite.paid) for each in results for one in each.outcomes if one.favourite), default=0)
    kept = kept or len(settings.keeps()) + 1
    policies = "one policy, which plays" if kept == 1 else f"{kept} policies, which play"
    lines = [
        f"Environment steps of each run: {comparison.steps:,}{whole}{task}; seeds: {comparison.seeds}; {draws}; "
        f"episodes of evaluation: {comparison.episodes}; {form}{expansion}.",
        "",
        *(
            [f"Label rule {fit.data.label}: {_said(comparison.label_reason)}.", ""]
            if comparison.label_reason and fit.data.label
            else []
        ),
        f"Cells: {_said(KEY)}. Each training keeps {policies} "
        f"{comparison.choice_episodes} episodes each. The favourite has the highest mean return of the recovered "
        "reward, for ppo-true of the true reward; a method without a reward has its last policy. These episodes make "
        "the column 'steps to choose', and are no steps of training.",
        "",
    ]
    for environment in dict.fromkeys(each.environment for each in found):
        part = [each for each in found if each.environment == environment]
        carried = " (with rewards that were recovered in another environment)" if part[0].transfer else ""
        head, rows = rows_of(part)
        lines += [f"## {_said(environment)}{carried}", "", _line(head), _line(["---"] * len(head))]
        lines += [_line(row) for row in rows]
        lines.append("")
        head, rows = differences_of(part)
        if rows:
            lines += [_line(head), _line(["---"] * len(head)), *map(_line, rows), ""]
    head, rows = used_of(results, comparison.methods)
    if rows:
        lines += ["## What each method used", "", f"{USE}.", "", _line(head), _line(["---"] * len(head))]
        lines += [*map(_line, rows), ""]
    for title, head, rows in equal_budgets_of(results, comparison.methods):
        lines += [f"## {_said(capitalised(title))}", "", f"{BUDGETS}.", "", _line(head), _line(["---"] * len(head))]
        lines += [*map(_line, rows), ""]
    ran = ran_of(results, settings)
    if ran:
        lines += ["## What ran", "", *(f"- {_said(each)}" for each in ran), ""]
    if notes:
        lines += ["Notes:", "", *(f"- {_said(note)}" for note in notes), ""]
    return "\n".join(lines)


def rows_of(part: Sequence[Standing]) -> tuple[Row, list[Row]]:
    """Head and rows of one environment's table, as text. `KEY` explains the cells."""
    success = part[0].success
    what = "success" if success else "return"
    names = sorted({name for each in part if each.last for name in each.last.components})
    middle = any(one.score.iqm is not None for each in part for one in (each.last, each.favourite) if one)
    scored = any(one.task is not None for each in part for one in (each.last, each.favourite) if one)
    head = ["method", "runs", f"{what}, last policy", f"{what}, favourite"]
    head += ["score, last policy", "score, favourite"] if scored else []
    head += [f"IQM of {what}"] if middle else []
    head += ["return"] if success else []
    head += ["of ppo-true's success"] if success else []
    head += ["of ppo-true's return"] + [name.removeprefix("reward_") for name in names]
    head += ["length", "EPIC", "steps/s", "steps to choose"]
    rows = []
    for each in part:
        runs = f"{len(each.seeds)} ({each.failed} failed)" if each.failed else str(len(each.seeds))
        row = [each.method, runs, "failed" if each.last is None else _scored(each.last), _scored(each.favourite)]
        row += [_interval(one.task if one else None) for one in (each.last, each.favourite)] if scored else []
        row += [_pair(each, lambda one: one.score.iqm)] if middle else []
        row += [_pair(each, lambda one: one.returns.mean)] if success else []
        row += [_pair(each, lambda one: one.of_success)] if success else []
        row += [_pair(each, lambda one: one.of_returns)]
        row += [_pair(each, _component(name)) for name in names]
        row += [_pair(each, lambda one: one.length)]
        row += [_number(each.epic), _whole(each.rate), _whole(each.choosing)]
        rows.append(row)
    return head, rows


def used_of(results: Sequence[JobResult], methods: Sequence[str]) -> tuple[Row, list[Row]]:
    """Head and rows, as text, of the table of resources that each method used.

    Except in the column `runs`, each number is a mean over the method's runs with an outcome.
    """
    head = ["method", "runs", "programs asked", "programs trained", "model calls", "tokens in", "tokens out"]
    head += ["steps of the search", "steps of the training", "steps in all", "seconds of the search"]
    head += ["seconds of the training"]
    rows = []
    for method in methods:
        runs = [each for each in results if each.method == method and each.outcomes]
        if not runs:
            continue
        used = [each.used for each in runs if each.used is not None]
        trained = [next(one for one in each.outcomes if not one.transfer) for each in runs]
        search, training = _mean([each.steps for each in used]), _mean([each.steps for each in trained])
        numbers = [[each.asked, each.trained, each.calls, each.tokens_in, each.tokens_out] for each in used]
        cells = [_mean(column) for column in zip(*numbers, strict=True)] or [None] * 5
        cells += [search, training, None if search is None or training is None else search + training]
        cells += [_mean([each.seconds for each in used]), _mean([each.seconds for each in trained])]
        rows.append([method, str(len(runs)), *map(_whole, cells)])
    return head, rows


def equal_budgets_of(results: Sequence[JobResult], methods: Sequence[str]) -> list[tuple[str, Row, list[Row]]]:
    """Title, head and rows of the table of searches at equal budgets, for each measure of their scores."""
    budgets = budgets_of(results, methods)
    found = []
    for measure in dict.fromkeys(each.measure for each in budgets):
        part = [each for each in budgets if each.measure == measure]
        head = ["method", "runs", *(f"{RESOURCES[each.resource]}: {each.amount:,}" for each in part)]
        rows = [
            [same[0].method, str(same[0].runs), *(_interval(each.reached) for each in same)]
            for same in zip(*(each.methods for each in part), strict=True)
        ]
        found.append((f"{line(measure)} of searches at equal budgets", head, rows))
    return found


def ran_of(results: Sequence[JobResult], settings: Settings) -> list[str]:
    """Lines with the writers of programs, the learner in each environment, changed settings, and versions.

    If runs differ, a line names the runs after each value.
    """
    written = [(each, each.used.writer) for each in results if each.used is not None and each.used.writer]
    trained = [(each, one) for each in results for one in each.outcomes]
    found = [("programs by", written)]
    for environment in dict.fromkeys(one.environment for _, one in trained):
        known = [(each, one.learner) for each, one in trained if one.environment == environment and one.steps]
        found.append((f"learner in {environment}", known))
    if changed := settings.comparison.tuned:
        found.append(("changed settings", [(each, ", ".join(changed)) for each, _ in trained]))
    found.append(("versions", [(each, one.versions) for each, one in trained]))
    return [f"{name}: {_by_value(values)}" for name, values in found if any(value for _, value in values)]


def _by_value(values: Sequence[tuple[JobResult, str]]) -> str:
    """The distinct values, each with its runs if there are several. "" is the value of runs of earlier versions."""
    runs: dict[str, list[JobResult]] = {}
    for result, value in values:
        same = runs.setdefault(value or "unknown", [])
        if result not in same:
            same.append(result)
    if len(runs) == 1:
        return next(iter(runs))
    return "; ".join(f"{value} ({_named(each)})" for value, each in runs.items())


def _named(runs: Sequence[JobResult]) -> str:
    seeds: dict[str, list[str]] = {}
    for each in sorted(runs, key=lambda one: one.seed):
        seeds.setdefault(each.method, []).append(str(each.seed))
    return ", ".join(f"{method} {' '.join(found)}" for method, found in seeds.items())


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values; None if there are no values, or if a value is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def differences_of(part: Sequence[Standing]) -> tuple[Row, list[Row]]:
    """Head and rows of the table of differences between the reference and each other method, over their common seeds.

    The reference is `Standing.reference`.
    """
    scored = all(each.last is None or each.last.task is not None for each in part)
    what = "score" if scored else "success" if part[0].success else "return"
    head = [f"{part[0].reference} ahead of", "common seeds", f"{what}, last policies", f"{what}, favourites"]
    rows = [
        [each.method, str(each.last.ahead.runs), _interval(each.last.ahead), _interval(_ahead(each.favourite))]
        for each in part
        if each.last is not None and each.last.ahead is not None
    ]
    return head, rows


def _component(name: str) -> Callable[[Scores], float | None]:
    return lambda scores: scores.components.get(name)


def _ahead(scores: Scores | None) -> SeedSummary | None:
    return None if scores is None else scores.ahead


def _scored(scores: Scores | None) -> str:
    return "-" if scores is None else _interval(scores.score)


def _interval(summary: SeedSummary | None) -> str:
    """Mean, standard deviation and interval as text; "-" without a summary."""
    if summary is None:
        return "-"
    low, high = summary.interval
    interval = "-" if math.isnan(low) else f"{_number(low)}, {_number(high)}"
    return f"{_number(summary.mean)} ± {_number(summary.deviation)} [{interval}]"


def _pair(standing: Standing, value: Callable[[Scores], float | None]) -> str:
    """A number for the last policies and one for the favourites, as text; "-" if both are missing."""
    found = [None if one is None else value(one) for one in (standing.last, standing.favourite)]
    return "-" if all(each is None for each in found) else " / ".join(map(_number, found))


def _number(value: float | None) -> str:
    """A number as text, with three decimals below 10 and one decimal otherwise."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(line(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _said(text: str) -> str:
    """An untrusted text for Markdown: one line, with backslashes, HTML elements, images and links escaped."""
    return re.sub(r"([\\<\[])", r"\\\1", line(text))
