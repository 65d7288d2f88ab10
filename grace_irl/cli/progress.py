"""Progress displays of fits and comparisons: a live line on a terminal, or log lines without a terminal."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.progress import Progress as Bar
from rich.progress import ProgressColumn, SpinnerColumn, Task
from rich.text import Text

from grace_irl.cli.console import PlainConsole, say
from grace_irl.cli.fitting import fitted, wrapped
from grace_irl.runs.engine import Live, Snapshot
from grace_irl.text import line

if TYPE_CHECKING:  # These modules need the extra "rl", and a fit must run without it.
    from grace_irl.compare.dispatch import ComparisonState
    from grace_irl.compare.folder import Favourite, JobResult, TrainingOutcome


EVERY = 30.0
"""Maximum seconds between two lines of progress, if there is no terminal."""


class LiveLine(ABC):
    """A live line on stderr, if it is a terminal that can show one; else a log line at least every `EVERY` seconds.

    A subclass gives the text of the line (`live`, `logged`).

    Args:
        at_work: function that returns a few words about work on other machines; "" if there is none.
    """

    def __init__(self, at_work: Callable[[], str] = lambda: "") -> None:
        self._at_work = at_work
        self._console = PlainConsole(stderr=True)
        self._live: Bar | None = None
        self._closed = threading.Event()
        self._spoke = time.monotonic()
        self._log: threading.Thread | None = None
        if self._console.is_live:
            self._live = Bar(SpinnerColumn(), _Words(self), console=self._console, transient=True)
            self._live.add_task("", total=None)
        else:
            self._log = threading.Thread(target=self._heartbeat, name="progress", daemon=True)

    @abstractmethod
    def live(self, width: int) -> str:
        """The live line, shortened to fit in `width` columns."""

    @abstractmethod
    def logged(self) -> str:
        """The line to log after `EVERY` seconds without a log line."""

    @property
    def room(self) -> int:
        """Number of columns that the spinner leaves for the live line."""
        return self._console.width - 2

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        if self._log is not None:
            self._log.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the live line, and stop the log lines."""
        self._closed.set()
        if self._live is not None:
            self._live.stop()

    def note(self, text: str) -> None:
        """Print one line above the live line."""
        self._spoke = time.monotonic()
        if self._live is not None:
            self._live.console.print(wrapped(line(text), self._console.width), soft_wrap=True)
        else:
            say(text, err=True)

    def _heartbeat(self) -> None:
        while not self._closed.wait(max(0.0, self._spoke + EVERY - time.monotonic())):
            if time.monotonic() >= self._spoke + EVERY:
                self.note(self.logged())


class _Words(ProgressColumn):
    """The words of a live line, computed anew at each refresh."""

    def __init__(self, line_: LiveLine) -> None:
        super().__init__()
        self._line = line_

    def render(self, task: Task) -> Text:  # noqa: ARG002 - the line knows its own state
        """See `LiveLine.live`."""
        return Text(line(self._line.live(self._line.room)), no_wrap=True, overflow="crop")


@dataclass(frozen=True)
class Stand:
    """The state of a run, for the progress line.

    Attributes:
        generation: number of complete generations, and so the number of the present one, since the first one is 0.
        generations: number of all generations of the longest run; None if not known.
        seconds: time of the search so far, in seconds.
        programs: number of different programs.
        headline: score of the best program in a few words; "" if there is none.
        brief: the most important figure of `headline`.
        live: counts of requests, answers and tokens.
    """

    generation: int
    generations: int | None
    seconds: float
    programs: int
    headline: str
    brief: str
    live: Live

    @classmethod
    def of(cls, snapshot: Snapshot) -> Stand:
        """The state that a snapshot shows."""
        progress = snapshot.progress
        return cls(
            generation=progress.generation,
            generations=snapshot.generations,
            seconds=snapshot.seconds,
            programs=snapshot.programs,
            headline=snapshot.headline,
            brief=snapshot.brief,
            live=snapshot.live,
        )


