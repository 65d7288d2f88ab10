"""Start or resume a comparison of methods: run its jobs in parallel, and write its tables and plots.

A job is one method with one seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grace_irl.atomic import write_atomically
from grace_irl.compare.contest import Contest, require_cleanable, require_searchable
from grace_irl.compare.dispatch import Listener, run_jobs
from grace_irl.compare.fitted import Fitted
from grace_irl.compare.folder import ComparisonFolder, JobResult, read_curve, read_result
from grace_irl.compare.plot import Line, plot
from grace_irl.compare.settings import (
    ORACLE,
    OURS,
    Settings,
    authorised_settings,
    comparison_of,
    digest_of,
    key_of,
    located,
    read_settings,
    require_tunable,
    told_apart,
)
from grace_irl.compare.standings import Oracle, Standing, standings
from grace_irl.compare.table import csv_text, markdown
from grace_irl.config import METHOD
from grace_irl.contents import require_no_links
from grace_irl.demos.label_rule import RuleChoice
from grace_irl.errors import InputError
from grace_irl.evaluate.evaluation import shown
from grace_irl.rewards.file import read_reward
from grace_irl.rl.environments import code_of, names_code
from grace_irl.rl.method import PolicyMethod, PolicyProblem
from grace_irl.runs.acting import DROPPED, spoken
from grace_irl.runs.config import flat
from grace_irl.runs.folder import RunLock, claimed, require_absent
from grace_irl.runs.proposers import destination, settled
from grace_irl.work import Workplace

OWN = ("compare.toml",)
"""Name of the file that shows that a comparison can be resumed, for `require_absent`."""
SAME = "expected no change: a comparison goes on with the settings that it began with"
MAY_CHANGE = (
    *(
        "data.demos",
        "data.experts",
        "data.negatives",
        "proposer.start_from",
        "proposer.recording",
        "model.url",
        "model.context",
    ),
    *(key for key in DROPPED if key != "data.goals"),
)
"""Settings that may change on resume: paths, and settings without effect on results. The demonstrations at a new path
must be the same as before."""


@dataclass(frozen=True)
class Compared:
    """The result of a comparison.

    Attributes:
        folder: the folder of the comparison.
        results: results of all jobs, including failed ones.
        standings: scores over all seeds, for each method and environment.
        notes: remarks for readers of the tables.
        label: the label rule, which selects the positive expert states, and the reason for its choice.
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
    workplace: Workplace = Workplace(),
) -> Compared:
    """Start a comparison, and run all of its jobs.

    Args:
        settings: settings of the comparison.
        out: the folder to create.
        workers: number of jobs in parallel; None: one per core of the workplace.
        listener: function that receives the state of the comparison, repeatedly while the comparison runs.
        note: function that shows one line to the user, for example the address of the server to which prompts and the
            API key go.
        workplace: machines on which the jobs run.

    Raises:
        InputError: settings, data, methods or environments are invalid. These checks come before any file is written.
            Only the check that an expert has a goal state comes later.
        GraceError: the model's server cannot be used for now. If nothing asks for goal states, no file is written.
        KeyboardInterrupt: the user pressed Ctrl-C. The comparison can be resumed.
    """
    require_absent(out, OWN, but=(ComparisonFolder(out).lock.name,))
    require_tunable(settings.comparison)
    contest = Contest.of(settings, new=True)
    began = {"data": digest_of(contest.demonstrations), "label_reason": contest.choice.reason}
    began["task_digest"] = contest.task.digest if contest.task else ""
    comparison = settings.comparison.model_copy(update=began)
    settings = located(Settings(comparison, contest.settings.fit))
    contest = replace(contest, settings=settings)
    warned = _checked(contest)
    if not workplace.elsewhere:
        from grace_irl.rl.learning import require_device  # `_checked` has reported a missing package

        require_device(comparison.device)
    _say_where(contest, note)
    checked = None
    if contest.needs_goals or settings.fit.data.goals:
        checked = require_cleanable(contest.labels, contest.demonstrations, note)
    require_searchable(contest.drawn(0), comparison.methods, note, checked)
    with claimed(out, OWN):
        if comparison.reward:
            contest = replace(contest, settings=(settings := _with_own_reward(settings, out)))
        settings.write(out)
        if contest.demonstrations.items:
            note(contest.choice.line)
        if contest.demonstrations.choice is not None:
            note(contest.demonstrations.choice.line)
        return _work(out, contest.cleaned(out, note, checked), warned, workers, listener, workplace)


