"""Conversion of experts' trajectories to observations and actions of the learner's environment.

Methods that learn from experts' actions need this conversion: GAIL, AIRL and behaviour cloning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Trajectory
from grace_irl.errors import InputError
from grace_irl.programs.parts import shaped
from grace_irl.rl.actions import value_counts
from grace_irl.rl.method import PolicyProblem


@dataclass(frozen=True, eq=False)
class ExpertEpisode:
    """One episode of an expert.

    Attributes:
        observations: the policy's observations of the expert's states, `(T+1, ...)`.
        actions: the expert's actions, all within the action space, `(T, ...)`.
        ended: whether the episode ended at the last observation, by a terminal state or a time limit. False if only
            the recording ended.
    """

    observations: NDArray[Any]
    actions: NDArray[Any]
    ended: bool


def expert_episodes(problem: PolicyProblem, method: str, *, absorbing: bool = True) -> tuple[ExpertEpisode, ...]:
    """Convert the expert trajectories of the training data. Trajectories without a step are left out.

    The label rule of the demonstrations decides which expert states are positive examples. Under the rule "goal", these
    are the marked goal states, and this function cuts each trajectory after its last goal state. A trajectory that was
    checked for goal states and has none is left out. A trajectory that nobody has checked yet is used whole. Under any
    other rule, all trajectories are used whole.

    Actions of a `MultiBinary` space become floats, other discrete actions 64-bit integers. Continuous actions are
    clipped to the action space, like the learner's actions. Otherwise a discriminator could recognise experts by
    actions outside the space.

    Args:
        problem: the problem, which provides demonstrations, observations and spaces.
        method: the method's name, for messages.
        absorbing: whether to append padding steps to episodes that reach a terminal state before a fixed horizon
            (`grace_irl.rl.horizon`). It has no effect without a fixed horizon. Methods that imitate actions pass False,
            because the actions of padding steps are random.

    Raises:
        InputError: no expert trajectory with a step is left, an expert has no actions, or observations or actions do
            not fit the environment.
    """
    experts = problem.demonstrations.select(role="expert", split="train")
    followed = map(_to_goal, experts) if problem.demonstrations.metadata.label == "goal" else _whole(experts)
    usable = [trajectory for trajectory in followed if trajectory is not None and trajectory.num_steps]
    if experts and not usable and problem.demonstrations.metadata.label == "goal":
        raise InputError(
            f"{method}: none of {len(experts)} experts on the training side takes a step to a goal state; expected at "
            "least one: correct the goal states, or use --label last"
        )
    if not usable:
        raise InputError(
            f"{method}: no expert demonstration with a step on the training side; expected at least one: "
            "add a file with role 'expert'"
        )
    without = [trajectory for trajectory in usable if trajectory.actions is None]
    if without:
        raise InputError(
            f"{method}: {without[0].source or 'an expert'} has no actions; expected one per step: "
            f"give demonstrations with actions, or leave {method} out of --methods"
        )
    with closing(problem.make_env()) as environment:
        space, actions = environment.observation_space, environment.action_space
    found = [_episode(trajectory, problem, actions, method) for trajectory in usable]
    if problem.horizon:
        from grace_irl.rl.horizon import absorbed

        generator = np.random.default_rng(0)
        for number, (episode, trajectory) in enumerate(zip(found, usable, strict=True)):
            terminal = absorbing and trajectory.terminated
            observations, taken = absorbed(
                episode.observations, episode.actions, problem.horizon, terminal, actions, generator
            )
            found[number] = ExpertEpisode(observations, taken, len(taken) == problem.horizon)
    _check_observations(found, usable, space, method)
    return tuple(found)


def _whole(experts: Iterable[Demonstration]) -> Iterator[Trajectory]:
    return (item.trajectory for item in experts)


def _to_goal(item: Demonstration) -> Trajectory | None:
    """An expert's trajectory up to its last goal state; the whole trajectory if nobody has checked it for goal states.

    The result is None if the trajectory was checked and has no goal state.
    """
    trajectory = item.trajectory
    if item.goals is None or max(item.goals, default=-1) == trajectory.num_steps:
        return trajectory
    if not item.goals:
        return None
    steps = max(item.goals)
    return replace(
        trajectory,
        states=trajectory.states[: steps + 1],
        actions=None if trajectory.actions is None else trajectory.actions[:steps],
        rewards=None if trajectory.rewards is None else trajectory.rewards[:steps],
        log_probs=None if trajectory.log_probs is None else trajectory.log_probs[:steps],
        screenshots=trajectory.screenshots[: steps + 1],
        terminated=False,
        truncated=False,
    )


def _episode(trajectory: Trajectory, problem: PolicyProblem, space: Any, method: str) -> ExpertEpisode:
    """One trajectory as an episode, with the problem's observations and with actions within the action space."""
    from gymnasium.spaces import MultiBinary

    taken: NDArray[Any] = np.asarray(trajectory.actions)
    where = trajectory.source or "an expert"
    counts = value_counts(space)
    if counts is not None:
        start = getattr(space, "start", 0)
        taken = shaped(taken, counts.shape)
        if taken.shape[1:] != counts.shape or not (
            np.equal(np.mod(taken, 1), 0).all() and (start <= taken).all() and (taken < start + counts).all()
        ):
            raise InputError(
                f"{method}: {where} has actions of shape {taken.shape[1:]} from {taken.min()} to {taken.max()}; "
                f"expected whole numbers in {space}: the demonstrations are of another environment"
            )
        # The distribution that Stable-Baselines3 has for MultiBinary actions reads floats only.
        taken = taken.astype(np.float32 if isinstance(space, MultiBinary) else np.int64)
    else:
        taken = shaped(taken, space.shape)
        if taken.shape[1:] != space.shape:
            raise InputError(
                f"{method}: {where} has actions of shape {taken.shape[1:]}; expected {space.shape} for {space}: "
                "the demonstrations are of another environment"
            )
        taken = np.clip(taken, space.low, space.high).astype(space.dtype)
    return ExpertEpisode(problem.observe(trajectory), taken, trajectory.terminated or trajectory.truncated)


def _check_observations(found: Sequence[ExpertEpisode], of: Sequence[Trajectory], space: Any, method: str) -> None:
    for episode, trajectory in zip(found, of, strict=True):
        if episode.observations.shape[1:] != space.shape:
            raise InputError(
                f"{method}: {trajectory.source or 'an expert'} gives observations of shape "
                f"{episode.observations.shape[1:]}; expected {space.shape}, as the environment gives them: "
                "the demonstrations are of another environment or view"
            )
