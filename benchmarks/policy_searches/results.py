"""The finished searches of `policy_search.py`, and their tables in Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t, ttest_ind, ttest_rel

from grace_irl.tasks.task import Task

PROGRAMS = 32
"""Programs of a search, unless the command line has another number."""
FINISHED = Path(__file__).resolve().parent
"""Folder of the finished searches, a file for each task."""
BY_HAND = FINISHED / "references.jsonl"
"""Scores of rewards by hand, for all tasks."""
BY_MODEL = FINISHED / "recorded.jsonl"
"""The best programs of recordings, for all tasks."""


@dataclass(frozen=True)
class Found:
    """The result of a finished search.

    Attributes:
        search, seed: name and seed of the search.
        programs: number of programs, each of which has trained a policy.
        seconds: duration of the search, on a machine that may have had other work, without trainings taken over.
        score: the score of its best program in the search.
        fresh: scores of the trainings on this program with `FRESH` seeds.
        source: the source of this program.
        requests: number of requests for programs; 0 for as many as the benchmark asked for.
        depths: of FORGE, the scores of the programs of each depth, from depth 0; () if they were not recorded.
    """

    search: str
    seed: int
    programs: int
    seconds: float
    score: float
    fresh: list[float]
    source: str
    requests: int = 0
    depths: Sequence[Sequence[float]] = ()


def folder_of(name: str, programs: int) -> str:
    """The name of a search's folders, without its seed."""
    return name if programs == PROGRAMS else f"{name}-{programs}"


def file_of(task: Task, programs: int) -> Path:
    """The file of the finished searches of a task with a number of programs."""
    return FINISHED / f"{folder_of(task.name, programs)}.jsonl"


def finished(task: Task, programs: int) -> dict[tuple[str, int], Found]:
    """The finished searches of a task with a number of programs, by name and seed."""
    rows = [Found(**row) for row in lines(file_of(task, programs))]
    return {(each.search, each.seed): each for each in rows}


def references(task: Task) -> dict[str, list[float]]:
    """The fresh scores of rewards by hand for a task, by name."""
    return {row["reward"]: row["fresh"] for row in lines(BY_HAND) if row["task"] == task.name}


def recorded(task: Task) -> dict[str, dict[str, Any]]:
    """The best programs of recordings for a task, with their scores, by recording."""
    return {row["recording"]: row for row in lines(BY_MODEL) if row["task"] == task.name}


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; none if there is no such file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def told(scores: Sequence[float]) -> str:
    """Mean and 95 % interval of the mean over trainings, by Student's t; then all scores."""
    values = np.array(scores)
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return f"{values.mean():.3f} ± {half:.3f} ({', '.join(f'{value:.2f}' for value in sorted(values))})"


