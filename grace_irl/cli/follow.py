"""Progress of a run that another process works on, read from the run's folder (`grace-irl show --follow`)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import typer

from grace_irl.cli.console import say
from grace_irl.cli.progress import FitProgress, Stand
from grace_irl.config import Config
from grace_irl.methods.registry import method_of
from grace_irl.runs.budget import Prices, spending
from grace_irl.runs.engine import Live
from grace_irl.runs.expand.expanding import place_of
from grace_irl.runs.expand.expansion import is_expansion, rounds_of
from grace_irl.runs.expand.round import became
from grace_irl.runs.folder import RunPaths, worked_on
from grace_irl.runs.record import candidate
from grace_irl.runs.run import opened
from grace_irl.runs.store import Store
from grace_irl.search.ranks import winner

POLL = 0.5
"""Seconds between two looks at a run's folder."""
QUIET = 2.0
"""Seconds without a change in a run's folder before the lock of the run is checked. A process needs less time to
start or to end."""
BEGAN, ENDED = ("started", "resumed"), ("stopped", "interrupted", "failed")
"""Kinds of events at which a process begins its work on a run, and kinds at which a process ends its work on a run."""


def follow_to_the_end(folder: Path) -> None:
    """Show the progress of a run or an expansion (`fit --expand`) until no process works on it. Then print its end.

    Raises:
        InputError: the folder is not a run.
        Exit: Ctrl-C. The run itself continues.
    """
    try:
        with FollowProgress() as progress:
            said = _expansion_followed(folder, progress) if is_expansion(folder) else _run_followed(folder, progress)
            progress.note(said)
    except KeyboardInterrupt:
        say(f"grace-irl: interrupted; {folder} itself goes on", err=True)
        raise typer.Exit(130) from None


class FollowProgress(FitProgress):
    """The progress display of a run that another process works on.

    Attributes:
        before: text before the progress line, such as the round of an expansion.
        instead: text that replaces the progress line while no search runs; "" during a search.
    """

    before = ""
    instead = ""
    _waits = False

    def wait(self) -> None:
        """Wait until the next look at the folder. The first call also prints a line about Ctrl-C."""
        if not self._waits:
            self.note("following a process that works on it; Ctrl-C ends only the following")
        self._waits = True
        time.sleep(POLL)

    def live(self, width: int) -> str:
        """See `LiveLine`."""
        return self.before + (self.instead or super().live(width - len(self.before)))

    def logged(self) -> str:
        """See `LiveLine`."""
        return self.before + (self.instead or super().logged())


class RunWatch:
    """A run whose folder is read repeatedly.

    Args:
        folder: the folder of the run.
        store: the store of the run, open for reading.
        config: the configuration of the run.
    """

    def __init__(self, folder: Path, store: Store, config: Config) -> None:
        self.folder = folder
        self._store = store
        self._config = config
        self._files: object = None
        self._changed = time.monotonic()
        self._generation = 0
        self._seconds, self._told = -1.0, 0.0  # time of the search at the last result, and when that was

    def look(self, progress: FollowProgress) -> None:
        """Show what has changed since the last look."""
        database = RunPaths(self.folder).database
        files = [_stat(database), _stat(database.with_name(f"{database.name}-wal"))]
        if files == self._files:
            return
        first, self._files, self._changed = self._files is None, files, time.monotonic()
        idle = max(0.0, time.time() - max(each[0] for each in files) / 1e9) if first else 0.0
        seconds = self._store.seconds()
        if seconds != self._seconds:
            self._seconds, self._told = seconds, time.monotonic() - idle
        stand = stand_of(self._store, self._config, time.monotonic() - self._told)
        progress.show(stand, ended=stand.generation > self._generation)
        self._generation = stand.generation

    def event(self) -> tuple[str, str]:
        """Kind and detail of the last event of a kind in `BEGAN` or `ENDED`; ("", "") if there is none."""
        known = [(kind, detail) for _, kind, detail in self._store.events() if kind in BEGAN + ENDED]
        return known[-1] if known else ("", "")

    @property
    def quiet(self) -> bool:
        """Whether nothing has changed for `QUIET` seconds."""
        return time.monotonic() - self._changed > QUIET


def stand_of(store: Store, config: Config, idle: float = 0.0) -> Stand:
    """The state of a run, from its store.

    Args:
        store: the store of the run.
        config: the configuration of the run.
        idle: seconds since the last result. They are added to the search time.
    """
    method = method_of(config)
    requests, told, records = store.requests(), store.told(), store.records()
    valid = [each for each in records.values() if each.evaluation.valid and each.evaluation.complete]
    sought = [each for each in valid if each.program.operator != "reshape"]
    best = winner(map(candidate, sought))
    spent = spending(store, Prices(config.model.price_in, config.model.price_out))
    last = store.spent()[-1:]
    course = method.course(config)
    return Stand(
        generation=max((requests[index][0] for index in requests), default=0),
        generations=course.generations if course else None,
        seconds=store.seconds() + idle,
        programs=len(records),
        headline=method.account.headline(best.evaluation) if best else "",
        brief=method.account.brief(best.evaluation) if best else "",
        live=Live(
            in_flight=len(requests) - len(told),
            answers=spent.answers,
            tokens=spent.tokens_in + spent.tokens_out,
            cost=spent.cost,
            seconds=last[0][2] if last else 0.0,
        ),
    )


def _run_followed(folder: Path, progress: FollowProgress) -> str:
    """Follow a run, and return a line about its end."""
    with opened(folder) as (store, config):
        watch = RunWatch(folder, store, config)
        while True:
            watch.look(progress)
            kind, detail = watch.event()
            if kind == "stopped":
                return f"the run has ended by {detail}"
            if kind in ENDED:
                return f"the run was {kind} ({detail}); go on with: grace-irl fit {RunPaths(folder).resume}"
            if watch.quiet and not worked_on(folder):
                return _killed("run", folder)
            progress.wait()


def _expansion_followed(folder: Path, progress: FollowProgress) -> str:
    """Follow an expansion, and return a line about its end."""
    shown, quiet = 0, time.monotonic()
    with ExitStack() as stack:
        watch: RunWatch | None = None
        while True:
            rounds = rounds_of(folder)
            for each in rounds[shown:]:
                progress.note(f"round {each.number}: {became(each)}, accuracy {each.accuracy:.4f}")
            at = place_of(folder, len(rounds))
            searches = [path for path in (at / "run", at / "shaping") if RunPaths(path).database.is_file()]
            if searches and (watch is None or watch.folder != searches[-1]):
                stack.close()
                store, config = stack.enter_context(opened(searches[-1]))
                watch = RunWatch(searches[-1], store, config)
            searching = watch is not None and bool(searches) and watch.event()[0] not in ENDED
            progress.before, progress.instead = f"round {len(rounds)}: ", "" if searching else "a policy learns"
            if watch is not None and searching:
                watch.look(progress)
            if len(rounds) > shown or any(map(worked_on, (folder, *searches))):
                quiet = time.monotonic()
            shown = len(rounds)
            if time.monotonic() - quiet > QUIET:
                break
            progress.wait()
    if at.is_dir():
        return _killed("expansion", folder, f" before round {len(rounds)} was complete")
    return f"the expansion has ended after round {len(rounds) - 1}"


def _killed(what: str, folder: Path, when: str = "") -> str:
    return (
        f"no process works on the {what} any more, and it did not end{when}: killed, or another machine's; "
        f"go on with: grace-irl fit {RunPaths(folder).resume}"
    )


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
