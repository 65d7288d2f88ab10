"""From a configuration to a reward: starts and resumes runs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from grace_irl.demos import require_roles
from grace_irl.demos.labels import Problem, label
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.columns import require_both_sides
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.evaluate.log_pi import LogPi, log_pi
from grace_irl.methods import method
from grace_irl.propose.protocol import Proposer
from grace_irl.propose.registry import factory
from grace_irl.runs.budget import budget
from grace_irl.runs.config import Config, ProposerConfig, resolve, to_toml
from grace_irl.runs.engine import Engine, Snapshot
from grace_irl.runs.lock import RunLock
from grace_irl.runs.loop import run_to_end
from grace_irl.runs.paths import RunPaths, default_folder, write_atomically
from grace_irl.runs.provenance import export_record
from grace_irl.runs.run import Best, Interrupted, Run
from grace_irl.runs.store import Record, Store, trajectory_rows
from grace_irl.sandbox.protocol import Limits, Sandbox
from grace_irl.version import __version__

Listener = Callable[[Snapshot], None]
FRUITLESS_POPULATIONS = 2  # a run ends when so many populations of answers in a row are no program
CHANGEABLE = ("search.generations", "stop.", "sandbox.workers", "sandbox.allow_weak")


def start(
    config: Config,
    out: Path | None = None,
    *,
    demonstrations: Demonstrations | None = None,
    proposer: Proposer | None = None,
    sandbox: Sandbox | None = None,
    listener: Listener | None = None,
) -> Run:
    """Begins a run in a new folder and works on it to its end.

    Args:
        config: everything about the run.
        out: the run's folder; None: `runs/<name of the set>-<time>`.
        demonstrations: in place of `config.data.demos`.
        proposer: in place of the one that `config.proposer` names.
        sandbox: in place of one opened (and closed) here.
        listener: is shown where the run stands after each result.

    Raises:
        InputError: settings, data or folder that cannot be used; nothing is written then.
        GraceError: no valid program was found.
        Interrupted: by Ctrl-C; the run is saved.
    """
    method(config.method)
    if proposer is not None:
        config = config.model_copy(update={"proposer": ProposerConfig(name=type(proposer).__name__)})
    else:
        factory(config.proposer.name)
    folder = out or default_folder(config.data.demos[0] if config.data.demos else "")
    _require_absent(folder)
    config = _located(config)
    problem = _problem(config, demonstrations)
    pi = _checked(problem, config)
    with ExitStack() as stack:
        sandbox = sandbox or stack.enter_context(_sandbox(config))
        if proposer is None:
            proposer = _closing(stack, factory(config.proposer.name)(problem, config.seed))
        _create(folder, config, problem)
        stack.enter_context(RunLock(RunPaths(folder).lock))
        store = stack.enter_context(closing(Store(RunPaths(folder).database)))
        store.add_event("started", f"grace-irl {__version__}, sandbox tier {sandbox.tier}")
        return _Session(folder, config, problem, pi, proposer, sandbox, store, listener).work()


def resume(
    folder: Path,
    flags: Mapping[str, object] | None = None,
    *,
    sets: tuple[str, ...] = (),
    demonstrations: Demonstrations | None = None,
    proposer: Proposer | None = None,
    sandbox: Sandbox | None = None,
    listener: Listener | None = None,
) -> Run:
    """Goes on with a run as if it had never stopped.

    Args:
        folder: of the run.
        flags, sets: settings to change, as for `resolve`: generations, stop rules and sandbox workers only.
        demonstrations, proposer, sandbox, listener: as for `start`.

    Raises:
        InputError: not a run, one of a newer version, one that a live process works on, a setting that cannot
            change, or data that is not what the run began with.
        GraceError, Interrupted: as for `start`.
    """
    paths = RunPaths(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected the folder of a run for --resume")
    Store(paths.database).close()
    with ExitStack() as stack:
        stack.enter_context(RunLock(paths.lock))
        store = stack.enter_context(closing(Store(paths.database)))
        began = resolve(paths.config)
        config = resolve(sets=sets, flags=flags, base=began)
        _require_compatible(began, config)
        problem = _problem(config, demonstrations)
        if trajectory_rows(problem) != store.trajectories():
            raise InputError(
                f"{folder}: the demonstrations are not those that the run began with; "
                "expected the same files, unchanged: start a new run"
            )
        pi = _checked(problem, config)
        sandbox = sandbox or stack.enter_context(_sandbox(config))
        proposer = proposer or _closing(stack, factory(config.proposer.name)(problem, config.seed))
        if config != began:
            write_atomically(paths.config, to_toml(config))
        store.set_final_fates([], 0, 0)
        store.add_event("resumed", f"grace-irl {__version__}, sandbox tier {sandbox.tier}")
        return _Session(folder, config, problem, pi, proposer, sandbox, store, listener).work()


@dataclass(frozen=True)
class _Session:
    """One sitting of a run: everything that the engine needs, opened and checked."""

    folder: Path
    config: Config
    problem: Problem
    log_pi: LogPi
    proposer: Proposer
    sandbox: Sandbox
    store: Store
    listener: Listener | None

    def work(self) -> Run:
        config = self.config
        evaluator = DiscriminatorEvaluator(
            self.problem,
            self.sandbox,
            log_pi=self.log_pi,
            calibrated=config.fitness.calibrate,
            cache=self.store,
            limits=Limits(wall_s=config.sandbox.wall_s, cpu_s=config.sandbox.cpu_s, memory_mb=config.sandbox.memory_mb),
        )
        stop = config.stop
        engine = Engine(
            search=method(config.method).make_search(config),
            proposer=self.proposer,
            evaluator=evaluator,
            sandbox=self.sandbox,
            store=self.store,
            budget=budget(
                max_calls=stop.max_calls,
                max_seconds=stop.max_seconds,
                max_tokens=stop.max_tokens,
                target_accuracy=stop.target_accuracy,
                plateau=stop.plateau,
                fruitless=FRUITLESS_POPULATIONS * config.search.population,
            ),
            lag=config.search.lag,
            on_told=self.listener or (lambda _: None),
            on_best=self._keep,
        )
        try:
            reason = run_to_end(engine.run())
            best = engine.finish()
        except KeyboardInterrupt:
            found = engine.interrupt()
            self.store.add_event("interrupted", f"after {engine.progress.calls} proposals")
            best_so_far = Best(found.program, found.evaluation) if found else None
            raise Interrupted(self.folder, best_so_far) from None
        finally:
            evaluator.close()
        self.store.add_event("stopped", reason)
        if best is None:
            raise GraceError(
                f"{self.folder}: no valid program in {engine.progress.calls} proposals ({reason}); "
                f"see why with: grace-irl show {self.folder}"
            )
        return Run(
            folder=self.folder,
            best=Best(best.program, best.evaluation),
            reward_path=RunPaths(self.folder).reward,
            reason=reason,
            seconds=engine.progress.seconds,
            programs=len(engine.records),
            calls=engine.progress.calls,
            generations=engine.progress.generation,
            proposer=config.proposer.name,
        )

    def _keep(self, best: Record) -> None:
        """Writes the best program so far."""
        write_atomically(RunPaths(self.folder).reward, export_record(best, self.store, self.config))
        self.store.set_meta("best", best.program.id)


def _problem(config: Config, demonstrations: Demonstrations | None) -> Problem:
    """Loads, splits and labels."""
    data = config.data
    if demonstrations is None:
        from grace_irl.demos import load

        demonstrations = load(data.demos, data.negatives)
    require_roles(demonstrations)
    demonstrations = split(demonstrations, data.held_out, config.seed)
    return label(demonstrations, data.label or demonstrations.metadata.label or "all")


def _checked(problem: Problem, config: Config) -> LogPi:
    """What an evaluation will need of the data, checked before anything is written."""
    require_both_sides(problem.train)
    return log_pi(problem, config.fitness.log_pi)


def _located(config: Config) -> Config:
    """Paths made absolute, so that the run can be resumed from anywhere; a Minari id stays as it is."""

    def located(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(Path(name).absolute()) if Path(name).exists() else name for name in names)

    data = config.data
    data = data.model_copy(update={"demos": located(data.demos), "negatives": located(data.negatives)})
    return config.model_copy(update={"data": data})


def _sandbox(config: Config) -> Sandbox:
    from grace_irl.sandbox import open_sandbox

    return open_sandbox(workers=config.sandbox.workers, allow_weak=config.sandbox.allow_weak)


def _closing(stack: ExitStack, proposer: Proposer) -> Proposer:
    close = getattr(proposer, "close", None)
    if close is not None:
        stack.callback(close)
    return proposer


def _require_absent(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder}: exists already; "
            f"expected a new folder for --out: choose another, or go on with --resume {folder}"
        )


def _require_compatible(began: Config, config: Config) -> None:
    """Refuses changes that would make the recorded part of the run another run."""
    before, after = _flat(began), _flat(config)
    for key, value in after.items():
        if value != before[key] and not key.startswith(CHANGEABLE):
            raise InputError(
                f"setting {key!r} was {before[key]!r} when the run began and is {value!r} now; "
                "expected only generations, stop rules and workers to change on --resume: start a new run"
            )


def _flat(config: Config) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in config.model_dump().items():
        flat |= {f"{key}.{name}": entry for name, entry in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def _create(folder: Path, config: Config, problem: Problem) -> None:
    """Makes the run's folder whole or not at all: beside its place, then renamed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        temporary.chmod(0o755)
        paths = RunPaths(temporary)
        write_atomically(paths.config, to_toml(config))
        with closing(Store(paths.database, create=True)) as store:
            store.set_problem(problem)
            store.set_meta("label", problem.rule)
        try:
            temporary.rename(folder)
        except OSError:
            _require_absent(folder)
            raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
