"""A fault of a source, for a person or a model to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ProblemKind = Literal["syntax", "rejected", "contract"]


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that a source may not do, or lacks.

    Attributes:
        line: where, from 1; 0 for the source as a whole.
        text: what it is and what to do instead.
        kind: the `Status` that a run of the source gives.
    """

    line: int
    text: str
    kind: ProblemKind = "rejected"

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text