def resume(
    folder: Path,
    *,
    methods: tuple[str, ...] | None = None,
    seeds: int | None = None,
    transfer: tuple[str, ...] = (),
    env: str | None = None,
    task: str | None = None,
    sets: tuple[str, ...] = (),
    flags: Mapping[str, object] | None = None,
    workers: int | None = None,
    listener: Listener | None = None,
    note: Callable[[str], None] = lambda _: None,
    workplace: Workplace = Workplace(),
) -> Compared:
    """Resume a comparison. Failed jobs are repeated.

    Some settings make a comparison act with the user's rights, such as paths, server addresses and code to run. If the
    comparison was started by another user or on another machine, the arguments must name these settings again.

    Args:
        folder: folder of the comparison.
        methods, seeds: the complete new list of methods, and the new number of seeds; None: unchanged.
        transfer: further environments for training on the recovered rewards. A recovered reward program is read from
            its file. A reward network is trained again, because loading its file could run code.
        env, task: the environment and the task of the comparison, if they must be named again.
        sets: other settings that must be named again, as texts such as "data.demos=DIR", and settings of the searches
            of new methods.
        flags: other settings that must be named again, as values by key.
        workers, listener, note, workplace: as for `start`.

    Raises:
        InputError: the folder holds no comparison or contains links, another process works on the comparison,
            demonstrations, task or settings have changed, or settings must be named again.
        KeyboardInterrupt: as in `start`.
    """
    require_no_links(folder)
    read_settings(folder)  # a folder without a comparison gets no lock
    with RunLock(ComparisonFolder(folder).lock):
        found = read_settings(folder)
        again = located(Settings(comparison_of({"env": env, "task": task, "transfer": transfer}), found.fit)).comparison
        named = {"env": None if env is None else again.env, "task": None if task is None else again.task}
        compared = tuple(dict.fromkeys((*found.comparison.methods, *(methods or ()))))
        shared, own = told_apart(compared, sets, found.fit.method)
        settings = authorised_settings(folder, found, named, again.transfer, shared, flags or {})
        settings = located(settings)
        _require_same(found, settings, spoken(shared, flags))
        changed: dict[str, object] = {"methods": methods, "seeds": seeds}
        changed = {key: value for key, value in changed.items() if value is not None}
        changed["transfer"] = tuple(dict.fromkeys((*settings.comparison.transfer, *again.transfer)))
        changed["searches"] = tuple({key_of(each): each for each in (*found.comparison.searches, *own)}.values())
        comparison = comparison_of({**settings.comparison.model_dump(), **changed})
        settings = Settings(comparison, settings.fit)
        _require_same_searches(found, settings, {*map(key_of, own)})
        settings = _with_its_reward(settings, folder)
        comparison = settings.comparison
        contest = Contest.of(settings)
        if digest_of(contest.demonstrations) != comparison.data:
            raise InputError(
                f"{folder}: the demonstrations are not those that the comparison began with; expected the same files, "
                "unchanged: begin a new comparison"
            )
        if (contest.task.digest if contest.task else "") != comparison.task_digest:
            raise InputError(
                f"{folder}: task {comparison.task!r} is not the one that the comparison began with; expected the same "
                "file and code, unchanged: begin a new comparison"
            )
        warned = _checked(contest)
        require_searchable(contest.drawn(0), {*comparison.methods} - {*found.comparison.methods}, note)
        contest.settings.write(folder)
        _say_where(contest, note)
        return _work(folder, contest.cleaned(folder, note), warned, workers, listener, workplace)


def _say_where(contest: Contest, note: Callable[[str], None]) -> None:
    """Show the user which code of a task runs, and which servers get prompts and the API key."""
    naming = [contest.labels] if contest.needs_goals or contest.settings.fit.data.goals else []
    servers = [destination(settled(config)) for config in (*naming, *contest.settings.searches.values())]
    for line in (contest.task.destination if contest.task else "", *dict.fromkeys(servers)):
        if line:
            note(line)


