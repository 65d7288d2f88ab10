"""The charts of the report, and data for charts and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup

from grace_irl.methods.account import Account, Curves, capitalised
from grace_irl.report.charts import LIMIT, NARROW, ChartLine, Dot, chart, histogram, reach, tallest, thinned
from grace_irl.report.data import TrainingCurve
from grace_irl.report.evidence import SIDES, EvidencePanel, Story, split
from grace_irl.runs.budget import kinds
from grace_irl.runs.record import Record, candidate
from grace_irl.runs.store import Store
from grace_irl.search.ranks import Scored, winner

REASONS = 5  # maximum number of reasons per verdict; the most frequent reasons are shown
ANCESTORS = 30  # maximum number of programs in the list of ancestors

VERDICTS = {
    "kept": "is in the population",
    "dropped": "left it, or never reached it",
    "duplicate": "was tried before",
    "invalid": "failed, or gave no finite number",
    "repaired": "failed and was sent back, or was improved by a further call",
}
"""The meaning of each verdict on a program."""

_NUMBER = re.compile(r"\b[0-9a-f]{16}\b|-?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")
"""An id of a program, or a number."""


@dataclass(frozen=True)
class ScoreStep:
    """The best program after `tried` programs of a search.

    Attributes:
        tried: number of programs so far.
        score: score of the best program so far.
        metrics: metrics of the best program so far.
    """

    tried: int
    score: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Verdict:
    """Programs with the same verdict.

    Attributes:
        name: a key of `VERDICTS`.
        count: number of programs whose last verdict this is. Each duplicate counts as one more program.
        reasons: pairs of reason and number of programs, for the most frequent reasons. "…" replaces each number and
            each id of a program in a reason.
    """

    name: str
    count: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def meaning(self) -> str:
        """The meaning of the verdict."""
        return VERDICTS.get(self.name, "")


def steps(store: Store) -> list[ScoreStep]:
    """One `ScoreStep` for each change of the best program, and one for the end of the search.

    Programs from reshaping are omitted, because reshaping aims at rewards that rise steadily towards the goal, and not
    at better scores.
    """
    requests, records = store.requests(), store.records()
    best: Scored | None = None
    found: list[ScoreStep] = []
    seen: set[str] = set()
    tried = 0
    for index, told in sorted(store.told().items()):
        name = told.program_id
        if name is None or name in seen or requests[index][1] == "reshape":
            continue
        seen.add(name)
        tried += 1
        record = records[name]
        if record.evaluation.valid and record.evaluation.complete:
            scored = candidate(record)
            better = winner([scored] if best is None else [best, scored])
            if better is not best:
                best = better
                found.append(ScoreStep(tried, record.evaluation.score, record.evaluation.metrics))
    if found and found[-1].tried < tried:
        last = found[-1]
        found.append(replace(last, tried=tried))
    return found


def verdicts(store: Store) -> list[Verdict]:
    """The last verdict on each program, counted, the most frequent first."""
    # A duplicate has the id of the program that it repeats, but counts as one more program.
    last = {
        (row.fate.program_id, row.index if row.fate.verdict == "duplicate" else None): row.fate for row in store.fates()
    }
    by_name: dict[str, Counter[str]] = {}
    for fate in last.values():
        by_name.setdefault(fate.verdict, Counter())[_kind(fate.reason)] += 1
    found = [Verdict(name, sum(all_.values()), tuple(_frequent(all_))) for name, all_ in by_name.items()]
    return sorted(found, key=lambda verdict: (-verdict.count, verdict.name))


def failures(store: Store) -> dict[str, int]:
    """Number of answers without a program, by kind of failure."""
    return kinds(entry.failure for entry in store.told().values() if entry.failure)


def _kind(reason: str) -> str:
    """A reason with "…" in place of each number and each id, so that similar reasons become equal."""
    words = _NUMBER.sub("…", " ".join(reason.split()))
    return words if len(words) <= 160 else f"{words[:159]}…"


def _frequent(reasons: Counter[str]) -> list[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:REASONS]


def ancestors(record: Record, records: Mapping[str, Record]) -> list[Record]:
    """The program, followed by its first parent, the first parent of that parent, and so on."""
    found: list[Record] = []
    current: Record | None = record
    while current is not None and len(found) < ANCESTORS:
        found.append(current)
        parents = current.program.parents
        current = records.get(parents[0]) if parents else None
    return found


PALETTE = 7  # number of line colours, with the CSS classes c0 … c6


@dataclass(frozen=True)
class Plot:
    """A chart with its title and the text below it.

    Attributes:
        title: title of the chart.
        drawing: the chart.
        lines: CSS class and name of each line, for the legend.
        note: further remark, or "".
    """

    title: str
    drawing: Markup
    lines: tuple[tuple[str, str], ...] = ()
    note: str = ""


def distributions(evidence: EvidencePanel) -> list[Plot]:
    """Histograms of the rewards of positive and negative states, for each split, on the same scale."""
    sides = {
        name: tuple(split(evidence.trajectories, name, positive=positive) for positive in (True, False))
        for name in SIDES
    }
    everything = np.concatenate([values for pair in sides.values() for values in pair])
    if not len(everything):
        return []
    least, most, _ = reach(everything)
    share = tallest([values for pair in sides.values() for values in pair], least, most)
    found = []
    for name, (above, below) in sides.items():
        if len(above) + len(below):
            label = f"Distribution of rewards, {SIDES[name]}: {len(above)} positive and {len(below)} negative states"
            drawing = histogram(
                above, below, least=least, most=most, level=evidence.threshold, label=label, share=share
            )
            outside = int(sum(np.sum((values < least) | (values > most)) for values in (above, below)))
            note = f"{outside} values beyond this range are in the outermost bars." if outside else ""
            found.append(Plot(SIDES[name], drawing, note=note))
    return found


def rewards(story: Story, threshold: float | None) -> Markup:
    """A chart of the reward along a trajectory, with numbers at the states that the report shows."""
    kind = story.of.row.role
    places = thinned(story.of.values, story.of.known)
    dots = [Dot(shot.step + 1, shot.value, kind, str(number)) for number, shot in enumerate(story.shots, 1)]
    label = f"Reward along a trajectory of {story.of.row.states} states"
    return chart(
        [ChartLine("reward", places, kind)],
        across="state",
        up="reward",
        label=label,
        height=200,
        level=threshold,
        dots=dots,
    )


def searches(steps: Sequence[ScoreStep], account: Account) -> list[Plot]:
    """Charts of the score and the metrics of the best program during the search."""
    if not steps:
        return []
    scores = [(float(step.tried), step.score) for step in steps]
    plots = [
        Plot(
            f"{capitalised(account.score)} of the best program",
            chart(
                [ChartLine(account.score, scores, "c0", stairs=True)],
                across="programs tried",
                up=account.score,
                label=f"{capitalised(account.score)} of the best program so far over programs tried",
                width=NARROW,
            ),
            note=account.note,
        )
    ]
    lines = []
    for place, column in enumerate(account.curves):
        known = [(float(step.tried), value) for step in steps if (value := step.metrics.get(column.metric)) is not None]
        if known:
            lines.append(ChartLine(column.title, known, f"c{place % PALETTE}", stairs=True))
    if lines:
        drawing = chart(
            lines,
            across="programs tried",
            up=account.drawn,
            label=f"{capitalised(account.drawn)} of the best program so far over programs tried",
            width=NARROW,
            low=0.9,  # the axis always includes 0.9 and 1
            high=1.0,
        )
        named = tuple((each.kind, each.name) for each in lines)
        plots.append(Plot(f"{capitalised(account.drawn)} of the best program", drawing, named))
    return plots


def curves(given: Curves) -> Plot:
    """The chart of a method's panel. Points without a place, such as NaN in somebody else's run, are left out."""
    lines = []
    for number, (name, places) in enumerate(given.lines):
        known = [(x, y) for x, y in places if abs(x) < LIMIT and not np.isnan(y)]
        lines.append(ChartLine(name, known, f"c{number % PALETTE}"))
    drawing = chart(lines, across=given.across, up=given.up, label=given.title, start=0.0, low=0.0)
    return Plot(given.title, drawing, tuple((each.kind, each.name) for each in lines))


def learning(trainings: Sequence[TrainingCurve]) -> list[Plot]:
    """Charts of the policies' success rates, true returns, and returns under the recovered reward."""
    goals = any(look.success is not None for each in trainings for look in each.looks)
    plots = [
        _learning(trainings, "success", "Success rate of the policy", "success rate", 0.0, 1.0) if goals else None,
        _learning(trainings, "mean", "True return of the policy", "true return"),
        _learning(
            trainings,
            "paid",
            "Paid in training by the recovered reward",
            "recovered return",
            note="Rewards of different rounds are different programs: their units need not agree.",
        ),
    ]
    return [plot for plot in plots if plot is not None]


def _learning(
    trainings: Sequence[TrainingCurve],
    measure: str,
    title: str,
    up: str,
    low: float | None = None,
    high: float | None = None,
    note: str = "",
) -> Plot | None:
    """A chart of one measure (an attribute of `CurvePoint`), with one line per training.

    A training without values of the measure has no line. The result is None if there are no lines.
    """
    lines = []
    for number, each in enumerate(trainings):
        known = [(look.steps, value) for look in each.looks if (value := getattr(look, measure)) is not None]
        if known:
            lines.append(ChartLine(each.name, known, f"c{number % PALETTE}"))
    if not lines:
        return None
    drawing = chart(
        lines, across="environment steps of the training", up=up, label=title, start=0.0, low=low, high=high
    )
    return Plot(title, drawing, tuple((each.kind, each.name) for each in lines), note)
