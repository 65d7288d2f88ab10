"""Presentation of a method's evaluations to users, as tables, sentences and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grace_irl.evaluate.evaluation import Evaluation, shown


@dataclass(frozen=True)
class Column:
    """The presentation of one metric as a table column and as a JSON value.

    Attributes:
        metric: name of the metric in `Evaluation.metrics`.
        title: heading of the column.
        key: name in JSON, or "" to use the name of the metric.
        digits: number of decimal places.
    """

    metric: str
    title: str
    key: str = ""
    digits: int = 4

    @property
    def name(self) -> str:
        """The name in JSON."""
        return self.key or self.metric

    def cell(self, metrics: Mapping[str, float]) -> str:
        """The metric as the text of a table cell; "-" if the metric is missing."""
        value = metrics.get(self.metric)
        return "-" if value is None else f"{value:.{self.digits}f}"


@dataclass(frozen=True)
class Figures:
    """A table of texts, for the terminal and the HTML report.

    Attributes:
        head: column headings. The first column names the rows.
        rows: rows of the table, each with one cell per heading.
        title: title above the table, or "".
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


@dataclass(frozen=True)
class Curves:
    """A chart of lines, for the HTML report.

    Attributes:
        title: title of the chart.
        across, up: labels of the horizontal and the vertical axis.
        lines: name and points (x, y) of each line.
    """

    title: str
    across: str
    up: str
    lines: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]


@dataclass(frozen=True)
class Calibrated:
    """Calibration and threshold of a reward. An exported file has them as constants below the program.

    Attributes:
        scale, offset: calibration of the discriminator `D = sigmoid(scale * reward + offset - log pi)`, where pi is the
            probability of the action. They are 1 and 0 without calibration.
        threshold: reward above which a state is classified as positive; None if unknown.
    """

    scale: float = 1.0
    offset: float = 0.0
    threshold: float | None = None


def capitalised(text: str) -> str:
    """The text with a capital as its first letter. Unlike `str.capitalize`, it keeps all other letters."""
    return f"{text[:1].upper()}{text[1:]}"


class Account:
    """Texts and tables about evaluations. A search method defines a subclass to present its own metrics.

    Attributes:
        score: name of the score.
        columns: metrics in tables of programs.
        progress: metrics of the best program in tables of generations.
        curves: metrics between 0 and 1 in the report's chart. Each line of the chart shows a metric of the best program
            so far, over the number of programs tried. A line's label is the metric's `Column.title`.
        drawn: label of the chart's vertical axis.
        note: remark on the score for the report, or "".
        made: origin of a reward, for the first line of an exported file.
    """

    score = "score"
    columns: tuple[Column, ...] = ()
    progress: tuple[Column, ...] = ()
    curves: tuple[Column, ...] = ()
    drawn = ""
    note = ""
    made = "recovered from demonstrations"

    def headline(self, evaluation: Evaluation) -> str:
        """A short summary of the best program so far."""
        named = [f"{title} {cell}" for title, cell in self._cells(evaluation) if cell != "-"]
        return ", ".join([f"best {self.score} {shown(evaluation.score)}", *named])

    def brief(self, evaluation: Evaluation) -> str:
        """The most important number of `headline`, for a short line."""
        return f"best {self.score} {shown(evaluation.score)}"

    def verdict(self, evaluation: Evaluation) -> str:
        """A sentence on the quality of a reward."""
        return f"{capitalised(self.headline(evaluation))}."

    def figures(self, evaluation: Evaluation) -> list[Figures]:
        """Tables about one program."""
        head = ("", self.score, *(each.title for each in self.columns))
        return [Figures(head, (("reward", shown(evaluation.score), *(cell for _, cell in self._cells(evaluation))),))]

    def remarks(self, evaluation: Evaluation) -> list[str]:  # noqa: ARG002 - overriding methods use it
        """Lines below the tables of `figures`."""
        return []

    def details(self, evaluation: Evaluation) -> list[str]:
        """Lines below the tables of `figures` when a command shows a single program."""
        return self.remarks(evaluation)

    def cautions(self, evaluation: Evaluation) -> list[str]:  # noqa: ARG002 - overriding methods use it
        """Warnings about an evaluation, for the lines below a table of several programs."""
        return []

    def values(self, evaluation: Evaluation) -> dict[str, object]:
        """The values of an evaluation in the output of `--json`, by name."""
        return {
            self.score: evaluation.score,
            **{each.name: evaluation.metrics.get(each.metric) for each in self.columns},
        }

    def facts(self, evaluation: Evaluation, settings: Mapping[str, object]) -> list[tuple[str, str]]:  # noqa: ARG002 - overriding methods use them
        """Pairs of name and text for the docstring of an exported file.

        Args:
            evaluation: evaluation of the exported program.
            settings: all settings of the run by full name, for example `fitness.log_pi`.
        """
        named = [(title, cell) for title, cell in self._cells(evaluation) if cell != "-"]
        return [(self.score, shown(evaluation.score)), *named]

    def carried(self, evaluation: Evaluation) -> list[tuple[str, str]]:  # noqa: ARG002 - overriding methods use it
        """The calibration and the threshold as pairs of name and text, for the end of an exported file's docstring."""
        return []

    def calibrated(self, evaluation: Evaluation) -> Calibrated | None:  # noqa: ARG002 - overriding methods use it
        """Calibration and threshold for an exported file; None if the method fits no discriminator."""
        return None

    def _cells(self, evaluation: Evaluation) -> list[tuple[str, str]]:
        return [(each.title, each.cell(evaluation.metrics)) for each in self.columns]
