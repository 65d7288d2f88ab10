"""Facts about a task's environment for prompts: its states, its actions, and episodes of random actions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Trajectory
from grace_irl.propose.views.registry import view_of
from grace_irl.rl.actions import value_counts
from grace_irl.tasks.random_episodes import STATES, random_episodes
from grace_irl.tasks.task import Task

TOKENS = 1_000
"""Maximum number of tokens of the statistics of episodes of random actions."""
MOST_RANGES = 16
"""Maximum number of numbers of an action whose ranges are listed one by one."""


@dataclass(frozen=True)
class TaskFacts:
    """Facts about a task's environment.

    Attributes:
        states: description of the states that programs get, and of actions if programs may read them.
        episodes: the longest episode in words; "" if the environment has no limit of its own.
        random: number and lengths of episodes of random actions, and statistics of their states.
    """

    states: str
    episodes: str
    random: str


def facts_of(task: Task) -> TaskFacts:
    """Make the environment, play episodes of random actions, and describe both.

    Raises:
        InputError: the environment cannot be made, or its states cannot be shown to a model.
    """
    episodes = random_episodes(task)
    shown = [Labelled(Demonstration(each, "expert"), np.ones(len(each.states), np.bool_)) for each in episodes]
    view = view_of(shown, task.metadata)
    environment, _ = task.make()
    with closing(environment):
        space, limit = environment.action_space, task.max_steps or _limit(environment)
    action = "" if task.sees == "state" else f" action is {_action(space, episodes[0])}."
    return TaskFacts(
        f"{view.about}{action}",
        f"An episode has at most {limit:,} steps." if limit else "",
        f"{_lengths(episodes)}\n{view.figures(TOKENS)}".strip(),
    )


def _limit(environment: Any) -> int:
    """Maximum number of steps of an episode, as the registration or MiniGrid's attribute states it; 0 without one."""
    spec = getattr(environment, "spec", None)
    limit = getattr(spec, "max_episode_steps", None) or getattr(environment.unwrapped, "max_steps", None)
    return limit if isinstance(limit, int) else 0


def _action(space: Any, episode: Trajectory) -> str:
    """The form of an action as programs get it, and its range: that of each number, unless all have the same."""
    shape = () if episode.actions is None else episode.actions.shape[1:]
    if not shape:
        count, start = getattr(space, "n", None), int(getattr(space, "start", 0))
        if count is None:
            return f"a number from {float(space.low):g} to {float(space.high):g}"
        return f"a whole number from {start} to {start + int(count) - 1}"
    found, counts = f"a numpy array of float64 with shape {shape}", value_counts(space)
    low, high = (space.low, space.high) if counts is None else (np.zeros_like(counts), counts - 1)
    whole = "" if counts is None else "whole numbers "
    bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    if len(set(bounds)) == 1:
        return f"{found}, {whole}from {low[0]:g} to {high[0]:g}"
    if len(bounds) > MOST_RANGES:
        return f"{found}, {whole}from {low.min():g} to {high.max():g} at most"
    each = ", ".join(f"action[{place}] from {start:g} to {end:g}" for place, (start, end) in enumerate(bounds))
    return f"{found}, {whole.rstrip()}{': ' if whole else ''}{each}"


def _lengths(episodes: Sequence[Trajectory]) -> str:
    """Number and lengths of episodes from `random_episodes`, which cuts long ones."""
    steps = sorted(each.num_steps for each in episodes)
    if steps[-1] >= STATES - 1:
        cut = f"{len(steps)} episodes, of which at most {STATES - 1} steps are read"
        return f"{cut}; the last states are the last ones read."
    length = f"{steps[0]} to {steps[-1]}" if steps[0] < steps[-1] else f"{steps[0]}"
    return f"{len(steps)} episodes of {length} steps."
