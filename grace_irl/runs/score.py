"""Scoring of a reward file on demonstrations, in the sandbox."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.components import in_order
from grace_irl.demos.label_rule import RuleChoice, choose_rule, require_roles_for
from grace_irl.demos.labels import Labelled, Problem, label
from grace_irl.demos.memory import EPISODE_BYTES
from grace_irl.demos.opened import OpenSet
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Trajectory
from grace_irl.errors import InputError, require_one_of
from grace_irl.evaluate.calibration import Calibration, calibrate
from grace_irl.evaluate.columns import LabelColumns, columns, flatten, require_both_sides
from grace_irl.evaluate.discriminator import Objective
from grace_irl.evaluate.episodes import EpisodeLabels
from grace_irl.evaluate.log_pi import log_pi
from grace_irl.evaluate.metrics import metrics_of, monotonicity, ranking, task_metrics
from grace_irl.evaluate.separation import Metrics
from grace_irl.programs.export import calibration_of, label_of
from grace_irl.rewards.file import RewardFile, load_reward
from grace_irl.rewards.runner import SandboxedRunner
from grace_irl.runs.parts import EVERY, rewarded
from grace_irl.sandbox import open_sandbox
from grace_irl.sandbox.protocol import Limits, Sandbox

Floats = NDArray[np.float64]

CALIBRATIONS = ("file", "fitted", "none")
"""Sources of the discriminator's scale and offset."""

BESIDE = 48
"""Bytes of memory that a score needs per state, if the set is read a few trajectories at a time (`_outlines`).

The bytes hold the state's reward, labels and true reward, and copies of these values for sorting."""


@dataclass(frozen=True)
class RoleScore:
    """Statistics of the rewards of one group of states.

    Attributes:
        group: "expert, positive", "expert, other" or "negative".
        trajectories: number of trajectories with such states.
        states: number of states.
        mean, least, most: mean, minimum and maximum of the rewards.
        right: share of states that the discriminator D classifies correctly: D > 0.5 for positive states, D <= 0.5 for
            the others.
    """

    group: str
    trajectories: int
    states: int
    mean: float
    least: float
    most: float
    right: float


@dataclass(frozen=True)
class Score:
    """The score of a reward on a set of demonstrations.

    Attributes:
        metrics: metrics over all tasks.
        tasks: metrics per task.
        roles: statistics of the rewards, one entry per group of states.
        scale, offset: calibration of the discriminator, D = sigmoid(scale * reward + offset - log pi). Here log pi is
            the log-probability of the action, minus its mean over all steps.
        calibration: origin of scale and offset: "file" (the reward file), "fitted" (to these demonstrations) or "none".
        threshold: uncalibrated reward above which the accuracies in `metrics` and `tasks` count a state as positive.
        threshold_from: origin of the threshold: "file" (the reward file) or "these data" (best on the demonstrations).
        kind: line about the kind of the states, if the arrays fit several kinds, such as grids and images; else "".
        label: the rule for positive expert states.
        label_reason: the reason for this rule.
        monotonicity: mean Kendall tau of reward against time along expert trajectories, or None.
        trajectories: number of scored trajectories.
    """

    metrics: Metrics
    tasks: dict[str, Metrics]
    roles: tuple[RoleScore, ...]
    scale: float
    offset: float
    calibration: str
    threshold: float
    threshold_from: str
    kind: str
    label: LabelRule
    label_reason: str
    monotonicity: float | None
    trajectories: int


