"""Compares methods: begins a comparison in a folder, goes on with one, and writes its tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.compare.contest import Contest, require_cleanable
from grace_irl.compare.folder import ComparisonFolder, JobFolder, JobResult, read_curve, read_result, write_result
from grace_irl.compare.grace import Grace
from grace_irl.compare.settings import (
    Settings,
    authorised_settings,
    comparison_of,
    digest_of,
    located,
    read_settings,
)
from grace_irl.compare.standings import Oracle, Standing, standings
from grace_irl.compare.table import Line, csv_text, markdown, plot
from grace_irl.config import METHOD
from grace_irl.contents import require_no_links
from grace_irl.demos import memory
from grace_irl.demos.label_rule import RuleChoice
from grace_irl.errors import GraceError, InputError
from grace_irl.rewards.file import read_reward
from grace_irl.rl.environments import names_code
from grace_irl.rl.method import PolicyMethod, PolicyProblem
from grace_irl.runs.acting import DROPPED, spoken
from grace_irl.runs.config import flat
from grace_irl.runs.folder import RunLock, require_absent
from grace_irl.runs.proposers import destination, settled
from grace_irl.work import Executor, Job, JobError, JobFuture, LocalExecutor

SAME = "expected no change: a comparison goes on with the settings that it began with"
MAY_CHANGE = (
    *("data.demos", "data.negatives", "proposer.start_from", "proposer.recording", "model.url", "model.context"),
    *(key for key in DROPPED if key != "data.goals"),
)
"""Settings that may change on resume: paths (demonstrations are compared), and those that change no result."""


@dataclass(frozen=True)
class Compared:
    """A comparison that has ended.

    Attributes:
        folder: its place.
        results: of all jobs, failed ones among them.
        standings: of the methods, by environment.
        notes: what a reader of the tables should know.
        label: the rule for which expert states are positive, and why it was chosen.
    """

    folder: Path
    results: tuple[JobResult, ...]
    standings: tuple[Standing, ...]
    notes: tuple[str, ...]
    label: RuleChoice


def start(
    settings: Settings,
    out: Path,
    workers: int | None = None,
    listener: Listener | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Compared:
    """Begins a comparison and works on it to its end.

    Args:
        settings: of everything.
        out: a new folder.
        workers: jobs at once; None: one per core.
        listener: gets the state of the comparison when it changes.
        note: gets one line that names the server of prompts and key.

    Raises:
        InputError: settings, data, methods or environments that cannot be used; nothing is written then.
        KeyboardInterrupt: it can be resumed.
    """
    require_absent(out)
    contest = Contest.of(settings, new=True)
    began = {"data": digest_of(contest.demonstrations), "label_reason": contest.choice.reason}
    comparison = settings.comparison.model_copy(update=began)
    settings = located(Settings(comparison, contest.settings.fit))
    contest = replace(contest, settings=settings)
    warned = _checked(contest)
    checked = None
    if contest.needs_goals or settings.fit.data.goals:
        checked = require_cleanable(contest.labels, contest.demonstrations)
    if comparison.reward:
        contest = replace(contest, settings=(settings := _with_own_reward(settings, out)))
    settings.write(out)
    note(contest.choice.line)
    if contest.demonstrations.choice is not None:
        note(contest.demonstrations.choice.line)
    _say_server(contest, note)
    return _work(out, contest.cleaned(out, note, checked), warned, workers, listener)


def resume(
    folder: Path,
    *,
    methods: tuple[str, ...] | None = None,
    seeds: int | None = None,
    transfer: tuple[str, ...] = (),
    env: str | None = None,
    sets: tuple[str, ...] = (),
    flags: Mapping[str, object] | None = None,
    workers: int | None = None,
    listener: Listener | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Compared:
    """Goes on with a comparison; jobs that failed are done again.

    One that this user did not make on this machine keeps no path, address, code or trust: they are named again.

    Args:
        folder: of the comparison.
        methods, seeds: other ones than it began with; None: the same.
        transfer: further environments that rewards are carried to. A program is carried as it was recovered; a network
            is learnt again, since loading one runs what its file says.
        env: the environment named again; another one would be another comparison.
        sets, flags: other settings named again, as for `grace_irl.runs.config.resolve`.
        workers, listener, note: as for `start`.

    Raises:
        InputError: no comparison, one with links in it, one that a live process works on, settings that nobody answers
            for or that changed, or demonstrations that changed.
        KeyboardInterrupt: as `start`.
    """
    require_no_links(folder)
    found = read_settings(folder)
    again = located(Settings(comparison_of({"env": env, "transfer": transfer}), found.fit)).comparison
    named = None if env is None else again.env
    settings = located(authorised_settings(folder, found, named, again.transfer, sets, flags or {}))
    _require_same(found, settings, spoken(sets, flags))
    changed = {key: value for key, value in (("methods", methods), ("seeds", seeds)) if value is not None}
    changed["transfer"] = tuple(dict.fromkeys((*settings.comparison.transfer, *again.transfer)))
    comparison = comparison_of({**settings.comparison.model_dump(), **changed})
    settings = Settings(comparison, settings.fit)
    contest = Contest.of(settings)
    if digest_of(contest.demonstrations) != comparison.data:
        raise InputError(
            f"{folder}: the demonstrations are not those that the comparison began with; expected the same files, "
            "unchanged: begin a new one"
        )
    warned = _checked(contest)
    contest.settings.write(folder)
    _say_server(contest, note)
    return _work(folder, contest.cleaned(folder, note), warned, workers, listener)


def _say_server(contest: Contest, note: Callable[[str], None]) -> None:
    if Grace.name in contest.settings.comparison.methods and (said := destination(settled(contest.settings.fit))):
        note(said)


def _require_same(found: Settings, settings: Settings, words: Mapping[str, object]) -> None:
    """Refuses settings that would make it another comparison."""
    before, after = found.comparison.env, settings.comparison.env
    if after != before and not (names_code(before) and names_code(after)):
        began = before or "the environment that its demonstrations name"
        raise InputError(f"--env {after} on --resume, and it began with {began}; {SAME}")
    kept = flat(found.fit)
    other = next((key for key, value in words.items() if key not in MAY_CHANGE and value != kept[key]), None)
    if other is not None:
        raise InputError(f"{other} = {words[other]!r} on --resume, and it began with {kept[other]!r}; {SAME}")


def _with_own_reward(settings: Settings, out: Path) -> Settings:
    """With a copy of the reward file, so that all runs have the same one, whenever they begin."""
    own = (out / "reward.py").absolute()
    write_atomically(own, read_reward(Path(settings.comparison.reward)))
    return Settings(settings.comparison.model_copy(update={"reward": str(own)}), settings.fit)


def _work(
    folder: Path, contest: Contest, warned: Sequence[str], workers: int | None, listener: Listener | None
) -> Compared:
    comparison, place = contest.settings.comparison, ComparisonFolder(folder)
    jobs = [(method, seed) for seed in range(comparison.seeds) for method in comparison.methods]
    with RunLock(place.lock):
        done = {job: read_result(place.job(*job).result) for job in jobs}
        left = [job for job, found in done.items() if found is None or not found.ended(comparison.transfer)]
        try:
            told, digest = listener or (lambda _: None), contest.settings.digest()
            run_jobs(folder, left, comparison.transfer, workers or os.cpu_count() or 1, told, digest)
        finally:
            results = tuple(found for job in jobs if (found := read_result(place.job(*job).result)) is not None)
            compared = _written(place, contest, results, warned)
    return compared


def _written(
    place: ComparisonFolder, contest: Contest, results: tuple[JobResult, ...], warned: Sequence[str]
) -> Compared:
    """Tables and plots of the jobs that have ended so far."""
    oracle = Oracle.of(contest.demonstrations)
    found = standings(results, contest.settings.comparison.methods, oracle)
    notes = (*warned, *_notes(results, found))
    write_atomically(place.csv, csv_text(results))
    write_atomically(place.table, markdown(contest.settings, found, notes))
    for environment in dict.fromkeys(each.environment for each in found):
        lines = [
            Line(each.method, [read_curve(place.job(each.method, seed).curve(environment)) for seed in each.seeds])
            for each in found
            if each.environment == environment
        ]
        write_atomically(place.curves(environment), plot(environment, lines))
    return Compared(place.path, results, found, notes, contest.choice)


def _notes(results: Sequence[JobResult], found: Sequence[Standing]) -> list[str]:
    """Notes of jobs and standings, each line once."""
    failures = [f"{each.method} seed {each.seed} failed: {each.failure}" for each in results if each.failure]
    jobs: dict[tuple[str, str], list[int]] = {}
    for each in results:
        for note in each.notes:
            jobs.setdefault((each.method, note), []).append(each.seed)
    said = [f"{method} (seed {', '.join(map(str, seeds))}): {note}" for (method, note), seeds in jobs.items()]
    return list(dict.fromkeys([*(each.note for each in found if each.note), *failures, *said]))


def _checked(contest: Contest) -> tuple[str, ...]:
    """Refuses what cannot be done, and returns the notes on lengths of episodes."""
    try:
        from grace_irl.rl.matching import told
        from grace_irl.rl.problems import length_warnings
    except ImportError as error:
        raise InputError(
            f"{error.name} is not installed; expected what PPO needs: pip install 'grace-irl[rl]'"
        ) from None
    comparison, contest = contest.settings.comparison, contest.drawn(0)
    problem = contest.problem(0)
    methods: list[PolicyMethod] = []
    for name in comparison.methods:
        methods.append(contest.method(name, Path("fit")))
        methods[-1].check(problem)
    labels = [contest.label(problem)]
    for environment in comparison.transfer:
        labels.append(_require_playable(contest, environment))
    if len(set(labels)) < len(labels):
        raise InputError(f"--transfer-env: {', '.join(labels)}; expected different environments")
    line, searches = told(contest.demonstrations, comparison.env), contest.settings.fit.method
    other = searches != METHOD and Grace.name in comparison.methods
    own = [f"{Grace.name} searches by method {searches!r}"] if other else []
    return (*([line] if line else []), *own, *length_warnings(problem, tuple(methods)))


def _require_playable(contest: Contest, environment: str) -> str:
    problem: PolicyProblem = contest.problem(0, environment)
    return contest.label(problem, environment)


TASK = "grace_irl.compare.job:work"
POLL_S = 0.2
"""Between two looks at the learning curves."""

Entry = tuple[str, int]
"""A method and a seed."""


@dataclass(frozen=True)
class ComparisonState:
    """State of a comparison.

    Attributes:
        total, done, failed: jobs.
        running: the jobs at work, with the environment steps that their curves tell of.
        ended: the job that has just ended, if one has.
    """

    total: int
    done: int
    failed: int
    running: tuple[tuple[str, int, int], ...]
    ended: JobResult | None = None


Listener = Callable[[ComparisonState], None]


def run_jobs(
    folder: Path, jobs: Sequence[Entry], transfer: Sequence[str], workers: int, listener: Listener, settings: str = ""
) -> None:
    """Does jobs; each leaves a result in its folder, whatever becomes of it.

    Args:
        folder: of the comparison.
        jobs: to be done, in this order.
        transfer: environments that rewards are carried to.
        workers: processes at once.
        listener: gets the state at each end, and now and then in between.
        settings: digest of those that the user answers for (`Settings.digest`); a job does no other.

    Raises:
        KeyboardInterrupt: the jobs at work were stopped; what had ended is kept.
    """
    share = max(1, (os.cpu_count() or 1) // workers)
    waiting = list(jobs)
    running: dict[JobFuture, Entry] = {}
    done = failed = 0
    with LocalExecutor(workers, name="compare") as executor:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop(0)
                running[_submitted(executor, folder, job, share, settings)] = job
            wait(running, POLL_S, FIRST_COMPLETED)
            for future in [each for each in running if each.done()]:
                job = running.pop(future)
                result = _ended(ComparisonFolder(folder).job(*job), job, transfer, future.exception())
                done, failed = done + 1, failed + bool(result.failure)
                listener(ComparisonState(len(jobs), done, failed, _standing(folder, running.values()), result))
            listener(ComparisonState(len(jobs), done, failed, _standing(folder, running.values())))


def _submitted(executor: Executor, folder: Path, job: Entry, share: int, settings: str) -> JobFuture:
    place = ComparisonFolder(folder).job(*job)
    place.path.mkdir(parents=True, exist_ok=True)
    found = read_result(place.result)
    if found is not None and found.outcomes:
        write_result(place.result, replace(found, failure=""))
    else:
        place.result.unlink(missing_ok=True)  # of a failure that is tried again
    method, seed = job
    arguments = {"folder": str(folder), "method": method, "seed": seed, "workers": share, "digest": settings}
    return executor.submit(Job(TASK, arguments, place.log, {**memory.environment(), "OMP_NUM_THREADS": "1"}))


def _ended(place: JobFolder, job: Entry, transfer: Sequence[str], error: BaseException | None) -> JobResult:
    """The result that a job left; if it left none, why."""
    found = read_result(place.result) or JobResult(*job)
    if found.failure or found.ended(transfer):
        return found
    if error is not None and not isinstance(error, GraceError):
        raise error
    why = str(error or "its process ended without a result")
    if error is None or isinstance(error, JobError):
        why += f": see jobs/{place.path.name}/log.txt"
    result = replace(found, failure=why)
    write_result(place.result, result)
    return result


def _standing(folder: Path, running: Iterable[Entry]) -> tuple[tuple[str, int, int], ...]:
    found = []
    for method, seed in running:
        place = ComparisonFolder(folder).job(method, seed)
        steps = [point["steps"] for path in place.path.glob("curve-*.json") for point in read_curve(path)[-1:]]
        found.append((method, seed, int(sum(steps))))
    return tuple(found)
