"""Start and resume of runs. `grace_irl.fit` and the command `grace-irl fit` call this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.config import Config, ProposerConfig
from grace_irl.demos.label_rule import RuleChoice, untested
from grace_irl.demos.labels import Problem
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.columns import require_both_sides
from grace_irl.evaluate.evaluation import Evaluator
from grace_irl.evaluate.separation import BEST_HERE
from grace_irl.methods.registry import method_of, task_named
from grace_irl.propose.material import Workbench
from grace_irl.runs import acting, auditing, front, proposers
from grace_irl.runs import labelling as labellings
from grace_irl.runs.acting import authorised, plain_acting
from grace_irl.runs.auditing import audited, store_audit, with_seen
from grace_irl.runs.beginnings import (
    failed_of,
    given_of,
    programs_of,
    require_readable,
    seen_before,
    seen_of,
    store_given,
    trained_before,
)
from grace_irl.runs.bench import labelled
from grace_irl.runs.budget import Budget, Meter, Prices
from grace_irl.runs.caller import Parts, notes_of
from grace_irl.runs.config import located, resolve, to_toml
from grace_irl.runs.data import large_files, with_sample
from grace_irl.runs.effects import changed, require_effect
from grace_irl.runs.engine import Engine
from grace_irl.runs.folder import RunLock, RunPaths, create, default_folder, own, require_absent, require_folder
from grace_irl.runs.front import TOO_FEW, UNJUDGED, front_of, keep_sizes, stored_sizes
from grace_irl.runs.labelling import Labelling, with_label
from grace_irl.runs.loading import loaded, new_labelling, require_chat
from grace_irl.runs.loop import run_to_end
from grace_irl.runs.preference import Preference
from grace_irl.runs.provenance import export_record
from grace_irl.runs.record import Record, trajectory_rows
from grace_irl.runs.recording import changed_search, require_recorded_data, with_recorded_scores
from grace_irl.runs.rest import with_rest
from grace_irl.runs.resumption import require_compatible, require_same_demonstrations
from grace_irl.runs.run import Best, Interrupted, Run
from grace_irl.runs.sandbox import opened_sandbox
from grace_irl.runs.schema import FORMAT
from grace_irl.runs.store import Store
from grace_irl.runs.swaps import swaps_line
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.version import __version__

# A run ends after FRUITLESS_POPULATIONS * `Method.width` answers in a row without a program. `Method.width` is the
# number of first requests, which name no parents.
FRUITLESS_POPULATIONS = 2

OpensEvaluator = Callable[[Workbench], Evaluator]
"""Function that makes the evaluator of a run. The `Workbench` holds the run's data, sandbox and cache of rewards."""


def start(config: Config, out: Path | None = None, parts: Parts = Parts()) -> Run:
    """Start a run in a new folder, and return its result when it ends.

    Args:
        config: the configuration.
        out: path of the new folder; None for `runs/<name of the demonstrations>-<time>`.
        parts: objects and callbacks of the caller.

    Raises:
        InputError: settings, data or a folder that cannot be used. Nothing is written, except in one case: a model or a
            person has named the goal states, and these answers leave no positive or no negative states.
        GraceError: no valid program was found, or the model's server is lost. The run is saved.
        Interrupted: Ctrl-C. The run is saved.
    """
    method_of(config)
    if parts.proposer is not None:
        begin = config.proposer.start_from
        named = ProposerConfig(name=type(parts.proposer).__name__, start_from=begin)
        config = config.model_copy(update={"proposer": named})
    config = proposers.settled(located(config))
    if parts.proposer is None:
        proposers.kind(config.proposer.name)
    folder = out or default_folder(next(iter(config.data.files), "") or task_named(config))
    require_absent(folder)
    _say_size(config, parts)
    labelling = new_labelling(config, parts.demonstrations, parts.reason)
    config = with_sample(config, labelling.demonstrations)
    if method_of(config).needs.demonstrations:
        config = with_label(config, labelling.rule)
    if labelling.silent:
        require_chat(labelling, config)
    problem = labelling.problem()
    require_recorded_data(config, trajectory_rows(problem))
    given = programs_of(config.proposer.start_from, method_of(config).width(config))
    require_readable(given, config, problem)
    trained = trained_before(config.proposer.start_from)
    seen = seen_before(trained, trajectory_rows(problem))
    evaluator = _checked(labelling, problem, config)
    if parts.proposer is None:
        _say_server(config, parts)
        config = proposers.checked(config, problem, parts.note or (lambda _: None))
    with ExitStack() as stack:
        sandbox = parts.sandbox or stack.enter_context(opened_sandbox(config.sandbox, parts.workplace))
        stack.enter_context(_resumable(folder))
        create(folder, config, problem, labelling.answers, labelling.choice.reason)
        stack.enter_context(RunLock(RunPaths(folder).lock))
        store = stack.enter_context(closing(Store(RunPaths(folder).database)))
        store_given(store, given, trained, seen)
        store.add_event("started", f"grace-irl {__version__}, sandbox tier {sandbox.tier}")
        note = notes_of(store, parts)
        judges = method_of(config).needs.demonstrations
        if judges and not parts.reason and labelling.demonstrations.items:
            note(labelling.choice.line)
            if labelling.demonstrations.choice is not None:
                note(labelling.demonstrations.choice.line)
        for line in (
            *labelling.demonstrations.notes,
            swaps_line(labelling.demonstrations),
            untested(labelling.demonstrations),
        ):
            if judges and line:
                note(line)
        if parts.proposer is None and (left := proposers.unread(config, problem)):
            note(left)
        if line := changed_search(config):
            note(line)
        return _work(folder, config, labelling, evaluator, sandbox, store, parts)