def score(
    reward: Path,
    demonstrations: Demonstrations | OpenSet,
    *,
    rule: LabelRule | None = None,
    choice: str = "constant",
    calibration: str = "file",
    sandbox: Sandbox | None = None,
    workers: int | None = None,
    allow_weak: bool = False,
    limits: Limits = Limits(),
    show: Callable[[str], None] = lambda _: None,
) -> Score:
    """Score a reward file on demonstrations. The file's code runs only in the sandbox.

    The accuracies use the threshold in the file. In an exported file, this is the best threshold on the training data.
    If the file has no threshold, the accuracies use the best threshold on these demonstrations.

    Args:
        reward: the reward file.
        demonstrations: the demonstrations. All are scored, whether training or held-out. An open set beyond its memory
            limit is read a few trajectories at a time; only rewards, labels and true rewards of its states are kept.
        rule: the rule for positive expert states; None for the rule in the reward file. If the file names no rule, the
            data decide (`grace_irl.demos.label_rule`).
        choice: source of log pi, the log-probability of actions in the discriminator: "constant", "uniform", "recorded"
            or "cloned" (`grace_irl.evaluate.log_pi`).
        calibration: source of scale and offset: the reward "file", "fitted" to these demonstrations, or "none" for
            D = sigmoid(reward - log pi). With "file", scale and offset are fitted if the file does not contain them.
        sandbox: an open sandbox; None to open a new one.
        workers: number of processes of a new sandbox.
        allow_weak: whether a new sandbox may have tier E, in which nothing protects the user's files.
        limits: limits of one run of the program.
        show: callback for a line about the progress on a set beyond its memory limit.

    Raises:
        InputError: a file or demonstrations that cannot be used.
        GraceError: the program fails, or returns something other than a finite number.
    """
    require_one_of("--label", rule, get_args(LabelRule))
    require_one_of("--calibration", calibration, CALIBRATIONS)
    file = load_reward(reward)
    held = demonstrations.held() if isinstance(demonstrations, OpenSet) else demonstrations
    if held is not None:
        held = in_order(held, file.fields, "demonstrations")
        chosen, problem = _labelled(held, rule, file.source)
    elif choice != "constant":
        raise InputError(
            f"--log-pi {choice}: the demonstrations take more than the memory limit, and log pi needs all of them at "
            "once; expected constant: raise --max-memory, or score fewer files"
        )
    with ExitStack() as stack:
        sandbox = sandbox or stack.enter_context(open_sandbox(workers=workers, allow_weak=allow_weak))
        takes_action = sandbox.inspect(file.source).takes_action
        if held is not None:
            rewards = _run(file, [item.trajectory for item in problem.items], sandbox, limits)
            by_digest = {item.trajectory.digest: each for item, each in zip(problem.items, rewards, strict=True)}
        else:
            assert isinstance(demonstrations, OpenSet)
            held, by_digest = _outlines(demonstrations, file, sandbox, limits, show)
            chosen, problem = _labelled(held, rule, file.source)
    items = problem.items
    # all steps count for log pi, also those of held-out trajectories
    everything = [replace(each, demonstration=replace(each.demonstration, split="train")) for each in items]
    pi = log_pi(replace(problem, items=tuple(everything)), choice)
    rows = columns(items, pi, takes_action=takes_action)
    if rows is None:
        raise InputError(f"{reward}: the program rewards transitions, and no trajectory has one")
    values = flatten(items, by_digest, takes_action=takes_action)
    objective = Objective.of(values, rows)
    own = calibration_of(file.source) if calibration == "file" else None
    if calibration == "none":
        fitted, said = Calibration(offset=0.0 - pi.mean), "none"
    elif own is not None:
        fitted, said = Calibration(*own), "file"
    else:
        fitted, said = calibrate(objective), "fitted"
    ranked = ranking(values, rows.positive, file.threshold)
    episodes = EpisodeLabels.of(items, problem.rule, takes_action=takes_action)
    of_tasks = EpisodeLabels.by_task(items, problem.rule, takes_action=takes_action)
    metrics = metrics_of(values, rows, objective.value(fitted.scale, fitted.offset), ranked, episodes)
    return Score(
        metrics=metrics,
        tasks=task_metrics(values, rows, fitted, ranked.threshold, metrics, of_tasks),
        roles=_roles(items, values, rows, fitted),
        scale=fitted.scale,
        offset=fitted.offset,
        calibration=said,
        threshold=ranked.threshold,
        threshold_from="these data" if file.threshold is None else "file",
        kind=held.choice.line if held.choice is not None else "",
        label=problem.rule,
        label_reason=chosen.reason,
        monotonicity=monotonicity(
            by_digest[item.trajectory.digest][takes_action:] for item in items if item.demonstration.role == "expert"
        ),
        trajectories=len(items),
    )


