"""Progress displays of fits and comparisons: a live line on a terminal, or log lines without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table

from grace_irl.cli.console import PlainConsole, console, plain_table, print_json, say
from grace_irl.methods.separated import accuracy_line
from grace_irl.runs.engine import Snapshot
from grace_irl.runs.expand.expansion import rounds_of
from grace_irl.runs.expand.round import Round, became
from grace_irl.runs.folder import RunPaths
from grace_irl.runs.run import opened
from grace_irl.text import line

if TYPE_CHECKING:  # These modules need the extra "rl", and a fit must run without it.
    from grace_irl.compare.comparison import ComparisonState
    from grace_irl.compare.folder import Favourite, JobResult, TrainingOutcome


class LiveLine:
    """A live line on stderr, if stderr is a terminal. Only the result goes to stdout.

    Args:
        columns: columns of the line, before the elapsed time.
        fields: initial values of the fields that the columns' texts contain.
    """

    def __init__(self, *columns: ProgressColumn, **fields: Any) -> None:
        self._console = PlainConsole(stderr=True)
        self._live: Bar | None = None
        if self._console.is_terminal:
            self._live = Bar(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._task = self._live.add_task("", total=None, **fields)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the live line."""
        if self._live is not None:
            self._live.stop()

    def note(self, text: str) -> None:
        """Print one line above the live line."""
        if self._live is not None:
            self._live.console.print(line(text), soft_wrap=True)
        else:
            say(text, err=True)


class FitProgress(LiveLine):
    """The progress display of a fit."""

    def __init__(self) -> None:
        number = TextColumn("generation {task.fields[generation]}", markup=False)
        words = TextColumn("{task.fields[said]}", markup=False)
        super().__init__(SpinnerColumn(), number, BarColumn(bar_width=20), words, generation=0, said="first programs …")

    def __call__(self, snapshot: Snapshot) -> None:
        """Show the progress of the run."""
        progress = snapshot.progress
        if self._live is not None:
            done = progress.generation
            self._live.update(
                self._task, total=snapshot.generations, completed=done, generation=done, said=said(snapshot)
            )
        elif progress.generation_ended and snapshot.told and not snapshot.replayed:
            say(f"generation {progress.generation}: {said(snapshot)}, {progress.seconds:.1f} s", err=True)


def said(snapshot: Snapshot) -> str:
    """One line with the number of programs, the spending and the best score so far."""
    text, live = f"{snapshot.programs} programs", snapshot.live
    if live.tokens:
        text += f", {live.tokens} tokens"
        text += f" for {live.cost:.4g}" if live.cost else ""
        text += f" ({live.in_flight} asked, last call {live.seconds:.1f} s)"
    return f"{text}, {snapshot.headline or 'none valid yet'}"


COLUMNS = (
    *("round", "steps", "rollouts", "like experts", "accuracy on the rest", "reward"),
    *("program", "accuracy", "held out", "true return", "success"),
)


def show_rounds(folder: Path, *, as_json: bool) -> None:
    """Print the output of `show` for an expansion: one line per round of search and training."""
    rounds = rounds_of(folder)
    if as_json:
        print_json({"expansion": str(folder), "rounds": rounds})
        return
    out = console()
    out.print(rounds_table(rounds))
    if rounds:
        with opened(folder / rounds[0].run) as (store, _):
            if store.format < 2:
                say(accuracy_line(None))
        say(f"reward: {RunPaths(folder).reward}")
    say(f"each search: grace-irl show {folder / 'rounds' / '0' / 'run'}, and so on")


def rounds_table(rounds: Sequence[Round]) -> Table:
    """A table with one row per round. Returns and success rates come from the environment, and no search uses them."""
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


class ComparisonProgress(LiveLine):
    """The progress display of a comparison. The comparison calls it with each new state of its runs."""

    def __init__(self) -> None:
        words = TextColumn("{task.fields[said]}", markup=False)
        super().__init__(BarColumn(bar_width=20), MofNCompleteColumn(), words, said="checking …")

    def __call__(self, progress: ComparisonState) -> None:
        """Show the progress of the comparison."""
        if progress.ended is not None:
            self.note(f"run {progress.done} of {progress.total}: {ended(progress.ended)}")
        if self._live is not None:
            running = ", ".join(f"{method} {seed} at {steps:,}" for method, seed, steps in progress.running)
            failed = f"{progress.failed} failed; " if progress.failed else ""
            self._live.update(self._task, total=progress.total, completed=progress.done, said=f"{failed}{running}")


def _score(played: TrainingOutcome | Favourite) -> str:
    return f"return {played.mean:.4g}" if played.success is None else f"success {played.success:.3f}"


def ended(result: JobResult) -> str:
    """One line about a completed run of a comparison."""
    if result.failure:
        return f"{result.method} seed {result.seed} failed: {result.failure}"
    said = [
        f"{each.environment} {_score(each)}"
        + (f" (favourite {_score(each.favourite)})" if each.favourite and each.favourite.trained != each.steps else "")
        + (f" in {each.seconds:.0f} s" if each.seconds else "")
        for each in result.outcomes
    ]
    return f"{result.method} seed {result.seed}: {', '.join(said)}"
