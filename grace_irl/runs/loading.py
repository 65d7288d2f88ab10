"""Demonstrations of a run: loaded, with a label rule, and split into training, validation and held-out data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from grace_irl.config import Config
from grace_irl.demos.label_rule import RuleChoice, require_roles_for, shown_rule, with_rule
from grace_irl.demos.split import set_aside, split
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.errors import InputError, NoSuchFileError
from grace_irl.evaluate.sizes import FEWEST
from grace_irl.methods.registry import method_of
from grace_irl.runs import labelling as labellings
from grace_irl.runs import proposers
from grace_irl.runs.data import load_data
from grace_irl.runs.labelling import Labelling, chosen_rule
from grace_irl.runs.recording import is_of_task
from grace_irl.runs.swaps import with_swaps


def require_demonstrations(config: Config) -> None:
    """Check that the configuration of a new run names demonstrations, if the method needs them.

    Raises:
        InputError: no demonstrations are named, negatives alone, or the recording of a run with a task is replayed
            without one. If the method also takes a task, the message mentions `--task`.
    """
    chosen = method_of(config)
    if config.data.negatives and not config.data.files:
        raise InputError(NEGATIVES_ALONE)
    if not chosen.needs.demonstrations:
        return
    _require_recorded_task(config)
    if config.data.files:
        return
    expected = "--demos PATH…, such as the folder that grace-irl example writes"
    if chosen.with_task is None:
        raise InputError(f"no demonstrations; expected {expected}")
    from grace_irl.tasks.task import shipped

    raise InputError(
        f"no demonstrations and no task; expected {expected}, or --task FILE, or --task with one of "
        f"{', '.join(shipped())}"
    )


NEGATIVES_ALONE = "negatives alone; expected experts, too: --demos PATH… or --experts PATH…"


def _require_recorded_task(config: Config) -> None:
    """Refuse to replay a run with a task on demonstrations alone: its answers are programs for the task."""
    recording = config.proposer.recording
    if recording and method_of(config).with_task is not None and is_of_task(Path(recording)):
        raise InputError(
            f"{recording} is of a run with a task; expected --task with the task's name or file, because this machine "
            "runs the code of its environment and score"
        )


def loaded(
    config: Config, demonstrations: Demonstrations | None, reason: str = "", *, new: bool
) -> tuple[Demonstrations, RuleChoice]:
    """Load the demonstrations, choose their label rule, and split them into training, validation and held-out data.

    If the settings ask for swaps, the swaps become further negative demonstrations (`runs.swaps`).

    Args:
        config: the configuration of the run.
        demonstrations: demonstrations in place of the configured ones.
        reason: reason for the label rule; "" for the reason that `chosen_rule` gives.
        new: whether the run is new. For a new run, a set beyond the memory limit becomes a sample.
    """
    data, needed = config.data, method_of(config).needs.demonstrations
    if demonstrations is None:
        if new or needed:
            require_demonstrations(config)
        if not data.files:
            return Demonstrations(method_of(config).states(config), ()), RuleChoice(
                "all", "there are no demonstrations"
            )
        try:
            demonstrations = load_data(data, new=new)
        except NoSuchFileError as error:
            if new and not config.proposer.recording:
                raise
            raise InputError(
                f"{error}, or name moved demonstrations again: --demos PATH…, or --experts and --negatives"
            ) from None
    if new:
        _require_recorded_task(config)
        if not needed and {item.role for item in demonstrations.items} == {"negative"}:
            raise InputError(NEGATIVES_ALONE)
    choice = chosen_rule(config, demonstrations) if needed else shown_rule(demonstrations)
    if reason:
        choice = replace(choice, reason=reason)
    if needed:
        require_roles_for(choice, demonstrations)
    found = split(with_rule(demonstrations, choice.rule), data.held_out if needed else 0.0, config.seed)
    found = set_aside(found, (data.validation or 0.0) if needed else 0.0, config.seed, FEWEST)
    return with_swaps(found, choice.rule) if data.swaps else found, choice


def new_labelling(config: Config, demonstrations: Demonstrations | None = None, reason: str = "") -> Labelling:
    """Load and split the demonstrations of a new run, and collect the goal states known so far.

    Args:
        config: the configuration of the run.
        demonstrations: demonstrations in place of the configured ones.
        reason: reason for the label rule, if an expansion or comparison has chosen the rule; else "".

    Raises:
        InputError: data that cannot be used.
    """
    found, choice = loaded(config, demonstrations, reason, new=True)
    return labellings.begun(found, choice, config.data.goals, proposers.recorded_goals(config.proposer))


def require_chat(labelling: Labelling, config: Config) -> None:
    """Require a proposer that can name the missing goal states: a model or a person (`Kind.chat`).

    Raises:
        InputError: another proposer, such as the synthesiser or the caller's own proposer.
    """
    found = proposers.PROPOSERS.get(config.proposer.name)  # None for a caller's own proposer
    if found is not None and found.chat is not None:
        return
    trajectory = labelling.silent[0].trajectory
    more = f" (nor of {len(labelling.silent) - 1} others)" if len(labelling.silent) > 1 else ""
    raise InputError(
        f"{trajectory.source or 'an expert trajectory'} ({trajectory.digest}): no goal states are marked{more}, "
        f"and proposer {config.proposer.name!r} cannot be asked; expected them for --label goal: "
        "ask a model (--llm-url, or --proposer manual), give them with --goals FILE, or use --label last"
    )
