"""Plays a whole run in the zygote, on a program and states of our own, before any fork.

The interpreter rewrites bytecode as it warms up, fills its caches of methods, and lays out its free lists. What the
zygote did already, no child has to do on a page that it must first copy: 40 % of a child's page faults.
"""

from __future__ import annotations

import numpy as np

from grace_irl.sandbox import memory
from grace_irl.sandbox.child import prepare, score
from grace_irl.sandbox.failure import ProgramFailure
from grace_irl.sandbox.job import AnswerMap
from grace_irl.sandbox.parcel import Content, Views, seal_parcel
from grace_irl.sandbox.wire import SOURCE_AT, Job

_TIMES = 20  # CPython 3.11 rewrites a function at its 8th call, and each place in it after a few more
_STATES = 16

_PROGRAM = """
import numpy as np


class Reward:
    def __init__(self, extra_info=None):
        self.words = (extra_info or "").split()
        self.count = 0

    def reward_fn(self, state):
        self.count += 1
        value = float(state[0]) if state.ndim == 1 else float(np.sum(state[:, :, 0] == 1))
        return value / self.count + len(self.words)
"""


def rehearse() -> None:
    """Parse, check, compile and score, a few times over, for a vector and for a grid."""
    for states in (np.ones((_STATES, 4)), np.ones((_STATES, 3, 3, 3), np.uint8)):
        parcel = seal_parcel([Content(states, None, b"go there")], states.dtype)
        for _ in range(_TIMES):
            _play(parcel)
        memory.close(parcel)


def _play(parcel: int) -> None:
    source = _PROGRAM.encode()
    job = Job.plan(len(source), 1, _STATES)
    fd = memory.create(job.size)
    memory.write_all(fd, job.pack(), 0)
    memory.write_all(fd, source, SOURCE_AT)
    answer = AnswerMap(fd)
    candidate = prepare(answer.source().decode(), checks=True)
    if isinstance(candidate, ProgramFailure):
        raise RuntimeError(candidate.message)
    score(candidate, _PROGRAM, Views(parcel), answer)
    memory.close(fd)
