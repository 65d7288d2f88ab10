"""Cleaning alone: a run that knows goal states and searches nothing, for several runs that share them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from grace_irl.demos.label_rule import RuleChoice
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.runs import labelling as labellings
from grace_irl.runs import proposers
from grace_irl.runs.config import Config
from grace_irl.runs.fit import Parts, labelled, new_labelling, notes_of, opened_sandbox, require_chat
from grace_irl.runs.folder import RunLock, RunPaths, create
from grace_irl.runs.labelling import Labelling
from grace_irl.runs.store import Store


def require_cleanable(config: Config, demonstrations: Demonstrations) -> Config:
    """Looks, before anything is written, at all that `clean` needs.

    Returns:
        The configuration with what a server was asked, for `clean`.

    Raises:
        InputError: a file of goal states that cannot be used, or nobody who can be asked for what it leaves out.
    """
    return _checked(config, new_labelling(config, demonstrations))


def clean(
    config: Config, folder: Path, demonstrations: Demonstrations, parts: Parts, checked: Config | None = None
) -> Demonstrations:
    """Demonstrations with their goal states as marks; asks for what nobody said, and goes on where it was ended.

    Args:
        config: of the runs that share them; their search does not matter.
        folder: of a run that is made, or that is there already: its goal states count, and no file any more.
        demonstrations: as loaded.
        parts: who is told, and what the user goes on with.
        checked: what `require_cleanable` gave; None: a server is asked here.

    Raises:
        InputError: as `require_cleanable`; no expert has a goal state.
        GraceError: answers that cannot be read, or nobody answers any more; what was answered is saved.
        Interrupted: by Ctrl-C; what was answered is saved.
    """
    paths = RunPaths(folder)
    if not paths.database.exists():
        labelling = new_labelling(config, demonstrations)
        checked = checked or _checked(config, labelling)
        create(folder, checked, labelling.problem(), labelling.answers)
    with RunLock(paths.lock), closing(Store(paths.database)) as store:
        kept = labellings.resumed(demonstrations, RuleChoice("goal", ""), folder, store, notes_of(store, parts))
        if kept.silent or not any(row.positives for row in store.trajectories()):
            with opened_sandbox(config) as sandbox:
                labelled(folder, checked or _checked(config, kept), kept, sandbox, store, parts)
    return labellings.marked(demonstrations, folder, lambda _: None)


def _checked(config: Config, labelling: Labelling) -> Config:
    """The configuration with what its proposer found out, where somebody has to be asked."""
    config = proposers.settled(config)
    if not labelling.silent:
        return config
    require_chat(labelling, config)
    return proposers.checked(config, labelling.problem())