def _labelled(demonstrations: Demonstrations, rule: LabelRule | None, source: str) -> tuple[RuleChoice, Problem]:
    """Choose the label rule, and label the demonstrations. Check that each task has positive and negative states."""
    chosen = choose_rule(demonstrations, rule or "", label_of(source))
    require_roles_for(chosen, demonstrations)
    problem = label(demonstrations, chosen.rule)
    require_both_sides(problem.items)
    return chosen, problem


def _run(file: RewardFile, trajectories: Sequence[Trajectory], sandbox: Sandbox, limits: Limits) -> list[Floats]:
    """The rewards `(T+1,)` of each trajectory.

    The trajectories come from readers. So they need no conversion, unlike the objects that callers give to
    `RewardFile.rewards`.
    """
    for each in trajectories:
        file.reads.require(each.state_kind, each.states, "demonstrations")
    runner = SandboxedRunner(file.source, str(file.path), sandbox=sandbox, reads=file.reads, limits=limits)
    return runner.rewards(trajectories)


def _outlines(
    every: OpenSet, file: RewardFile, sandbox: Sandbox, limits: Limits, show: Callable[[str], None]
) -> tuple[Demonstrations, dict[str, Floats]]:
    """Compute the rewards of a set that is read a few trajectories at a time.

    Returns:
        The demonstrations, with outlines of trajectories (`Trajectory.outline`), and the rewards `(T+1,)` by digest.

    Raises:
        BeyondLimitError: even the metrics of the rewards need more memory than the limit of the set.
    """

    def rewards(part: Sequence[Trajectory]) -> list[Floats]:
        ordered = in_order(every.of([Demonstration(each, "expert") for each in part]), file.fields, "demonstrations")
        return _run(file, [item.trajectory for item in ordered], sandbox, limits)

    items: list[Demonstration] = []
    by_digest: dict[str, Floats] = {}
    shown = time.monotonic()
    for part, found in rewarded(every.each(every.empty), rewards, sandbox.workers):
        states = sum(map(len, found.values()))
        every.memory.take(EPISODE_BYTES * len(part) + BESIDE * states, f"{every.name}: a score of all states")
        items += [replace(item, trajectory=item.trajectory.outline()) for item in part]
        by_digest |= found
        if time.monotonic() - shown > EVERY:
            shown = time.monotonic()
            show(f"scored {len(items):,} trajectories")
    return every.of(items), by_digest


def _roles(items: Sequence[Labelled], values: Floats, rows: LabelColumns, fitted: Calibration) -> tuple[RoleScore, ...]:
    """Statistics of the rewards by group of states.

    Args:
        items: the labelled demonstrations.
        values: rewards `(n,)`, one per row.
        rows: labels and log pi of n rows. A row is a state or, if the program takes actions, a transition.
        fitted: calibration of the discriminator.
    """
    expert = rows.row_mask(np.array([item.demonstration.role == "expert" for item in items]))
    groups = (
        ("expert, positive", rows.positive, True),
        ("expert, other", expert & ~rows.positive, False),
        ("negative", ~expert, False),
    )
    starts = np.cumsum(rows.lengths) - rows.lengths
    found = []
    for name, mask, above in groups:
        if mask.any():
            part = values[mask]
            pi = 0.0 if rows.log_pi is None else rows.log_pi[mask]
            right = (fitted.scale * part + fitted.offset - pi > 0) == above
            numbers = (float(part.mean()), float(part.min()), float(part.max()), float(right.mean()))
            trajectories = int(np.logical_or.reduceat(mask, starts[rows.lengths > 0]).sum())
            found.append(RoleScore(name, trajectories, len(part), *numbers))
    return tuple(found)