class FitProgress(LiveLine):
    """The progress display of a fit."""

    def __init__(self, at_work: Callable[[], str] = lambda: "") -> None:
        super().__init__(at_work)
        self._stand: Stand | None = None
        self._at = time.monotonic()  # time of `_stand`
        self._begun = 0.0  # time of the search, in seconds, when the present generation began

    def __call__(self, snapshot: Snapshot) -> None:
        """Show the progress of the run."""
        ended = snapshot.progress.generation_ended and snapshot.told and not snapshot.replayed
        self.show(Stand.of(snapshot), ended=ended)

    def show(self, stand: Stand, *, ended: bool = False) -> None:
        """Show the state of a run. Without a terminal, log one line if a generation has `ended`."""
        if self._stand is None or stand.generation != self._stand.generation:
            self._begun = stand.seconds
        self._stand, self._at = stand, time.monotonic()
        if ended and self._live is None:
            self.note(f"generation {stand.generation - 1}: {said(stand)}, {stand.seconds:.1f} s")

    def live(self, width: int) -> str:
        """See `LiveLine`."""
        stand = self._stand
        if stand is None:
            return f"generation 0, first programs …, {clock(self._since())}{self._elsewhere()}"
        last = (stand.generations or 1) - 1
        elapsed = clock(stand.seconds + self._since())
        left = time_left(stand, self._begun, stand.seconds - self._begun + self._since())
        tokens = spent(stand.live)
        asked = f"{tokens} ({stand.live.in_flight} asked, last call {stand.live.seconds:.1f} s)" if tokens else ""
        return fitted(
            (
                (f"{present(stand)} of {last}" if last else present(stand),),
                (stand.headline, stand.brief) if stand.headline else ("none valid yet",),
                (f"{elapsed}, about {clock(left)} left" if left is not None else elapsed, elapsed),
                (f"{stand.programs} programs", ""),
                (asked, tokens, ""),
                (self._at_work(), ""),
            ),
            width,
            (1, 4, 4, 3, 2, 5),
        )

    def logged(self) -> str:
        """See `LiveLine`."""
        stand = self._stand
        if stand is None:
            return f"no answer yet, {self._since():.1f} s{self._elsewhere()}"
        return f"in {present(stand)}: {said(stand)}, {stand.seconds + self._since():.1f} s{self._elsewhere()}"

    def _elsewhere(self) -> str:
        return f", {found}" if (found := self._at_work()) else ""

    def _since(self) -> float:
        return time.monotonic() - self._at


def present(stand: Stand) -> str:
    """The present generation by its number; after the last generation, the last one."""
    last = stand.generation if stand.generations is None else stand.generations - 1
    return f"generation {min(stand.generation, last)}"


def said(stand: Stand) -> str:
    """One line with the number of programs, the spending and the best score so far."""
    text, live = f"{stand.programs} programs", stand.live
    if live.tokens:
        text += f", {spent(live)} ({live.in_flight} asked, last call {live.seconds:.1f} s)"
    return f"{text}, {stand.headline or 'none valid yet'}"


def spent(live: Live) -> str:
    """Text with the number of tokens so far and their cost; "" without tokens."""
    cost = f" for {live.cost:.4g}" if live.cost else ""
    return f"{live.tokens} tokens{cost}" if live.tokens else ""


def time_left(stand: Stand, begun: float, since: float) -> float | None:
    """The seconds until the last generation ends, if all generations take equally long; None if unknown.

    Args:
        stand: the state of the run.
        begun: time of the search, in seconds, when the present generation began.
        since: seconds since then.
    """
    if not stand.generations or not 0 < stand.generation < stand.generations:
        return None
    each = begun / stand.generation
    return max(0.0, each * (stand.generations - stand.generation) - since)


def clock(seconds: float) -> str:
    """A duration as M:SS, or as H:MM:SS from one hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class ComparisonProgress(LiveLine):
    """The progress display of a comparison. Each call shows a new state of the comparison's runs."""

    def __init__(self, at_work: Callable[[], str] = lambda: "") -> None:
        super().__init__(at_work)
        self._state: ComparisonState | None = None
        self._began = time.monotonic()

    def __call__(self, progress: ComparisonState) -> None:
        """Show the progress of the comparison."""
        self._state = progress
        if progress.ended is not None:
            self.note(f"run {progress.done} of {progress.total}: {ended(progress.ended)}")

    def live(self, width: int) -> str:
        """See `LiveLine`."""
        elapsed, state = clock(time.monotonic() - self._began), self._state
        if state is None:
            return f"checking …, {elapsed}"
        running = ", ".join(f"{method} {seed} at {steps:,}" for method, seed, steps in state.running)
        return fitted(
            (
                (f"{state.done} of {state.total} runs done",),
                (f"{state.failed} failed" if state.failed else "",),
                (elapsed,),
                (running, f"{len(state.running)} at work", ""),
                (self._at_work(), ""),
            ),
            width,
            (3, 3, 4),
        )

    def logged(self) -> str:
        """See `LiveLine`."""
        return self.live(1000)


def _score(played: TrainingOutcome | Favourite) -> str:
    if played.score is not None:
        return f"score {played.score:.4g}"
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
