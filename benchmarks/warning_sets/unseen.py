"""Twenty small data sets on which the rules for warnings were never tried: ten at fault, ten sound.

Whoever wrote them did not know the rules. Each function says why a reward from its data would be wrong, or why not. The
same call always gives the same set.
"""

from __future__ import annotations

from collections.abc import Iterator

from warning_sets.kinds import WarningSet
from warning_sets.unseen_faulty import FAULTY
from warning_sets.unseen_sound import SOUND


def sets() -> Iterator[WarningSet]:
    """Every set, built when its turn comes."""
    for build in (*FAULTY, *SOUND):
        yield build()
