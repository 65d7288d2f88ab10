"""A proposer that writes threshold rewards on a vector, from the request's seed alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import numpy as np

from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request

SOURCE = '''"""Rewards component {index} above {threshold}."""


class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info

    def reward_fn(self, state):
        return float(state[{index}] > {threshold})
'''


class ScriptedProposer:
    """Draws a threshold, or moves the parent's; some answers fail, some are broken, some repeat."""

    def __init__(self, width: int = 3, *, delay: float = 0.0, troubles: bool = True) -> None:
        self.width = width
        self.delay = delay
        self.troubles = troubles
        self.calls = 0

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        self.calls += 1
        rng = np.random.default_rng(request.seed)
        # Later requests often answer first: what is told must not depend on it.
        await asyncio.sleep(self.delay * float(rng.random()))
        trouble = float(rng.random())
        if self.troubles and trouble < 0.05:
            return Proposal("", failure="no answer")
        if self.troubles and trouble < 0.1:
            return Proposal("class Reward(:", raw="broken")
        if self.troubles and trouble < 0.15:
            return Proposal(SOURCE.format(index=99, threshold=0.0), raw="out of range")
        if parents and parents[0].sketch:
            old = json.loads(parents[0].sketch)
            sketch = {
                "index": old["index"],
                "threshold": round(old["threshold"] + float(rng.normal(0, 0.2)), 2),
            }
        else:
            sketch = {"index": int(rng.integers(self.width)), "threshold": round(float(rng.normal(0, 1)), 2)}
        return Proposal(SOURCE.format(**sketch), sketch=json.dumps(sketch), raw="ok")