def _require_same(found: Settings, settings: Settings, words: Mapping[str, object]) -> None:
    """Refuse changes of settings that affect the results.

    Raises:
        InputError: a setting that affects the results has changed.
    """
    before, after = found.comparison.env, settings.comparison.env
    if after != before and not (names_code(before) and names_code(after)):
        began = before or "the environment that its demonstrations name"
        raise InputError(f"--env {after} on --resume, and it began with {began}; {SAME}")
    kept = flat(found.fit)
    other = next((key for key, value in words.items() if key not in MAY_CHANGE and value != kept[key]), None)
    if other is not None:
        raise InputError(f"{other} = {words[other]!r} on --resume, and it began with {kept[other]!r}; {SAME}")


def _require_same_searches(found: Settings, settings: Settings, keys: Collection[str]) -> None:
    """Refuse changes of the settings `keys`, which only searches of methods other than `grace` have.

    Raises:
        InputError: such a setting has changed for a search that the comparison already had.
    """
    for name, config in found.searches.items():
        before, after = flat(config), flat(settings.search(name))
        for key in keys:
            if key in before and before[key] != after[key]:
                raise InputError(f"{key} = {after[key]!r} on --resume, and it began with {before[key]!r}; {SAME}")


def _with_own_reward(settings: Settings, out: Path) -> Settings:
    """Copy the reward file to the folder `out`, and return settings that name the copy.

    Later changes of the original file then do not affect the runs.
    """
    own = (out / "reward.py").absolute()
    write_atomically(own, read_reward(Path(settings.comparison.reward)))
    update = {"reward": str(own), "reward_digest": _digest(own)}
    return Settings(settings.comparison.model_copy(update=update), settings.fit)


def _with_its_reward(settings: Settings, folder: Path) -> Settings:
    """Settings with the digest of the reward file in the comparison's folder.

    The user may correct the reward file as long as every run of `grace` that used it has failed without a result. Runs
    of all seeds count, also those beyond the present number of seeds.

    Raises:
        InputError: the reward has changed, and a run has used it.
    """
    comparison = settings.comparison
    if not comparison.reward_digest or (now := _digest(Path(comparison.reward))) == comparison.reward_digest:
        return settings
    results = [read_result(job.result) for job in ComparisonFolder(folder).jobs(OURS)]
    if any(each is None or each.outcomes or not each.failure for each in results):
        raise InputError(
            f"{comparison.reward}: not the reward that the comparison began with; expected it unchanged: begin a new "
            "comparison"
        )
    return Settings(comparison.model_copy(update={"reward_digest": now}), settings.fit)


def _digest(file: Path) -> str:
    return hashlib.sha256(read_reward(file).encode()).hexdigest()[:16]


def _work(
    folder: Path,
    contest: Contest,
    warned: Sequence[str],
    workers: int | None,
    listener: Listener | None,
    workplace: Workplace,
) -> Compared:
    comparison, place = contest.settings.comparison, ComparisonFolder(folder)
    warned = (*_chance(place, contest), *warned)
    jobs = [(method, seed) for seed in range(comparison.seeds) for method in comparison.methods]
    done = {job: read_result(place.job(*job).result) for job in jobs}
    left = [job for job, found in done.items() if found is None or not found.ended(comparison.transfer)]
    try:
        told, digest = listener or (lambda _: None), contest.settings.digest()
        code = _code(contest)
        run_jobs(folder, left, comparison.transfer, workers, told, digest, workplace, code)
    finally:
        results = tuple(found for job in jobs if (found := read_result(place.job(*job).result)) is not None)
        compared = _written(place, contest, results, warned)
    return compared


