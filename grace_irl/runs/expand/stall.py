"""A sign that a policy has stopped learning before it does what experts do."""

from __future__ import annotations

from collections.abc import Sequence

LEARNT = 0.5
"""Share of rollouts like an expert's at which a policy learns well enough."""
BEGUN = 0.1
"""Share of them from which on a policy that is paid more and more is left to go on."""
RISE = 1.5
"""How many times the first look's return the last one's must be."""


def stalls(paid: Sequence[float | None], alike: int, rollouts: int) -> bool:
    """Whether learning stalls, by what the policy was paid and by its rollouts; no true reward is looked at.

    Args:
        paid: mean return in training before each look, of the reward that was trained on; None: no episode ended.
        alike: rollouts that look like an expert's.
        rollouts: all of them.
    """
    share = alike / rollouts if rollouts else 0.0
    if share >= LEARNT:
        return False
    known = [value for value in paid if value is not None]
    if share < BEGUN or len(known) < 2:
        return True
    first, last = known[0], known[-1]
    return last < (RISE * first if first > 0 else 0.0)
