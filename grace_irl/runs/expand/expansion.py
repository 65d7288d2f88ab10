"""Start and resume of expansions (GRACE, section 4, phase 3).

An expansion improves a reward in rounds. Round 0 searches for a reward on the demonstrations alone, in `rounds/0/run`,
and its record is `rounds/0/round.json`. Each later round n trains a policy on the last reward, and adds the policy's
rollouts as negatives. If the reward is not good enough on these negatives, the round searches again. The folder
`rounds/n` contains:

- `training/`: checkpoints and log of the policy's training;
- `rollouts.parquet`: the rollouts that became negatives;
- `alike.parquet`: the rollouts that look like an expert's trajectory, so they do not become negatives;
- `run/`: the search with the new negatives, if the round searches again;
- `shaping/`: the run that reshapes the reward (makes it rise more steadily), if learning stalled;
- `round.json`: the record of the round, once it is complete.

Files are written atomically, and repeated work gives the same files. So a killed expansion resumes after its last
complete round.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from grace_irl.atomic import write_atomically
from grace_irl.config import Config, DataConfig, ExpandConfig
from grace_irl.contents import require_no_links
from grace_irl.demos.label_rule import with_rule
from grace_irl.errors import GraceError, InputError
from grace_irl.methods.registry import task_named
from grace_irl.rl.environments import without_folder
from grace_irl.runs import acting, proposers
from grace_irl.runs import fit as fits
from grace_irl.runs.acting import authorised
from grace_irl.runs.caller import Parts
from grace_irl.runs.config import flat, located, resolve, to_toml
from grace_irl.runs.data import load_data, with_sample
from grace_irl.runs.effects import changed, require_effect
from grace_irl.runs.expand.expanding import Expanding, place_of
from grace_irl.runs.expand.learner import Learner, PpoLearner
from grace_irl.runs.expand.likeness import NO_ENDS, recognises_success
from grace_irl.runs.expand.round import Round, read_round
from grace_irl.runs.folder import RunLock, RunPaths, claimed, default_folder, own, require_absent, reserved
from grace_irl.runs.labelling import chosen_rule, marked, with_label
from grace_irl.runs.resumption import require_changeable
from grace_irl.runs.run import Interrupted, Run
from grace_irl.runs.store import Store


def is_expansion(folder: Path) -> bool:
    """Whether a folder belongs to an expansion instead of a single run."""
    return (folder / "rounds").is_dir()


def rounds_of(folder: Path) -> tuple[Round, ...]:
    """Read the records of the complete rounds of an expansion, in order.

    Raises:
        InputError: a record that is damaged or from another version of grace-irl, or a folder that contains links.
    """
    require_no_links(folder)
    found: list[Round] = []
    while (done := read_round(place_of(folder, len(found)) / "round.json")) is not None:
        found.append(done)
    return tuple(found)


def start(config: Config, out: Path | None = None, parts: Parts = Parts(), learner: Learner | None = None) -> Run:
    """Start an expansion in a new folder, and return its result when it ends.

    If `config.expand.rounds` is 0, start a single run instead (`fit.start`).

    Args:
        config: the configuration of all runs. `config.expand` has the settings of the expansion.
        out: path of the new folder; None for `runs/<name of the demonstrations>-<time>`.
        parts: objects and callbacks of the caller.
        learner: trainer of the policies; None for PPO.

    Returns:
        The last run of the expansion, but with the expansion's folder, reward file and rounds, and with the tokens and
        the cost of all searches.

    Raises:
        InputError: settings, data, an environment or a folder that cannot be used. Nothing is written, except in the
            case that `fit.start` describes.
        GraceError: no valid program was found, a server is lost, or the reward fails. All results are saved.
        Interrupted: Ctrl-C. All results are saved.
    """
    if out is None:
        with reserved(lambda: default_folder(next(iter(config.data.files), "") or task_named(config))) as folder:
            return start(config, folder, parts, learner)
    if not config.expand.rounds:
        return fits.start(config, out, parts)
    folder = out
    require_absent(folder, but=(RunPaths(folder).lock.name,))
    demonstrations = parts.demonstrations or load_data(config.data, new=True)
    config = with_sample(config, demonstrations)
    choice = chosen_rule(proposers.settled(config), demonstrations)
    demonstrations = with_rule(demonstrations, choice.rule)
    config = located(config)
    learner = learner or _learner(config, parts)
    learner.check(demonstrations)
    if not recognises_success(demonstrations):
        (parts.note or _silent)(NO_ENDS)
    tests, parts = parts.rest, replace(parts, whole=folder, rest=False)
    with claimed(folder), _part_of(folder):
        run = fits.start(config, place_of(folder, 0) / "run", parts)
        config = resolve(RunPaths(run.folder).config)
        demonstrations = marked(demonstrations, run.folder, _silent)
        parts = replace(parts, reason=parts.reason or choice.reason)
        return Expanding(folder, config, demonstrations, replace(parts, rest=tests), learner).work(run)


def resume(
    folder: Path,
    flags: Mapping[str, object] | None = None,
    *,
    sets: tuple[str, ...] = (),
    parts: Parts = Parts(),
    learner: Learner | None = None,
    vouched: Config | None = None,
) -> Run:
    """Continue an expansion, or a run (`fit.resume`), as if it had never stopped.

    Args:
        folder: folder of the expansion or run.
        flags: changed settings by `section.key`. They have no effect on complete rounds.
        sets: changed settings as texts of the form `section.key=value`.
        parts: objects and callbacks of the caller.
        learner: trainer of the policies; None for PPO.
        vouched: configuration that a trusted comparison gives for this expansion; None for a separate expansion.

    Raises:
        InputError: a folder or data that cannot be used, a setting that must not change or lacks authorisation, or a
            folder that another process uses.
        GraceError: no valid program was found, a server is lost, or the reward fails. All results are saved.
        Interrupted: Ctrl-C. All results are saved.
    """
    if not is_expansion(folder):
        return fits.resume(folder, flags, sets=sets, parts=parts, vouched=vouched)
    with RunLock(RunPaths(folder).lock):
        began = _began(folder, flags, sets, parts, vouched)
        config = located(resolve(sets=sets, flags=flags, base=began))
        if vouched is None:
            require_effect(config, changed(began, config, sets, flags), "" if parts.proposer is not None else None)
        if _lasting(config.expand) != _lasting(began.expand):
            raise InputError(
                f"{folder}: settings of the expansion differ from those that it began with; expected no change but in "
                "the number of rounds: start a new one"
            )
        number = len(rounds_of(folder))
        if config.expand.rounds != began.expand.rounds and (place_of(folder, number) / "training").exists():
            raise InputError(
                f"{folder}: {config.expand.rounds} rounds, but the training of round {number} has begun, and its steps "
                f"depend on the number of rounds; expected {began.expand.rounds} rounds until this round is "
                f"complete: grace-irl fit {RunPaths(folder).resume}, and then a resume with --expand "
                f"{config.expand.rounds}"
            )
        words = [
            ("label", config.data.label, began.data.label),
            ("goals", _absolute(config.data), _absolute(began.data)),
        ]
        for name, now, before in words:
            if now != before:
                raise InputError(
                    f"{folder}: --{name} is {now!r} and was {before or 'not given'!r} when the expansion began; "
                    "expected no change: all rounds have the labels that it began with: start a new one"
                )
        if parts.demonstrations is None:
            fits.require_files(folder, config)
        demonstrations = parts.demonstrations or load_data(config.data)
        demonstrations = with_rule(demonstrations, chosen_rule(config, demonstrations).rule)
        learner = learner or _learner(config, parts)
        learner.check(demonstrations)
        first, done = place_of(folder, 0) / "run", rounds_of(folder)
        parts = replace(parts, whole=folder, reason=parts.reason or "as the expansion began")
        if done and config != began:  # else `fits.resume` checks and keeps the changes
            require_changeable(began, config.model_copy(update={"expand": began.expand}))
            _require_same_reshaping(folder, began, config)
            _keep(first, config)
        with _part_of(folder):
            run = (
                None if done else fits.resume(first, flags, sets=sets, parts=replace(parts, rest=False), vouched=config)
            )
            note = (parts.note or _silent) if done else _silent  # else `fits.resume` has shown the note
            work = Expanding(folder, config, marked(demonstrations, first, note), parts, learner)
            return work.work(run or work.again(done[-1]), done)


def _began(
    folder: Path,
    flags: Mapping[str, object] | None,
    sets: tuple[str, ...],
    parts: Parts,
    vouched: Config | None,
) -> Config:
    """The configuration that an expansion began with.

    Acting settings, which run code, read files or send prompts, must be authorised (`runs.acting`). If the
    authorisation changes the configuration, the changed configuration is saved.
    """
    paths = RunPaths(place_of(folder, 0) / "run")
    with closing(Store(paths.database)) as store:
        kept, in_memory = acting.kept(store.meta("token"), paths.database), parts.demonstrations is not None
        found = with_label(resolve(paths.config), store.meta("label"))
        began = located(authorised(found, str(folder), kept or {}, sets, flags, vouched=vouched, in_memory=in_memory))
    if began != found:
        _keep(place_of(folder, 0) / "run", began)
    return began


def _keep(first: Path, config: Config) -> None:
    """Save the settings of an expansion as the settings of its first run (round 0)."""
    paths = RunPaths(first)
    with closing(Store(paths.database)) as store:
        write_atomically(paths.config, to_toml(config))
        own(paths.database, store, config)


def _require_same_reshaping(folder: Path, began: Config, config: Config) -> None:
    """Refuse to reshape an expansion with complete rounds: its searches are over, and later ones have other negatives.

    Raises:
        InputError: `search.reshape` differs from the value that the expansion began with.
    """
    before, now = (flat(each).get("search.reshape") for each in (began, config))
    if now != before:
        raise InputError(
            f"{folder}: --reshape is {now} and was {before} when the expansion began; expected no change, since its "
            f"search is over: fit its demonstrations with --start-from {shlex.quote(str(RunPaths(folder).reward))} "
            "--reshape N --population 1 --generations 0"
        )


def _lasting(expand: ExpandConfig) -> ExpandConfig:
    """A copy with the settings that must not change. The file of an environment may move: only its name must stay."""
    return expand.model_copy(update={"rounds": 0, "trust": False, "env": without_folder(expand.env)})


def _absolute(data: DataConfig) -> str:
    """The absolute path of the file of goal states, or ""."""
    return str(Path(data.goals).absolute()) if data.goals else ""


def _silent(_: str) -> None:
    """A callback that ignores its message."""


def _learner(config: Config, parts: Parts) -> Learner:
    note = parts.note or (lambda _: None)
    return PpoLearner(
        config.expand,
        sandbox=config.sandbox,
        note=note,
        workplace=parts.workplace,
        device=parts.device,
    )


def _saved(folder: Path) -> bool:
    """Whether the first search of an expansion has begun, so that the expansion can be resumed."""
    return RunPaths(place_of(folder, 0) / "run").database.exists()


@contextmanager
def _part_of(folder: Path) -> Iterator[None]:
    """Put the expansion's folder into interruptions and errors of a run, so that the user resumes the expansion."""
    try:
        yield
    except Interrupted as interrupted:
        raise Interrupted(folder, interrupted.best) from None
    except KeyboardInterrupt:
        if not _saved(folder):
            raise
        raise Interrupted(folder, None) from None
    except InputError:
        raise
    except GraceError as error:
        if not _saved(folder):
            raise
        raise error.saved(RunPaths(folder).resume) from error
