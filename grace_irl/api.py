"""The Python interface: fit, score, and what they give."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack, cast

from grace_irl.config import METHOD
from grace_irl.demos.memory import limited
from grace_irl.demos.trajectory import Demonstrations, LabelRule
from grace_irl.errors import InputError
from grace_irl.keywords import FitSettings, Paths
from grace_irl.propose.protocol import Proposer
from grace_irl.runs import fit as fits
from grace_irl.runs import score as scores
from grace_irl.runs.acting import worded
from grace_irl.runs.config import method_named, other_method, resolve, settings_of
from grace_irl.runs.effects import require_effect, words
from grace_irl.runs.engine import Snapshot
from grace_irl.runs.expand import expansion
from grace_irl.runs.recording import recorded_config
from grace_irl.runs.run import Interrupted, Run
from grace_irl.runs.score import Score
from grace_irl.settings import by_keyword


def fit(
    demos: Paths | Demonstrations = (),
    *,
    negatives: Paths = (),
    out: str | Path | None = None,
    resume: str | Path | None = None,
    proposer: str | Proposer | None = None,
    config: str | Path | None = None,
    sets: Sequence[str] = (),
    replay: str | Path | None = None,
    listener: Callable[[Snapshot], None] | None = None,
    note: Callable[[str], None] | None = None,
    max_memory: int | str | None = None,
    **settings: Unpack[FitSettings],
) -> Run:
    """Recovers a reward from demonstrations, and leaves a report (`report.html`) in the run's folder.

    Args:
        demos: files, folders or Minari ids, roles from the files; or demonstrations in memory.
        negatives: more of them, negative whatever they say.
        out: the run's folder, new; None: `runs/<name of the set>-<time>`.
        resume: the folder of a run to go on with, in place of `out`.
        proposer: a registered name, or an object that proposes.
        config: a TOML file of settings; it names no server, no code and no trust (docs/security.md).
        sets: `section.key=value` settings, stronger than the file.
        replay: a recorded run (its folder, or a recording made by export): its search, its answers, no model, on the
            demonstrations that it was recorded on.
        listener: called after each answer and each result with where the run stands.
        note: called with one line where the user should know of something (a server went away, a prompt waits,
            no report could be written).
        max_memory: what demonstrations and policies may take, in bytes or as `4G`; None: a share of what is available.
        **settings: see `FitSettings`; stronger than `config` and `sets`.

    Returns:
        The run; `run.best.source` is the program, `run.reward_path` the file.

    Raises:
        InputError: data, settings or a folder that cannot be used.
        GraceError: no valid program was found.
        Interrupted: by Ctrl-C (a KeyboardInterrupt); the run is saved and can be resumed.
    """
    base = recorded_config(Path(replay)) if replay and resume is None else None
    file = Path(config) if config else None
    if resume is not None:
        method = method_named(Path(resume))
    else:
        method = resolve(file, sets, {"method": settings.get("method")}, base).method
    method = method or METHOD
    known = settings_of(method)
    keywords = {each.keyword for each in known.values()}
    for name in settings.keys() - keywords:
        if other := other_method(f"--{name.replace('_', '-')}", method):
            raise InputError(
                f"argument {name!r} has no effect with method {method!r}; expected it with method={other!r}"
            )
    flags = {
        key: _names(cast(Paths, value)) if known[key].many else str(value) if isinstance(value, Path) else value
        for key, value in by_keyword(known, settings).items()
        if value is not None
    }
    in_memory = demos if isinstance(demos, Demonstrations) else None
    if isinstance(proposer, str):
        flags["proposer.name"] = proposer
    writer = None if isinstance(proposer, str) else proposer
    if not isinstance(demos, Demonstrations) and (names := _names(demos)):
        flags["data.demos"] = names
    if extra := _names(negatives):
        flags["data.negatives"] = extra
    parts = fits.Parts(demonstrations=in_memory, proposer=writer, listener=listener, note=note)
    with limited(max_memory):
        try:
            if resume is not None:
                run = expansion.resume(Path(resume), flags, sets=tuple(sets), parts=parts)
            else:
                resolved = worded(file, sets, flags, base)
                require_effect(resolved, words(resolved, file, sets, flags), "" if writer is not None else None)
                run = expansion.start(resolved, Path(out) if out else None, parts)
        except Interrupted as interrupted:
            _report(interrupted.folder, note, in_memory)
            raise
        _report(run.folder, note, in_memory)
        return run


def score(
    reward: str | Path,
    demos: Paths | Demonstrations,
    *,
    negatives: Paths = (),
    kind: str = "",
    label: LabelRule | None = None,
    log_pi: str = "constant",
    calibration: str = "file",
    workers: int | None = None,
    allow_weak_sandbox: bool = False,
    max_memory: int | str | None = None,
) -> Score:
    """Scores a reward file on demonstrations, in the sandbox; see `grace_irl.runs.score.score`, and `fit` of memory."""
    if not isinstance(demos, Demonstrations):
        from grace_irl.demos import load

        demos = load(_names(demos), _names(negatives), kind=kind, max_memory=max_memory)
    return scores.score(
        Path(reward),
        demos,
        rule=label,
        choice=log_pi,
        calibration=calibration,
        workers=workers,
        allow_weak=allow_weak_sandbox,
    )


def _report(folder: Path, note: Callable[[str], None] | None, demonstrations: Demonstrations | None) -> None:
    from grace_irl.report.write import report_of_fit

    report_of_fit(folder, note or _warn, demonstrations)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=5)  # the caller of `fit`


def _names(paths: Paths) -> tuple[str, ...]:
    if isinstance(paths, str | Path):
        return (str(paths),)
    return tuple(str(path) for path in paths)
