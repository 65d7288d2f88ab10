"""The later sets of the exam: ten faulty ones and ten sound ones."""

from __future__ import annotations

from collections.abc import Iterator

from warning_sets.kinds import WarningSet
from warning_sets.later_faulty import FAULTY
from warning_sets.later_sound import SOUND


def sets() -> Iterator[WarningSet]:
    """The ten faulty sets, then the ten sound ones, each built in its turn."""
    return (build() for build in (*FAULTY, *SOUND))
