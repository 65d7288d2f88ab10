"""The account that a method gives of its evaluations, to people and to programs that read its output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grace_irl.evaluate.evaluation import Evaluation, shown


@dataclass(frozen=True)
class Column:
    """A metric in tables.

    Attributes:
        metric: its name in `Evaluation.metrics`.
        title: the heading of its column.
        key: its name in JSON; "" for the metric's own.
        digits: behind the point.
    """

    metric: str
    title: str
    key: str = ""
    digits: int = 4

    @property
    def name(self) -> str:
        """Its name in JSON."""
        return self.key or self.metric

    def cell(self, metrics: Mapping[str, float]) -> str:
        """The metric as a table shows it."""
        value = metrics.get(self.metric)
        return "-" if value is None else f"{value:.{self.digits}f}"


@dataclass(frozen=True)
class Figures:
    """A table of words and numbers: a terminal and the report draw it, each in its own way.

    Attributes:
        head: headings; the first column names the rows.
        rows: cells, as many as headings.
        title: above the table, or "".
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


@dataclass(frozen=True)
class Calibrated:
    """Numbers that an exported file carries beside its program.

    Attributes:
        scale, offset: of the calibration; 1 and 0 without one.
        threshold: above which a reward counts as an expert's; None: not known.
    """

    scale: float = 1.0
    offset: float = 0.0
    threshold: float | None = None


class Account:
    """The words and tables for evaluations that have a score and metrics. A method with evidence overrides more.

    Attributes:
        score: what the score is called.
        columns: metrics that tables of programs show.
        progress: metrics of the best program that tables of generations show.
        curves: metrics between 0 and 1 that the report draws over the search, in one picture, with the name of each
            line; `drawn` is what the picture shows.
        note: what to know of the score, for the report; or "".
    """

    score = "score"
    columns: tuple[Column, ...] = ()
    progress: tuple[Column, ...] = ()
    curves: tuple[Column, ...] = ()
    drawn = ""
    note = ""

    def headline(self, evaluation: Evaluation) -> str:
        """The best program so far, in a few words."""
        named = [f"{title} {cell}" for title, cell in self._cells(evaluation) if cell != "-"]
        return ", ".join([f"best {self.score} {shown(evaluation.score)}", *named])

    def verdict(self, evaluation: Evaluation) -> str:
        """The quality of a reward, in a sentence."""
        return f"{self.headline(evaluation).capitalize()}."

    def figures(self, evaluation: Evaluation) -> list[Figures]:
        """Tables about one program."""
        head = ("", self.score, *(each.title for each in self.columns))
        return [Figures(head, (("reward", shown(evaluation.score), *(cell for _, cell in self._cells(evaluation))),))]

    def remarks(self, evaluation: Evaluation) -> list[str]:  # noqa: ARG002 - others read it
        """Lines below those tables."""
        return []

    def details(self, evaluation: Evaluation) -> list[str]:
        """Lines below those tables for one program that somebody asks for."""
        return self.remarks(evaluation)

    def cautions(self, evaluation: Evaluation) -> list[str]:  # noqa: ARG002 - others read it
        """Lines below tables of programs that name what a reader should not overlook."""
        return []

    def values(self, evaluation: Evaluation) -> dict[str, object]:
        """A program in `--json`."""
        return {
            self.score: evaluation.score,
            **{each.name: evaluation.metrics.get(each.metric) for each in self.columns},
        }

    def facts(self, evaluation: Evaluation, settings: Mapping[str, object]) -> list[tuple[str, str]]:  # noqa: ARG002 - others read them
        """Lines of an exported file's head: a name and a text each.

        Args:
            settings: every setting of the run by its name, `section.key`.
        """
        named = [(title, cell) for title, cell in self._cells(evaluation) if cell != "-"]
        return [(self.score, shown(evaluation.score)), *named]

    def carried(self, evaluation: Evaluation) -> list[tuple[str, str]]:  # noqa: ARG002 - others read it
        """Further lines of that head: about the numbers of `calibrated`."""
        return []

    def calibrated(self, evaluation: Evaluation) -> Calibrated | None:  # noqa: ARG002 - others read it
        """The numbers that an exported file carries, if the method fits a discriminator."""
        return None

    def _cells(self, evaluation: Evaluation) -> list[tuple[str, str]]:
        return [(each.title, each.cell(evaluation.metrics)) for each in self.columns]
