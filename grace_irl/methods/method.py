"""The protocol of a method: everything that tells one way of recovering a reward from another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grace_irl.methods.account import Figures


@dataclass(frozen=True)
class Panel:
    """A section of the report that a method adds.

    Attributes:
        title: its heading.
        parts: paragraphs and tables, in order. The report escapes every text.
    """

    title: str
    parts: Sequence[str | Figures]
