"""A function or a class of a program: what the record of reuse is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Within = Literal["module", "class", "function"]


@dataclass(frozen=True)
class Definition:
    """One function or class, as the sandbox found it in a source. Where it stands does not tell two apart.

    Attributes:
        name: qualified, such as "near" or "Reward.near".
        digest: hash of its normalised syntax tree (16 hex digits).
        within: "module", "class" for a method, "function" where a function is around it, however far out.
        calls: places in the source that call it by its name: `near(…)`, `self.near(…)`, `Reward.near(…)`, its own
            body included. Calls at run time are not counted, and what the evaluation calls has none.
        first, last: its lines, from 1, decorators included.
    """

    name: str
    digest: str
    within: Within = "module"
    calls: int = 0
    first: int = field(default=0, compare=False)
    last: int = field(default=0, compare=False)
