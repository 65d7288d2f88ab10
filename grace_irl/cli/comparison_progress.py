"""The progress of a comparison: a live line on a terminal, a line for each run that ends in a log."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from grace_irl.cli.console import PlainConsole, say
from grace_irl.compare.outcome import Favourite, Outcome, Result
from grace_irl.compare.pool import Progress
from grace_irl.text import line


class ComparisonProgress:
    """Shows progress on stderr, so that stdout holds only the answer. Implements `Listener`."""

    def __init__(self) -> None:
        self._console = PlainConsole(stderr=True)
        self._live: Bar | None = None
        if self._console.is_terminal:
            columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
            self._live = Bar(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._task = self._live.add_task("checking …", total=None)

    def __enter__(self) -> ComparisonProgress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Takes the line away."""
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Shows where the comparison stands."""
        if progress.ended is not None:
            self._say(f"run {progress.done} of {progress.total}: {ended(progress.ended)}")
        if self._live is not None:
            running = ", ".join(f"{method} {seed} at {steps:,}" for method, seed, steps in progress.running)
            failed = f"{progress.failed} failed; " if progress.failed else ""
            self._live.update(
                self._task, total=progress.total, completed=progress.done, description=f"{failed}{running}"
            )

    def note(self, text: str) -> None:
        """Says one line above the live one."""
        self._say(text)

    def _say(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(line(text), soft_wrap=True)
        else:
            say(text, err=True)


def _score(played: Outcome | Favourite) -> str:
    return f"return {played.mean:.4g}" if played.success is None else f"success {played.success:.3f}"


def ended(result: Result) -> str:
    """One line about a run that has ended."""
    if result.failure:
        return f"{result.method} seed {result.seed} failed: {result.failure}"
    said = [
        f"{each.environment} {_score(each)}"
        + (f" (favourite {_score(each.favourite)})" if each.favourite and each.favourite.trained != each.steps else "")
        + (f" in {each.seconds:.0f} s" if each.seconds else "")
        for each in result.outcomes
    ]
    return f"{result.method} seed {result.seed}: {', '.join(said)}"
