"""Warnings about a reward, and the audit that holds them."""

from __future__ import annotations

from dataclasses import dataclass

from grace_irl.audit.contrast import Contrast


@dataclass(frozen=True)
class RewardWarning:
    """A warning that a reward may be wrong.

    Attributes:
        code: name of the kind of warning, for example "few-episodes". docs/warnings.md lists all codes.
        found: what the audit found, as a clause without a full stop.
        advice: what the user can do, as a clause without a full stop.
    """

    code: str
    found: str
    advice: str

    @property
    def line(self) -> str:
        """The warning as one line for the terminal."""
        return f"warning ({self.code}): {self.found}; {self.advice}"


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes:
        warnings: the warnings. Warnings about the metrics of the reward come first.
        contrast: whether the reward follows the instruction; None if the experts have no instruction or only one, if
            the program fails on changed episodes, or with label rule "all" (all expert states are positive).
    """

    warnings: tuple[RewardWarning, ...] = ()
    contrast: Contrast | None = None
