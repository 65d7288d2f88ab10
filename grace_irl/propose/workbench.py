"""The workbench of a proposer, beside requests and parents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from grace_irl.demos.labels import Problem
from grace_irl.evaluate.rewards import MemoryCache, RewardCache
from grace_irl.sandbox.protocol import Limits, Sandbox


def _silent(_: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True, eq=False)
class Workbench:
    """The data, the sandbox and the memory of a run.

    Attributes:
        problem: labelled demonstrations; proposers look at `problem.train` only.
        sandbox: for what programs say of themselves (debug functions).
        seed: of the run.
        limits: of one run in the sandbox.
        rewards: what programs that were scored gave each state, by trajectory digest.
        folder: of the run, for files that belong to it.
        note: tells the user something in one line.
    """

    problem: Problem
    sandbox: Sandbox
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    rewards: RewardCache = field(default_factory=MemoryCache)
    folder: Path = Path()
    note: Callable[[str], None] = _silent
