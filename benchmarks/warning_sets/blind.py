"""Twenty sets that nobody who works on the warnings has seen: ten with a fault, ten without one."""

from __future__ import annotations

from collections.abc import Iterator

from warning_sets.blind_faulty import FAULTY
from warning_sets.blind_sound import SOUND
from warning_sets.kinds import WarningSet


def sets() -> Iterator[WarningSet]:
    """The faulty sets, then the sound ones, each built in its turn."""
    for build in (*FAULTY, *SOUND):
        yield build()
