"""Labels of states. A label rule marks each state as positive (in set S_e) or negative (in set S_n).

The two sets define the fitness of a reward program (docs/fitness.md).
"""

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
    """A demonstration with a label for each state.

    Attributes:
        demonstration: the demonstration.
        positive: `(T+1,)` booleans, True for a state in S_e and False for a state in S_n.
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
    """The input of a fit: labelled demonstrations in three splits (training, validation and held-out).

    Labels never leave the host process, so reward programs in the sandbox cannot see them.

    Attributes:
        metadata: metadata of the set.
        rule: label rule of the set.
        items: labelled demonstrations, in the order of the set.
    """

    metadata: Metadata
    rule: LabelRule
    items: tuple[Labelled, ...]

    def split(self, split: Split) -> tuple[Labelled, ...]:
        """The items of one split, in order. Items without a stated split belong to "train"."""
        return tuple(item for item in self.items if item.demonstration.side == split)

    @property
    def train(self) -> tuple[Labelled, ...]:
        """The training items. Proposers, which write new reward programs, may see them."""
        return self.split("train")

    @property
    def validation(self) -> tuple[Labelled, ...]:
        """The validation items. A run uses them to choose the size of its program. No proposer sees their states."""
        return self.split("validation")

    @property
    def held_out(self) -> tuple[Labelled, ...]:
        """The held-out items. No proposer sees their states."""
        return self.split("held_out")

    def __iter__(self) -> Iterator[Labelled]:
        return iter(self.items)


def positive_states(demonstration: Demonstration, rule: LabelRule, goals: Goals | None = None) -> NDArray[np.bool_]:
    """Label the states of one demonstration: a `(T+1,)` boolean array, True for positive states.

    Rule "all": every state of an expert is positive. Rule "last": only the final state of an expert is positive. Rule
    "goal": only the goal states of an expert are positive. Goal states come from `goals`, or from the data if the
    trajectory is not in `goals`. A negative trajectory has no positive state.

    Args:
        demonstration: the demonstration.
        rule: the label rule.
        goals: map from a trajectory's digest (a hash of its content) to the 1-based indices of its goal states; () for
            no goal state. Only rule "goal" uses the map.

    Raises:
        InputError: rule "goal" for an expert without marked goal states, or an index outside the trajectory.
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
                "expected their numbers for --label goal ([] if there are none): mark them, or use --label last"
            )
        positive[[index - 1 for index in found]] = True
    return positive


def unmarked(demonstration: Demonstration) -> Labelled:
    """A labelled demonstration without positive states, for data with unknown labels."""
    nothing = np.zeros(len(demonstration.trajectory.states), dtype=np.bool_)
    return Labelled(replace(demonstration, split=demonstration.side), nothing)


def label(demonstrations: Demonstrations, rule: LabelRule, *, goals: Goals | None = None) -> Problem:
    """Label every state of every demonstration by one rule.

    Args:
        demonstrations: the set.
        rule: the label rule.
        goals: map from an expert trajectory's digest to the 1-based indices of its goal states; () for no goal state.
            Give a map for rule "goal" only. A trajectory that is not in the map keeps the goal states from the data.

    Raises:
        InputError: the errors of `positive_states`; `goals` with a rule other than "goal"; or rule "goal" if no expert
            trajectory of the set has a goal state.
    """
    if goals is not None and rule != "goal":
        raise InputError(f"goal states are given, which --label {rule} does not use; expected --label goal")
    # From here on, an item without a stated split belongs to "train".
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