def _written(
    place: ComparisonFolder, contest: Contest, results: tuple[JobResult, ...], warned: Sequence[str]
) -> Compared:
    """Write tables and plots of the jobs that have ended so far."""
    comparison = contest.settings.comparison
    oracle = Oracle.of(contest.demonstrations, contest.longest)
    found = standings(results, comparison.methods, oracle, Oracle(steps=comparison.horizon or None))
    notes = (*warned, *_notes(results, found))
    write_atomically(place.csv, csv_text(results))
    write_atomically(place.table, markdown(contest.settings, found, notes, results))
    for environment in dict.fromkeys(each.environment for each in found):
        lines = [
            Line(each.method, [read_curve(place.job(each.method, seed).curve(environment)) for seed in each.seeds])
            for each in found
            if each.environment == environment
        ]
        write_atomically(place.curves(environment), plot(environment, lines))
    return Compared(place.path, results, found, notes, contest.choice)


def _chance(place: ComparisonFolder, contest: Contest) -> list[str]:
    """A line with the score of random actions in the task of a comparison; none without a task."""
    if contest.task is None:
        return []
    from grace_irl.tasks.random_episodes import kept_random_score

    score, played = kept_random_score(contest.task, 0, place.path)
    return [f"random actions score {shown(score)} (mean of {played} episodes)"]


def _notes(results: Sequence[JobResult], found: Sequence[Standing]) -> list[str]:
    """Lines below the tables, without duplicates: notes of the standings, failures of jobs, and notes of jobs."""
    failures = [f"{each.method} seed {each.seed} failed: {each.failure}" for each in results if each.failure]
    jobs: dict[tuple[str, str], list[int]] = {}
    for each in results:
        for note in each.notes:
            jobs.setdefault((each.method, note), []).append(each.seed)
    said = [f"{method} (seed {', '.join(map(str, seeds))}): {note}" for (method, note), seeds in jobs.items()]
    return list(dict.fromkeys([*(each.note for each in found if each.note), *failures, *said]))


def _checked(contest: Contest) -> tuple[str, ...]:
    """Check the problems and methods before training. Return notes on the environment, search and episode lengths.

    Raises:
        InputError: a method, an environment or the data cannot be used.
    """
    try:
        from grace_irl.rl.matching import told
        from grace_irl.rl.problems import length_warnings
    except ImportError as error:
        raise InputError(
            f"{error.name} is not installed; expected what PPO needs: pip install 'grace-irl[rl]'"
        ) from None
    _code(contest)  # refuses an environment that a job cannot find
    comparison, contest = contest.settings.comparison, contest.drawn(0)
    problem = contest.problem(0)
    labels = [contest.judge(problem).environment]
    methods: list[PolicyMethod] = []
    for name in comparison.methods:
        methods.append(contest.method(name, Path("fit")))
        _check(methods[-1], problem, contest)
    for environment in comparison.transfer:
        labels.append(_require_playable(contest, environment))
    if len(set(labels)) < len(labels):
        raise InputError(f"--transfer-env: {', '.join(labels)}; expected environments with different names")
    line = "" if contest.task else told(contest.demonstrations, comparison.env)
    searches = contest.settings.fit.method
    other = searches != METHOD and OURS in comparison.methods
    own = [f"{OURS} searches by method {searches!r}"] if other else []
    return (*([line] if line else []), *own, *length_warnings(problem, tuple(methods)))


def _check(method: PolicyMethod, problem: PolicyProblem, contest: Contest) -> None:
    """Check that a method can learn from a problem, and that the method's search, if any, can begin.

    Raises:
        InputError: the method cannot learn, or its search cannot begin.
    """
    try:
        method.check(problem)
    except InputError as error:
        own = isinstance(method, Fitted) and (method.reward is not None or not method.separates)
        if own or method.name == ORACLE or contest.demonstrations.items:
            raise
        raise InputError(
            f"method {method.name!r} needs demonstrations; expected --demos PATH…, or only methods without, "
            f"such as ppo-true, eureka and random ({error})"
        ) from None


def _require_playable(contest: Contest, environment: str) -> str:
    problem: PolicyProblem = contest.problem(0, environment)
    return contest.label(problem, environment)


def _code(contest: Contest) -> dict[str, Any]:
    """The place of the environments' code, for the processes of jobs (`code_of`)."""
    return code_of(contest.environment, *contest.settings.comparison.transfer)
