"""From a configuration to a reward: starts and resumes runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.demos import require_roles
from grace_irl.demos.labels import Problem, label
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError
from grace_irl.evaluate.columns import require_both_sides
from grace_irl.evaluate.log_pi import LogPi, log_pi
from grace_irl.methods import method
from grace_irl.propose.protocol import Proposer
from grace_irl.propose.workbench import Workbench
from grace_irl.runs import proposers
from grace_irl.runs.config import Config, ProposerConfig, resolve, to_toml
from grace_irl.runs.engine import Snapshot
from grace_irl.runs.folder import create, require_absent
from grace_irl.runs.lock import RunLock
from grace_irl.runs.paths import RunPaths, default_folder
from grace_irl.runs.run import Run
from grace_irl.runs.session import Session
from grace_irl.runs.store import Store, trajectory_rows
from grace_irl.sandbox.protocol import Limits, Sandbox
from grace_irl.version import __version__

CHANGEABLE = (
    "search.generations",
    "stop.",
    "sandbox.workers",
    "sandbox.allow_weak",
    "model.url",
    "model.concurrency",
    "model.patience",
    "model.timeout",
    "model.price_",
)


@dataclass(frozen=True)
class Parts:
    """What a caller brings along in place of what the configuration names, and who is told of the run.

    Attributes:
        demonstrations: in place of `config.data.demos`.
        proposer: in place of the one that `config.proposer` names.
        sandbox: in place of one opened (and closed) here.
        listener: is shown where the run stands: after each answer and after each result.
        note: is told, in one line each, what the user should know (a server went away, a prompt waits).
    """

    demonstrations: Demonstrations | None = None
    proposer: Proposer | None = None
    sandbox: Sandbox | None = None
    listener: Callable[[Snapshot], None] | None = None
    note: Callable[[str], None] | None = None


def start(config: Config, out: Path | None = None, parts: Parts = Parts()) -> Run:
    """Begins a run in a new folder and works on it to its end.

    Args:
        config: everything about the run.
        out: the run's folder; None: `runs/<name of the set>-<time>`.
        parts: see `Parts`.

    Raises:
        InputError: settings, data or folder that cannot be used; nothing is written then.
        GraceError: no valid program was found, or a model's server is gone; the run is saved.
        Interrupted: by Ctrl-C; the run is saved.
    """
    method(config.method)
    if parts.proposer is not None:
        named = ProposerConfig(name=type(parts.proposer).__name__)
        config = config.model_copy(update={"proposer": named})
    config = proposers.settled(_located(config))
    if parts.proposer is None:
        proposers.kind(config.proposer.name)
    folder = out or default_folder(config.data.demos[0] if config.data.demos else "")
    require_absent(folder)
    problem = _problem(config, parts.demonstrations)
    pi = _checked(problem, config)
    if parts.proposer is None:
        config = proposers.checked(config, problem)
    with ExitStack() as stack:
        sandbox = parts.sandbox or stack.enter_context(_sandbox(config))
        create(folder, config, problem)
        stack.enter_context(RunLock(RunPaths(folder).lock))
        store = stack.enter_context(closing(Store(RunPaths(folder).database)))
        store.add_event("started", f"grace-irl {__version__}, sandbox tier {sandbox.tier}")
        return _work(folder, config, problem, pi, sandbox, store, parts)


def resume(
    folder: Path, flags: Mapping[str, object] | None = None, *, sets: tuple[str, ...] = (), parts: Parts = Parts()
) -> Run:
    """Goes on with a run as if it had never stopped.

    Args:
        folder: of the run.
        flags, sets: settings to change, as for `resolve`: generations, stop rules, workers, the server's address.
        parts: as for `start`.

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
        problem = _problem(config, parts.demonstrations)
        if trajectory_rows(problem) != store.trajectories():
            raise InputError(
                f"{folder}: the demonstrations are not those that the run began with; "
                "expected the same files, unchanged: start a new run"
            )
        pi = _checked(problem, config)
        if parts.proposer is None:
            config = proposers.checked(config, problem)
        sandbox = parts.sandbox or stack.enter_context(_sandbox(config))
        if config != began:
            write_atomically(paths.config, to_toml(config))
        store.set_final_fates([], 0, 0)
        store.add_event("resumed", f"grace-irl {__version__}, sandbox tier {sandbox.tier}")
        return _work(folder, config, problem, pi, sandbox, store, parts)


def _work(
    folder: Path, config: Config, problem: Problem, pi: LogPi, sandbox: Sandbox, store: Store, parts: Parts
) -> Run:
    limits = Limits(wall_s=config.sandbox.wall_s, cpu_s=config.sandbox.cpu_s, memory_mb=config.sandbox.memory_mb)

    def note(text: str) -> None:
        store.add_event("note", text)
        if parts.note is not None:
            parts.note(text)

    bench = Workbench(problem, sandbox, config.seed, limits, store, folder, note)
    proposer = parts.proposer or proposers.proposer(config, bench)
    return Session(folder, config, problem, pi, proposer, sandbox, limits, store, parts.listener).work()


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
