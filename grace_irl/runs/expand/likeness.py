"""Rollouts of a policy that look like an expert's: calling them negative would teach the wrong thing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.evaluate.resemblance import resemblance
from grace_irl.runs.config import Config
from grace_irl.runs.score import sandboxed_rewards

Floats = NDArray[np.float64]


def like_experts(
    reward: Path, played: Sequence[Trajectory], demonstrations: Demonstrations, config: Config
) -> list[bool]:
    """Whether each rollout looks like an expert's; the environment's own reward is not looked at.

    Rule "all": a rollout does whose states a classifier, which knows nothing of the reward, cannot tell from the
    experts' (`config.expand.alike`). Rules "last" and "goal": one does that the environment ended, as it ended experts'
    episodes in a goal state, in a state that the reward values as it values those last states.

    Rule "goal", and no expert's episode ended in a goal state: the experts went on behind the goal. A rollout looks
    like theirs if the environment ended it in a state that the reward values as their goal states; else if the reward
    takes some of its states for goals, and the classifier cannot tell these from the goal states of the experts with
    the same instruction.

    Args:
        reward: the file of the reward that the policy was trained on.
        played: the rollouts.
        demonstrations: whose experts they are compared with; for rule "goal" with their goal states marked.
        config: of the run.

    Raises:
        GraceError: the reward fails on a rollout.
    """
    experts = list(demonstrations.select(role="expert"))
    rule = config.data.label or demonstrations.metadata.label or "all"
    if rule == "all":
        return _alike([each.trajectory.states for each in experts], [each.states for each in played], config)
    if rule == "goal":
        experts = [each for each in experts if each.goals]
    ended = [each for each in experts if each.trajectory.terminated and _ends_in_goal(each, rule)]
    known = ended if ended or rule == "last" else experts
    if not known:
        return [False] * len(played)
    rewards = sandboxed_rewards(
        reward,
        reward.read_text(encoding="utf-8"),
        [*(each.trajectory for each in known), *played],
        workers=config.sandbox.workers,
        allow_weak=config.sandbox.allow_weak,
    )
    theirs, ours = rewards[: len(known)], rewards[len(known) :]
    if ended:
        goal = min(float(values[-1]) for values in theirs)
        return [each.terminated and bool(values[-1] >= goal) for each, values in zip(played, ours, strict=True)]
    return _at_goals(known, theirs, played, ours, config)


def _ends_in_goal(expert: Demonstration, rule: str) -> bool:
    return rule == "last" or expert.trajectory.num_steps in (expert.goals or ())


def _at_goals(
    experts: Sequence[Demonstration],
    theirs: Sequence[Floats],
    played: Sequence[Trajectory],
    ours: Sequence[Floats],
    config: Config,
) -> list[bool]:
    """Whether each rollout comes to a goal, where experts went on behind it."""
    marked = [np.array(each.goals) for each in experts]
    goal = min(np.fmax.reduce(values[at]) for values, at in zip(theirs, marked, strict=True))
    found = [each.terminated and bool(values[-1] >= goal) for each, values in zip(played, ours, strict=True)]
    known: dict[str, list[NDArray[np.generic]]] = {}
    for expert, at in zip(experts, marked, strict=True):
        known.setdefault(expert.trajectory.extra_info, []).append(expert.trajectory.states[at])
    for text, states in known.items():
        mine = [
            (number, each.states[values >= goal])
            for number, (each, values) in enumerate(zip(played, ours, strict=True))
            if each.extra_info == text and not found[number] and (values >= goal).any()
        ]
        same = _alike(states, [each for _, each in mine], config) if mine else []
        for (number, _), alike in zip(mine, same, strict=True):
            found[number] = alike
    return found


def _alike(experts: Sequence[NDArray[np.generic]], played: Sequence[NDArray[np.generic]], config: Config) -> list[bool]:
    """Whether the classifier cannot tell the states of each trajectory from the experts'."""
    return [bool(chance <= config.expand.alike) for chance in resemblance(experts, played, config.seed)]
