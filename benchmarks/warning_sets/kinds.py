"""A data set with the warnings that a fit of it should print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from grace_irl.demos.trajectory import Demonstrations

Reason = Literal[
    "few-episodes",  # too few episodes to judge a reward
    "no-difference",  # the two sides do not differ
    "instruction-ignored",  # a reward that pays whatever the instruction says is all that the data teach
    "one-instruction",  # one instruction alone, although others would want other rewards
    "time",  # time, order or the length of an episode tells the sides apart
    "constant-field",  # a number that stays the same within an episode tells the sides apart
    "constants",  # constants of two simulators tell the sides apart
    "pixels",  # raw pixels given as vectors
    "memorised",  # a program can only memorise the training data
    "held-out-below",  # a reward is far worse on held-out episodes than on training data
    "negatives-far",  # negatives never come near what the reward pays
]
"""The fault of a data set that makes a reward wrong. It is also the code of the right warning."""

REASONS: tuple[Reason, ...] = get_args(Reason)


@dataclass(frozen=True)
class WarningSet:
    """Demonstrations, with the warnings that a careful expert would want to see about them.

    Attributes:
        name: short name, unique among all sets.
        demonstrations: experts and negatives. `metadata.label` says which expert states are positive.
        expected: the reasons of which any one is a right warning. Empty if a reward from these data is good.
    """

    name: str
    demonstrations: Demonstrations
    expected: frozenset[Reason]
