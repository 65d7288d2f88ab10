"""In which ways a program that only pays for goals can pay for progress, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["steps", "half steps", "inverse"]

FORMS: tuple[Form, ...] = ("steps", "half steps", "inverse")
WEIGHTS = (0.4, 0.2, 0.1)
"""Of progress: all less than the 0.5 that a guess earns, the least that a program pays for a goal."""


@dataclass(frozen=True)
class Shaping:
    """How nearness is measured, and what it is worth.

    Attributes:
        near: the most that progress is worth.
        form: nearness n steps away from a thing, on a grid of h rows and w columns: "steps" is 1 - n / (h + w);
            "half steps" the same, counted from halfway to the cell ahead of the agent, so that a turn counts, too;
            "inverse" is 1 / (1 + n), which falls off fast.
    """

    near: float
    form: Form

    @property
    def ahead(self) -> bool:
        """Whether the agent's heading counts."""
        return self.form == "half steps"


def shapings(headed: bool) -> tuple[Shaping, ...]:
    """All of them, in the order of trying.

    Args:
        headed: whether the agent has a heading.
    """
    known = [Shaping(near, form) for near in WEIGHTS for form in FORMS]
    return tuple(one for one in known if headed or not one.ahead)