def table(task: Task, names: Sequence[str], programs: int, wholes: Mapping[str, str]) -> str:
    """The table of all finished runs of a task with a number of programs, in Markdown.

    Args:
        task: the task.
        names: names of the searches.
        programs: number of programs of a search.
        wholes: by the name of a search without one of its parts, the name of the whole search. If there are any,
            differences are from the whole search, else from random search.
    """
    rows = [
        f"| reward | requests | trained programs | score in the search | fresh, mean | median "
        f"| beside {'the whole search' if wholes else 'random'} | beside the score | fresh scores by seed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    by_hand = references(task)
    score = by_hand.get("score")
    done = finished(task, programs)
    runs = {name: [each for (search, _), each in sorted(done.items()) if search == name] for name in names}
    others = {name: wholes.get(name, "" if wholes or name == "random" else "random") for name in names}
    rows += [_row(name, "", (), [], [scores], [], None) for name, scores in by_hand.items()]
    for name, found in runs.items():
        if found:
            asked = ", ".join(str(each.requests or programs) for each in found)
            counts, searches = [each.programs for each in found], [each.score for each in found]
            other = {each.seed: each.fresh for each in runs.get(others[name], [])}
            beside = [other[each.seed] for each in found if each.seed in other]
            beside = beside if len(beside) == len(found) else []
            rows.append(_row(name, asked, counts, searches, [each.fresh for each in found], beside, score))
    for name, one in recorded(task).items() if programs == PROGRAMS and not wholes else ():
        asked = f"{one['requests']} ({one['calls']} calls)"
        rows.append(_row(name, asked, [one["programs"]], [one["score"]], [one["fresh"]], [], score))
    return "\n".join(rows)


def remarks(task: Task, names: Sequence[str], programs: int) -> str:
    """Lines on the winners of all finished searches of a task with a number of programs.

    They compare the spread over seeds with that over searches, and the winners with the rewards by hand. A winner is
    shown to be better or worse if Welch's 95 % interval over the fresh trainings, without correction, excludes 0.
    """
    found = [each for (name, _), each in finished(task, programs).items() if name in names]
    found.sort(key=lambda each: (each.seed, each.search))
    if not found:
        return ""
    by_search: dict[str, list[float]] = {}
    by_seed: dict[int, list[float]] = {}
    winners: dict[str, list[str]] = {}
    for each in found:
        by_search.setdefault(each.search, []).append(float(np.mean(each.fresh)))
        by_seed.setdefault(each.seed, []).append(float(np.mean(each.fresh)))
        winners.setdefault(each.source, []).append(f"{each.search} at seed {each.seed}")
    said = [
        f"standard deviations of fresh means: {_spread(by_search)} over seeds, {_spread(by_seed)} over searches",
        *(f"the same winner: {', '.join(each)}" for each in winners.values() if each[1:]),
    ]
    for name, scores in references(task).items():
        above = [each for each in found if np.mean(each.fresh) > np.mean(scores)]
        worse = [each for each in found if _welch(each.fresh, scores).confidence_interval(0.95).high < 0]
        better = [each for each in found if _welch(each.fresh, scores).confidence_interval(0.95).low > 0]
        seeds = ", ".join(f"{sum(each.seed == seed for each in worse)} at seed {seed}" for seed in by_seed)
        said.append(
            f"{name}: {len(above)} of {len(found)} winners have a higher mean; {len(better)} are shown to be better, "
            f"{len(worse)} to be worse ({seeds})"
        )
    lowest = min(found, key=lambda each: np.mean(each.fresh))
    said.append(f"lowest winner: {np.mean(lowest.fresh):.3f} ({lowest.search} at seed {lowest.seed})")
    return "\n".join(said)


def _spread(groups: Mapping[Any, Sequence[float]]) -> str:
    """The smallest and the largest standard deviation within groups of several numbers."""
    found = [float(np.std(each, ddof=1)) for each in groups.values() if len(each) > 1]
    return f"{min(found):.2f} to {max(found):.2f}" if found else "-"


def depths(runs: Sequence[Sequence[Sequence[float]]]) -> str:
    """The scores of FORGE's programs by depth, as a Markdown table.

    Means, highest scores and numbers of programs are those of each run. The difference of the mean from that of depth 0
    is paired over the runs that have programs of this depth, with a 95 % interval (Student's t).

    Args:
        runs: the scores of each depth, for each run.
    """
    rows = ["| depth | programs | mean scores | highest scores | beside depth 0 |", "|---|---|---|---|---|"]
    for depth in range(max(map(len, runs), default=0)):
        deep = [run for run in runs if len(run) > depth]
        counts = ", ".join(str(len(run[depth])) for run in deep)
        means, tops = (", ".join(f"{of(run[depth]):.3f}" for run in deep) for of in (np.mean, max))
        flat, own = ([float(np.mean(run[k])) for run in deep] for k in (0, depth))
        beside = _difference(ttest_rel(own, flat)) if depth and len(deep) > 1 else "-"
        rows.append(f"| {depth} | {counts} | {means} | {tops} | {beside} |")
    return "\n".join(rows)


def _row(
    name: str,
    asked: str,
    programs: Sequence[int],
    searches: Sequence[float],
    fresh_scores: Sequence[Sequence[float]],
    control: Sequence[Sequence[float]],
    score: Sequence[float] | None,
) -> str:
    """A row of a table.

    Args:
        name: name of the search, or of a reward by hand.
        asked: number of requests for programs, for each search seed; "" without any.
        programs: number of trained programs, for each search seed.
        searches: score in the search, for each search seed.
        fresh_scores: scores of fresh trainings, for each search seed.
        control: those of random search or of the whole search; none to leave the difference out.
        score: those of the task's score as a reward; None to leave the difference out.
    """
    means = [float(np.mean(each)) for each in fresh_scores]
    one = means if len(means) > 1 else fresh_scores[0]  # intervals are over search seeds; of one seed, over trainings
    half = float(t.ppf(0.975, len(one) - 1) * np.std(one, ddof=1) / np.sqrt(len(one)))
    raw = "; ".join(", ".join(f"{value:.2f}" for value in sorted(each)) for each in fresh_scores)
    median = float(np.median([value for each in fresh_scores for value in each]))
    shown = f"{np.mean(searches):.3f}" if searches else "-"
    counts = ", ".join(map(str, programs)) or "-"
    others = [float(np.mean(each)) for each in control] if len(means) > 1 else control[0] if control else []
    beside = _difference(ttest_rel(one, others) if len(means) > 1 else _welch(one, others)) if others else "-"
    ahead = _difference(_welch(one, score)) if score and searches else "-"
    mean = f"{np.mean(means):.3f} ± {half:.3f}"
    return f"| {name} | {asked or '-'} | {counts} | {shown} | {mean} | {median:.3f} | {beside} | {ahead} | {raw} |"


def _welch(one: Sequence[float], other: Sequence[float]) -> Any:
    return ttest_ind(one, other, equal_var=False)


def _difference(test: Any) -> str:
    """A mean difference with its 95 % interval. It is paired over seeds, or Welch's of independent trainings."""
    low, high = test.confidence_interval(0.95)
    return f"{(low + high) / 2:+.3f} ± {(high - low) / 2:.3f}"
