"""Twenty more data sets, by an author who knew none of the rules that make a warning."""

from __future__ import annotations

from collections.abc import Iterator

from warning_sets import fresh_faulty, fresh_sound
from warning_sets.kinds import WarningSet


def sets() -> Iterator[WarningSet]:
    """Ten sets whose rewards would be wrong, then ten whose rewards would be good, each built in its turn."""
    for build in (*fresh_faulty.FAULTY, *fresh_sound.SOUND):
        yield build()
