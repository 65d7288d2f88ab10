"""Early evaluations of trainings beside their best scores, from the finished trainings of searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from grace_irl.tasks.training import TRAININGS, result_of

Curve = Sequence[float]
"""The scores of a training's evaluations."""


def early(place: Path) -> str:
    """A table in Markdown with a row for each evaluation of a training.

    Spearman's correlation is that of the score there with the best score of the training, over the different programs
    of all searches with one seed, whose trainings have one seed, too. A winner is the program with the highest score of
    a search. It is in the upper half if its score there is at least the median of its search.

    Args:
        place: folder of the searches of a task. Each has a folder NAME-SEED with its run.
    """
    searches = {run.parent.name: curves for run in sorted(place.glob("*/run")) if (curves := _curves(run))}
    by_seed: dict[str, dict[str, Curve]] = {}
    for name, curves in searches.items():
        by_seed.setdefault(name.rpartition("-")[2], {}).update(curves)
    count = sum(map(len, by_seed.values()))
    rows = [
        f"{count} programs of {len(searches)} searches with seeds {', '.join(by_seed)}\n",
        "| evaluation | correlation with the best score, by seed | winners in the upper half |",
        "|---|---|---|",
    ]
    for number in range(min(len(curve) for curves in by_seed.values() for curve in curves.values())):
        ranks = ", ".join(f"{_correlation(curves, number):.2f}" for curves in by_seed.values())
        upper = sum(_is_upper(curves, number) for curves in searches.values())
        rows.append(f"| {number + 1} | {ranks} | {upper} of {len(searches)} |")
    return "\n".join(rows)


def _curves(run: Path) -> dict[str, Curve]:
    """The scores along the first full training of each program of a run, by program."""
    found = {path.parent.name: result_of(path) for path in (run / TRAININGS).glob("*/full-0")}
    return {name: [point.score for point in curve if point.score is not None] for name, curve in found.items() if curve}


def _correlation(curves: Mapping[str, Curve], number: int) -> float:
    return float(
        spearmanr([each[number] for each in curves.values()], [max(each) for each in curves.values()]).statistic
    )


def _is_upper(curves: Mapping[str, Curve], number: int) -> bool:
    return bool(max(curves.values(), key=max)[number] >= np.median([each[number] for each in curves.values()]))
