"""Labels of states (S_e, the positive ones): the label rules (docs/fitness.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.goals import Goals, goals_of
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Split, Trajectory
from grace_irl.errors import InputError


@dataclass(frozen=True, eq=False)
class Labelled:
    """A demonstration whose states are marked.

    Attributes:
        positive: `(T+1,)` True if the state belongs to S_e, False if it belongs to S_n.
    """

    demonstration: Demonstration
    positive: NDArray[np.bool_]

    @property
    def trajectory(self) -> Trajectory:
        return self.demonstration.trajectory

    @property
    def task(self) -> str:
        return self.demonstration.task


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a fit is about: labelled demonstrations, train and held out. Labels never leave the host.

    Attributes:
        metadata: of the set.
        rule: the rule that marked the states.
        items: every labelled demonstration, in the order of the demonstrations.
    """

    metadata: Metadata
    rule: LabelRule
    items: tuple[Labelled, ...]

    def split(self, split: Split) -> tuple[Labelled, ...]:
        """The items of one split, in order; what states none is for training."""
        return tuple(item for item in self.items if item.demonstration.side == split)

    @property
    def train(self) -> tuple[Labelled, ...]:
        """The side that searches and proposers may see."""
        return self.split("train")

    @property
    def held_out(self) -> tuple[Labelled, ...]:
        """The side that only the host sees."""
        return self.split("held_out")

    def __iter__(self) -> Iterator[Labelled]:
        return iter(self.items)


def positive_states(demonstration: Demonstration, rule: LabelRule, goals: Goals | None = None) -> NDArray[np.bool_]:
    """Marks the states of one demonstration; shape `(T+1,)`.

    "all": every expert state is positive. "last": only an expert's final state is. "goal": the states that
    `goals` lists, else those that the data mark; every other state of an expert is negative then. A negative
    trajectory has no positive state.

    Args:
        goals: from a trajectory's digest to 1-based indices, possibly none; for rule "goal".

    Raises:
        InputError: rule "goal" for an expert without goals, or goals outside the trajectory.
    """
    trajectory = demonstration.trajectory
    positive = np.zeros(len(trajectory.states), dtype=np.bool_)
    if demonstration.role == "negative":
        return positive
    if rule == "all":
        positive[:] = True
    elif rule == "last":
        positive[-1] = True
    else:
        found = goals_of(demonstration, goals)
        if found is None:
            raise InputError(
                f"{trajectory.source or 'an expert trajectory'} ({trajectory.digest}): no goal states are marked; "
                "expected their numbers, or [] for none, for --label goal: mark them or use last"
            )
        positive[[index - 1 for index in found]] = True
    return positive


def unmarked(demonstration: Demonstration) -> Labelled:
    """A demonstration of which nobody knows yet which states are positive: none is marked."""
    nothing = np.zeros(len(demonstration.trajectory.states), dtype=np.bool_)
    return Labelled(replace(demonstration, split=demonstration.side), nothing)


def label(demonstrations: Demonstrations, rule: LabelRule, *, goals: Goals | None = None) -> Problem:
    """Marks every state of every demonstration by one rule.

    Args:
        goals: goal states of expert trajectories by digest, 1-based, () for none; only for rule "goal". Where
            they are silent of a trajectory, the data's own marks count.

    Raises:
        InputError: as `positive_states`; goals for another rule; no expert trajectory with a goal state.
    """
    if goals is not None and rule != "goal":
        raise InputError(f"goal states are given, which --label {rule} does not use; expected --label goal")
    # What states no split is for training from here on.
    items = tuple(
        Labelled(replace(item, split=item.side), positive_states(item, rule, goals)) for item in demonstrations
    )
    if rule == "goal":
        experts = sum(item.demonstration.role == "expert" for item in items)
        if experts and not any(item.positive.any() for item in items):
            raise InputError(
                f"none of {experts} expert trajectories has a goal state; expected at least one: "
                "correct the goal states, or use --label last"
            )
    return Problem(demonstrations.metadata, rule, items)