def resume(
    folder: Path,
    flags: Mapping[str, object] | None = None,
    *,
    sets: tuple[str, ...] = (),
    parts: Parts = Parts(),
    vouched: Config | None = None,
) -> Run:
    """Continue a run as if it had never stopped, and return its result when it ends.

    If this user did not make the run on this machine, the command must repeat the paths and addresses in the run's
    settings. Otherwise a folder from somebody else could choose which files are read and where prompts go
    (`grace_irl.runs.acting`).

    Args:
        folder: the run's folder.
        flags: changed settings by `section.key`. Only settings in `resumption.CHANGEABLE` may change.
        sets: changed settings as texts of the form `section.key=value`.
        parts: objects and callbacks of the caller.
        vouched: configuration that a trusted expansion or comparison gives for this run; None for a separate run.

    Raises:
        InputError: a folder that is no run, a run of another format, a run that another process uses, a setting that
            must not change or lacks authorisation, or demonstrations that differ from the run's demonstrations.
        GraceError: no valid program was found, or the model's server is lost. The run is saved.
        Interrupted: Ctrl-C. The run is saved.
    """
    paths = RunPaths(folder)
    require_folder(folder)
    Store(paths.database).close()
    with ExitStack() as stack:
        stack.enter_context(RunLock(paths.lock))
        stack.enter_context(_resumable(folder))
        store = stack.enter_context(closing(Store(paths.database)))
        if store.format < FORMAT:
            raise InputError(
                f"{folder}: a run of format {store.format}{_OLDER.get(store.format, '')}; expected format {FORMAT} to "
                f"go on with: give its answers again with --replay {paths.quoted}, or begin with its programs: "
                f"--start-from {paths.quoted}"
            )
        found = with_label(resolve(paths.config), store.meta("label"))
        kept = acting.kept(store.meta("token"), paths.database)
        in_memory = parts.demonstrations is not None
        began = authorised(found, str(folder), kept or {}, sets, flags, vouched=vouched, in_memory=in_memory)
        config = located(resolve(sets=sets, flags=flags, base=began))
        require_compatible(began, config, store)
        if vouched is None:
            require_effect(config, changed(began, config, sets, flags), "" if parts.proposer is not None else None)
        if not in_memory:
            require_files(folder, config, had=bool(store.trajectories()))
        if parts.proposer is None and config.proposer.name not in proposers.PROPOSERS:
            raise InputError(
                f"{folder}: the run began with a proposer of the caller's own, {config.proposer.name}; expected it "
                f"again: grace_irl.fit(resume={str(folder)!r}, proposer=…)"
            )
        reason = store.meta("label_reason") or "as the run began"
        _say_size(config, parts)
        demonstrations, choice = loaded(config, parts.demonstrations, reason, new=False)
        labelling = labellings.resumed(demonstrations, choice, folder, store, notes_of(store, parts))
        if parts.note is not None and parts.whole is None and method_of(config).needs.demonstrations:
            parts.note(choice.line)
        problem = labelling.problem()
        require_same_demonstrations(folder, trajectory_rows(problem), store.trajectories(), found)
        if labelling.silent:
            require_chat(labelling, config)
        given_of(store, config)
        evaluator = _checked(labelling, problem, config)
        method_of(config).resumes(config, folder)
        if parts.proposer is None:
            _say_server(config, parts)
            config = proposers.checked(config, problem, parts.note or (lambda _: None))
        sandbox = parts.sandbox or stack.enter_context(opened_sandbox(config.sandbox, parts.workplace))
        if config != found:
            write_atomically(paths.config, to_toml(config))
        if plain_acting(config) != (kept or {}):
            own(paths.database, store, config)
        store.set_final_fates([], 0, 0)
        store.add_event("resumed", f"grace-irl {__version__}, sandbox tier {sandbox.tier}")
        return _work(folder, config, labelling, evaluator, sandbox, store, parts)


