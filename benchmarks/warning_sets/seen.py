"""The half of the exam made by somebody who knows the rules: ten sets at fault, and ten sound ones."""

from __future__ import annotations

from collections.abc import Iterator

from warning_sets.kinds import WarningSet
from warning_sets.seen_faulty import FAULTY
from warning_sets.seen_sound import SOUND


def sets() -> Iterator[WarningSet]:
    """All twenty sets, those at fault first."""
    for make in (*FAULTY, *SOUND):
        yield make()
