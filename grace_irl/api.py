"""The Python interface of the package.

`fit` recovers a reward, `score` scores a reward file, and `comparison` reads the results of a comparison.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, get_args

from grace_irl.compare.folder import ComparisonFolder
from grace_irl.config import METHOD
from grace_irl.demos.files import open_set
from grace_irl.demos.given import Given, in_memory
from grace_irl.demos.memory import limited
from grace_irl.demos.opened import OpenSet
from grace_irl.demos.trajectory import Demonstrations, LabelRule
from grace_irl.errors import InputError
from grace_irl.keyworded import in_keywords
from grace_irl.keywords import FitSettings
from grace_irl.methods import registry
from grace_irl.notebook import frame
from grace_irl.propose.protocol import Proposer, require_proposer
from grace_irl.runs import score as scores
from grace_irl.runs.acting import worded
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import method_named, other_methods, resolve, settings_of
from grace_irl.runs.data import columns_of
from grace_irl.runs.effects import require_alone, require_effect, words
from grace_irl.runs.engine import Snapshot
from grace_irl.runs.expand import expansion
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import Interrupted, Run
from grace_irl.runs.score import Score
from grace_irl.settings import by_keyword
from grace_irl.states import KINDS
from grace_irl.work import Workplace
from grace_irl.work.workplace import Kind

if TYPE_CHECKING:
    from pandas import DataFrame


def _keywords() -> dict[str, Sequence[str]]:
    """Map from keywords to their choices; () for a keyword without fixed choices.

    The keywords are `kind`, `executor`, and the settings of all methods.
    """
    choices: dict[str, Sequence[str]] = {}
    for method in registry.names():
        with suppress(InputError):  # the package of a method cannot be loaded
            choices |= {each.keyword: each.choices for each in settings_of(method).values() if each.keyword}
    return {**choices, "kind": tuple(KINDS), "executor": get_args(Kind)}


@in_keywords(_keywords)
def fit(
    demos: Given = (),
    *,
    experts: Given = None,
    negatives: Given = (),
    out: str | Path | None = None,
    resume: str | Path | None = None,
    proposer: str | Proposer | None = None,
    config: str | Path | None = None,
    sets: str | Sequence[str] = (),
    replay: str | Path | None = None,
    listener: Callable[[Snapshot], None] | None = None,
    note: Callable[[str], None] | None = None,
    max_memory: int | str | None = None,
    executor: str | None = None,
    jobs: str | Path | None = None,
    ray_address: str | None = None,
    **settings: Unpack[FitSettings],
) -> Run:
    """Recover a reward from demonstrations, and write a report (`report.html`) into the run's folder.

    Args:
        demos: files, folders or Minari ids, or demonstrations in memory. The data give the role of each trajectory,
            "expert" or "negative".
        experts: files, folders or Minari ids, or any object that holds episodes. Such an object may be a list of
            arrays, an array of episodes, a data frame, episodes of Minari or imitation, or a buffer of
            Stable-Baselines3 (docs/python.md). All trajectories count as expert trajectories, whatever their role in
            the data.
        negatives: as `experts`, but all trajectories count as negatives.
        out: a new folder for the run; None: `runs/<name of the demonstrations>-<time>`.
        resume: folder of a run to continue, instead of a new run in `out`.
        proposer: the author of the programs: the name of a proposer, or a `Proposer` object.
        config: a TOML file of settings. Settings that run code, name a server or grant trust are refused
            (docs/security.md).
        sets: a setting of the form `section.key=value`, or several. They override `config`.
        replay: folder or exported recording of a run to repeat on the same demonstrations. The recorded answers replace
            the model.
        listener: function that is called with the state of the run (`Snapshot`), after each answer of the proposer and
            after the result of each program.
        note: function that is called with each line for the user, such as "no report could be written".
        max_memory: maximum memory for demonstrations and policies, in bytes or as `4G`; None: a share of the available
            memory.
        executor: place of the heavy work: "local", "folder" or "ray". If None, `jobs` and `ray_address` decide.
        jobs: folder that all machines share. Workers (`grace-irl work`) take jobs from this folder.
        ray_address: address of a Ray cluster: "auto", or HOST:PORT of its head.
        **settings: see `FitSettings`; they override `config` and `sets`.

    Returns:
        The run. `run.best.source` is the program, and `run.reward_path` its file.

    Raises:
        InputError: the data, a setting or a folder cannot be used. The message names keywords instead of flags.
        GraceError: no valid program was found.
        Interrupted: the user pressed Ctrl-C. The run is saved and can be resumed. The class is a subclass of
            KeyboardInterrupt.
    """
    if proposer is not None and not isinstance(proposer, str):
        require_proposer(proposer)
    for name, call in (("listener", listener), ("note", note)):
        if call is not None and not callable(call):
            raise InputError(f"{name}: {call!r}; expected a function of one argument")
    workplace = Workplace.of(executor, None if jobs is None else Path(jobs), ray_address)
    base = recorded_config(Path(replay)) if replay and resume is None else None
    file = Path(config) if config else None
    sets = (sets,) if isinstance(sets, str) else tuple(sets)
    if resume is not None:
        require_alone(out=out, config=config, replay=replay)
        method = method_named(Path(resume))
    else:
        method = resolve(file, sets, {"method": settings.get("method")}, base).method
    method = method or METHOD
    known = settings_of(method)
    keywords = {each.keyword for each in known.values()}
    for name in settings.keys() - keywords:
        if other := other_methods(f"--{name.replace('_', '-')}", method, repr):
            raise InputError(f"argument {name!r} has no effect with method {method!r}; expected it with method={other}")
    flags = {
        key: _plain(value, many=known[key].many)
        for key, value in by_keyword(known, settings).items()
        if value is not None
    }
    if isinstance(proposer, str):
        flags["proposer.name"] = proposer
    writer = None if isinstance(proposer, str) else proposer
    with limited(max_memory):
        held = _held(demos, experts, negatives, flags)
        if held is None:
            named = {"demos": _names(demos), "experts": _names(experts), "negatives": _names(negatives)}
            flags |= {f"data.{name}": paths for name, paths in named.items() if paths}
        if note is not None and (said := workplace.said()):
            note(said)
        parts = Parts(demonstrations=held, proposer=writer, listener=listener, note=note, workplace=workplace)
        try:
            if resume is not None:
                run = expansion.resume(Path(resume), flags, sets=sets, parts=parts)
            else:
                resolved = worded(file, sets, flags, base)
                if held is not None and resolved.data.sample and held.sampled is None:
                    raise InputError(
                        f"--sample {resolved.data.sample} with demonstrations in memory; expected their files, of "
                        "which a sample is read, or no --sample"
                    )
                require_effect(resolved, words(resolved, file, sets, flags), "" if writer is not None else None)
                run = expansion.start(resolved, Path(out) if out else None, parts)
        except Interrupted as interrupted:
            _report(interrupted.folder, note, held)
            interrupted.folder = interrupted.folder.absolute()
            raise
        _report(run.folder, note, held)
        # The caller may go to another folder, and still use the run.
        return replace(run, folder=run.folder.absolute(), reward_path=run.reward_path.absolute())


@in_keywords(_keywords)
def score(
    reward: str | Path,
    demos: Given = (),
    *,
    experts: Given = None,
    negatives: Given = (),
    kind: str = "",
    label: LabelRule | None = None,
    log_pi: str = "constant",
    calibration: str = "file",
    workers: int | None = None,
    allow_weak_sandbox: bool = False,
    max_memory: int | str | None = None,
) -> Score:
    """Score a reward file on demonstrations, in the sandbox.

    Args:
        reward: the reward file.
        demos: files, folders or Minari ids, or demonstrations in memory.
        experts: files, folders or Minari ids, or any object that holds episodes, as for `fit`. All count as
            expert trajectories.
        negatives: as `experts`, but all trajectories count as negatives.
        kind: kind of state, such as "grid"; "": the kind that fits the data.
        label: rule that selects the positive expert states; None: the rule that the reward file names. If the file
            names no rule, None selects the rule that fits the data.
        log_pi: source of the log-probability of actions in the discriminator: "constant", "uniform", "recorded" or
            "cloned".
        calibration: source of the discriminator's scale and offset. With "file" they come from the reward file, with
            "fitted" they are fitted to these demonstrations, and with "none" they are 1 and 0.
        workers: number of sandbox processes; None: one per core.
        allow_weak_sandbox: whether to run the program even if this machine cannot confine it.
        max_memory: maximum memory for demonstrations in bytes or as `4G`; None: a share of the available memory.

    Raises:
        InputError: a file or the demonstrations cannot be used.
        GraceError: the program fails or returns a value that is not a finite number.
    """
    with limited(max_memory):
        held: Demonstrations | OpenSet | None = in_memory(demos, experts, negatives, kind=kind)
        if held is None:
            held = open_set(_names(demos), _names(negatives), experts=_names(experts), kind=kind)
        return scores.score(
            Path(reward),
            held,
            rule=label,
            choice=log_pi,
            calibration=calibration,
            workers=workers,
            allow_weak=allow_weak_sandbox,
        )


def comparison(folder: str | Path) -> DataFrame:
    """The results of a comparison as a pandas table, with a row for each method, seed and environment.

    Args:
        folder: results folder of `grace-irl compare`. The command may still be running.

    Raises:
        InputError: the folder has no results, or pandas is not installed.
    """
    from grace_irl.compare.table import TEXTS

    place = ComparisonFolder(Path(folder)).csv
    try:
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{place}: {error.strerror}; expected the folder of a comparison with a result") from None
    head, *rows = csv.reader(text.splitlines())
    kind = {name: str if name in TEXTS else float for name in head}
    table = [{name: kind[name](cell) if cell else None for name, cell in zip(head, row, strict=True)} for row in rows]
    return frame(table, head)


def _report(folder: Path, note: Callable[[str], None] | None, demonstrations: Demonstrations | None) -> None:
    from grace_irl.report.write import report_of_fit

    report_of_fit(folder, note or _warn, demonstrations)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=6)  # The warning points to the caller of `fit`.


def _held(demos: Given, experts: Given, negatives: Given, flags: Mapping[str, object]) -> Demonstrations | None:
    """The demonstrations of `fit`, if they are in memory; None if all arguments name files."""
    names = {f"data.{name}" for name in ("kind", "state_columns", "episode_column")}
    data = resolve(flags={key: value for key, value in flags.items() if key in names}).data
    return in_memory(demos, experts, negatives, kind=data.kind, columns=columns_of(data))


def _plain(value: object, *, many: bool) -> object:
    """The value of a setting, with paths as texts.

    If the setting holds several values (`many`), the result is a tuple, also for a single text or path.
    """
    if many and isinstance(value, str | Path | Iterable):
        return _names(value)
    return str(value) if isinstance(value, Path) else value


def _names(paths: str | Path | Iterable[object] | None) -> tuple[str, ...]:
    if isinstance(paths, str | Path):
        return (str(paths),)
    return () if paths is None else tuple(str(path) for path in paths)
