"""Which states are positive (S_e): the rules of METHODS.md, "Clean"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Split, Trajectory
from grace_irl.errors import InputError


@dataclass(frozen=True, eq=False)
class Labelled:
    """A demonstration whose states are marked.

    Attributes:
        positive: `(T+1,)` True where the state belongs to S_e, False where it belongs to S_n.
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
        """What searches and proposers may see."""
        return self.split("train")

    @property
    def held_out(self) -> tuple[Labelled, ...]:
        """What only the host sees."""
        return self.split("held_out")

    def __iter__(self) -> Iterator[Labelled]:
        return iter(self.items)


def positive_states(demonstration: Demonstration, rule: LabelRule) -> NDArray[np.bool_]:
    """Marks the states of one demonstration; shape `(T+1,)`.

    "all": every expert state is positive. "last": only an expert's final state is. "goal": the states listed
    in `Demonstration.goals`. A negative trajectory has no positive state.

    Raises:
        InputError: rule "goal" for an expert without goals, or goals outside the trajectory.
    """
    count = len(demonstration.trajectory.states)
    positive = np.zeros(count, dtype=np.bool_)
    if demonstration.role == "negative":
        return positive
    if rule == "all":
        positive[:] = True
    elif rule == "last":
        positive[-1] = True
    else:
        where = demonstration.trajectory.source or "an expert trajectory"
        if demonstration.goals is None:
            raise InputError(
                f"{where}: no goal states are marked; expected some for --label goal: mark them or use last"
            )
        outside = [index for index in demonstration.goals if not 0 <= index < count]
        if outside:
            raise InputError(f"{where}: goal state {outside[0]} of {count} states; expected 0 to {count - 1}")
        positive[list(demonstration.goals)] = True
    return positive


def label(demonstrations: Demonstrations, rule: LabelRule) -> Problem:
    """Marks every state of every demonstration by one rule."""
    items = tuple(Labelled(replace(item, split=item.side), positive_states(item, rule)) for item in demonstrations)
    return Problem(demonstrations.metadata, rule, items)