def require_files(folder: Path, config: Config, *, had: bool = False) -> None:
    """Check that the settings of a run name its demonstrations. They do not if these were objects in memory.

    Args:
        folder: folder of the run, for messages.
        config: the settings.
        had: whether the run began with demonstrations, although its method needs none.

    Raises:
        InputError: the settings name no demonstrations, and the run had some or its method needs some.
    """
    if not config.data.files and (had or method_of(config).needs.demonstrations):
        raise InputError(
            f"{folder}: the run began with demonstrations in memory; expected them again: grace_irl.fit(resume="
            f"{str(folder)!r}, demos=…)"
        )


_OLDER = {1: f", whose held-out accuracies are each at the {BEST_HERE}"}
"""Texts for the error message about a run of an older format, by format. Such a run cannot be resumed."""


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Turn Ctrl-C into `Interrupted`, which names the folder, at any moment at which the run exists."""
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        if not RunPaths(folder).database.exists():
            raise
        raise Interrupted(folder, None) from None


def _work(
    folder: Path,
    config: Config,
    labelling: Labelling,
    evaluator: OpensEvaluator,
    sandbox: Sandbox,
    store: Store,
    parts: Parts,
) -> Run:
    """Run the search, and test its result on the trajectories that a sample left out. Return the result.

    The caller has checked all arguments.

    Raises:
        GraceError: no valid program was found, or the search cannot continue. All results are saved.
        Interrupted: Ctrl-C. The run is saved.
    """
    bench = labelled(folder, config, labelling, sandbox, store, parts)
    run = _searched(folder, config, labelling.choice, evaluator, bench, store, parts)
    if parts.rest:
        note, show = notes_of(store, parts), parts.note or (lambda _: None)
        run = with_rest(run, bench, labelling, config, store, parts.again(folder), note, show)
    return replace(run, notes=tuple(detail for _, kind, detail in store.events() if kind == "note"))


def _searched(
    folder: Path,
    config: Config,
    choice: RuleChoice,
    evaluator: OpensEvaluator,
    bench: Workbench,
    store: Store,
    parts: Parts,
) -> Run:
    """Run the search, and return its result without notes.

    Raises:
        GraceError: no valid program was found, or the search cannot continue. All results are saved.
        Interrupted: Ctrl-C. The run is saved.
    """
    budget = Budget(config.stop, FRUITLESS_POPULATIONS * method_of(config).width(config))
    meter = Meter(store, budget, Prices(config.model.price_in, config.model.price_out), parts.spent)
    bench = replace(bench, limit=meter.limit, keep=meter.keep)
    given = given_of(store, config)
    proposer = proposers.proposer(config, bench, given, parts.proposer)
    paths = RunPaths(folder)
    again = parts.again(folder)

    def keep(best: Record) -> None:
        write_atomically(paths.reward, export_record(best, store, config))
        if best.program.id != store.meta("best"):  # the run was resumed, and found another program
            store.set_meta(auditing.KEY, "")
            if any(not one.words for one in front.stored_sizes(store) or ()):  # figures of validation episodes
                store.set_meta(front.KEY, "")
        store.set_meta("best", best.program.id)

    chosen = method_of(config)
    opened, course = evaluator(bench), chosen.course(config)
    preference = Preference(bench) if chosen.needs.demonstrations else None
    engine = Engine(
        search=chosen.search(config),
        proposer=proposer,
        evaluator=opened,
        sandbox=bench.sandbox,
        store=store,
        meter=meter,
        lag=config.search.lag or 1,
        account=chosen.account,
        following=chosen.following(config),
        generations=course.generations if course else None,
        on_change=parts.listener or (lambda _: None),
        on_best=keep,
        prefer=preference if preference else lambda order, _: order[0],
        evaluations=_evaluations(config, parts),
    )
    try:
        reason = run_to_end(engine.run())
        best = engine.finish()
        audit = audited(bench, best) if best is not None else None
        if audit is not None:
            audit = with_seen(audit, seen_of(store))
            store_audit(store, audit)
        keep_sizes(store, proposer, preference)
    except KeyboardInterrupt:
        found = engine.interrupt()
        store.add_event("interrupted", f"after {engine.progress.calls} proposals")
        raise Interrupted(folder, Best(found.program, found.evaluation) if found else None) from None
    except GraceError as error:
        with suppress(GraceError):  # the disk may be full
            store.add_event("failed", str(error))
        raise error.saved(again) from error
    except BrokenPipeError:  # the reader of the command's output has ended
        raise
    except OSError as error:
        where = error.filename or folder
        failure = GraceError(
            f"{where}: {error.strerror or error}; expected a disk with room that this user may write to"
        )
        raise failure.saved(again) from error
    finally:
        opened.close()
    told = {detail for _, kind, detail in store.events() if kind == "note"}
    for line in (*failed_of(store, given), *_unchosen(store, config, bench.problem)):
        if line in told:  # in an earlier sitting
            continue
        if parts.reason:  # a round of an expansion, or a job of a comparison
            store.add_event("note", line)
        else:
            notes_of(store, parts)(line)
    store.add_event("stopped", reason)
    progress = engine.progress
    if best is None:
        raise GraceError(_nothing(folder, progress.calls, len(store.answered()), reason, again))
    return Run(
        folder=folder,
        best=Best(best.program, best.evaluation),
        reward_path=paths.reward,
        reason=reason,
        seconds=store.seconds(),
        programs=len(engine.records),
        calls=progress.calls,
        generations=progress.generation,
        tokens=progress.tokens,
        cost=progress.cost,
        proposer=config.proposer.name,
        method=config.method,
        task=task_named(config),
        label=choice,
        audit=audit,
        front_rows=front_of(store, engine.records),
    )


def _evaluations(config: Config, parts: Parts) -> int:
    """The number of parallel evaluations, at most that of requests in flight (`Answering` has one per worker at least).

    If other machines do the work, there are as many evaluations as requests. On this machine, `policy.trainings` may
    be more than `sandbox.workers`.
    """
    ahead, trainings = config.search.lag or 1, getattr(getattr(config, "policy", None), "trainings", None) or 1
    return ahead if parts.workplace.elsewhere else min(trainings, ahead)


def _unchosen(store: Store, config: Config, problem: Problem) -> list[str]:
    """Lines for the user if the training data alone chose the size of the program."""
    if not method_of(config).needs.demonstrations:
        return []
    share = config.data.validation or 0.0
    unjudged = [UNJUDGED.format(share=share)] if share and not problem.validation else []
    return unjudged + [TOO_FEW] * (stored_sizes(store) == ())


def _nothing(folder: Path, calls: int, answers: int, reason: str, again: str) -> str:
    """The error message for a run without a valid program.

    Args:
        folder: the run's folder.
        calls: number of answers that the search has taken in.
        answers: number of answers in the store.
        reason: the rule that ended the run.
        again: arguments that resume the run.
    """
    if calls:
        see = f"see why with: grace-irl show {RunPaths(folder).quoted}"
        return f"{folder}: no valid program in {calls} proposals ({reason}); {see}"
    flag = f"--{reason.partition(':')[0].replace('_', '-')}"
    found = f"{folder}: no proposal before a limit was reached ({reason})"
    if answers:
        why = "before the first program was judged" if flag == "--max-seconds" else "when the first program needed more"
        found = f"{folder}: a limit was reached ({reason}) {why}; the {answers} answers so far are saved"
    elif flag == "--max-seconds":
        found = (
            f"{folder}: the time was up before the first proposal ({reason}); expected time to read demonstrations or "
            "to play a task's random episodes, and for an answer"
        )
    return f"{found}: go on with more: grace-irl fit {again} {flag} N"


def _say_size(config: Config, parts: Parts) -> None:
    """Tell the user that reading will take a while, if the files of demonstrations are large."""
    if parts.note is not None and parts.demonstrations is None and (said := large_files(config.data)):
        parts.note(said)


def _say_server(config: Config, parts: Parts) -> None:
    """Show the user which server will get the prompts and the key."""
    if parts.note is not None and (said := proposers.destination(config)):
        parts.note(said)


def _checked(labelling: Labelling, problem: Problem, config: Config) -> OpensEvaluator:
    """Check the data before anything is written. Return a function that makes the evaluator."""
    chosen = method_of(config)
    if not labelling.silent and chosen.needs.demonstrations:
        require_both_sides(problem.train)
    return with_recorded_scores(chosen.evaluator(problem, config), config)
