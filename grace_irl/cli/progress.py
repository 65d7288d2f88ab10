"""The progress of a fit: a live line on a terminal, one line per generation in a log."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from grace_irl.cli.console import PlainConsole, say
from grace_irl.evaluate.evaluation import shown
from grace_irl.runs.engine import Snapshot
from grace_irl.text import line


class FitProgress:
    """Shows snapshots on stderr, so that stdout holds only the answer."""

    def __init__(self, generations: int) -> None:
        self._console = PlainConsole(stderr=True)
        self._live: Progress | None = None
        self._replaying = False
        if self._console.is_terminal:
            self._live = Progress(
                SpinnerColumn(),
                TextColumn("generation {task.fields[generation]}", markup=False),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[said]}", markup=False),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._live.add_task("", total=generations + 1, generation=0, said="first programs …")

    def __enter__(self) -> FitProgress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, snapshot: Snapshot) -> None:
        """Shows where the run stands."""
        progress = snapshot.progress
        if self._live is not None:
            self._live.update(
                self._task,
                completed=progress.generation,
                generation=progress.generation,
                said=said(snapshot),
            )
        elif progress.generation_ended and snapshot.told and not snapshot.replayed:
            say(f"generation {progress.generation}: {said(snapshot)}, {progress.seconds:.1f} s", err=True)

    def note(self, text: str) -> None:
        """Says something that the user should know."""
        if self._live is not None:
            self._live.console.print(line(text))
        else:
            say(text, err=True)


def said(snapshot: Snapshot) -> str:
    """Programs tried and the best so far, in one line."""
    text, live = f"{snapshot.programs} programs", snapshot.live
    if live.tokens:
        text += f", {live.tokens} tokens"
        text += f" for {live.cost:.4g}" if live.cost else ""
        text += f" ({live.in_flight} asked, last call {live.seconds:.1f} s)"
    best = snapshot.best
    if best is None or best.evaluation.train is None:
        return f"{text}, none valid yet"
    train, held_out = best.evaluation.train, best.evaluation.held_out
    text += f", best fitness {shown(train.fitness)}, accuracy {train.accuracy:.4f}"
    return text if held_out is None else f"{text} (held out {held_out.accuracy:.4f}, fitness {shown(held_out.fitness)})"
