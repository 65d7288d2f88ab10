"""The choice among programs that training data cannot tell apart: the smallest one that follows instructions as well.

A small program may separate the training states and ignore the instruction. So size decides among such programs only if
contrast does not: the share of other instructions under which an expert's goal is no longer paid (`audit.contrast`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.contrast import Judge, by_instruction, swaps
from grace_irl.audit.subject import ProgramFailedError
from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Trajectory
from grace_irl.evaluate.separation import Separation
from grace_irl.propose.material import Workbench
from grace_irl.runs.auditing import in_simulator, rewards_on
from grace_irl.runs.record import Record

MOST_RIVALS = 8
"""Maximum number of programs whose contrast is compared: the smallest ones."""


def preferred(bench: Workbench, judge: Judge = in_simulator) -> Callable[[Sequence[Record]], Record]:
    """Return a function that chooses among programs that training data cannot tell apart.

    Its argument lists them, the smallest first. It returns the first one whose contrast on training experts is not
    lower than the highest one by more than the standard error of the paired differences per expert.
    """
    experts = [item for item in bench.problem.train if item.positive.any() and item.demonstration.role == "expert"]
    instructions = by_instruction(bench.problem.train)
    spoken = bench.problem.rule != "all" and any(instructions.values())

    def choose(records: Sequence[Record]) -> Record:
        found = [(record, _unpaid(bench, record, experts, instructions, judge)) for record in records[:MOST_RIVALS]]
        known = [(record, shares) for record, shares in found if len(shares)]
        if not known:
            return records[0]
        most = max((shares for _, shares in known), key=lambda shares: float(shares.mean()))
        return next(record for record, shares in known if _as_good(shares, most))

    return choose if spoken else lambda records: records[0]


def _unpaid(
    bench: Workbench,
    record: Record,
    experts: Sequence[Labelled],
    instructions: dict[tuple[str, str], list[str]],
    judge: Judge,
) -> NDArray[np.float64]:
    """For each expert with swaps, the share of them that leave its goals unpaid.

    Swaps that the episode fulfils as well are left out. Without a simulator all swaps count.
    """
    separation = Separation.of(record.evaluation)
    if separation is None or separation.threshold is None:
        return np.zeros(0)

    def run(changed: Sequence[Trajectory]) -> list[NDArray[np.float64]]:
        try:
            return rewards_on(bench, record.program, changed)
        except ProgramFailedError:  # a program that fails under another instruction follows none
            return [np.full(len(each.states), np.inf) for each in changed]

    made = swaps(experts, instructions, separation.threshold, run, judge)
    by_expert: dict[Labelled, list[bool]] = {}
    for swap in made:
        if swap.fulfilled is not True:
            by_expert.setdefault(swap.item, []).append(not swap.paid)
    return np.array([np.mean(each) for each in by_expert.values()])


def _as_good(shares: NDArray[np.float64], most: NDArray[np.float64]) -> bool:
    if len(shares) != len(most):
        return False
    worse = most - shares
    error = float(worse.std(ddof=1) / np.sqrt(len(worse))) if len(worse) > 1 else 0.0
    return float(worse.mean()) <= error
