"""The audit at the end of a run. It takes the best program, the demonstrations and the sandbox from the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.audit import audit
from grace_irl.audit.contrast import Judge
from grace_irl.audit.subject import ProgramFailedError, Subject
from grace_irl.audit.warning import Audit, RewardWarning
from grace_irl.demos.trajectory import Trajectory
from grace_irl.evaluate.rewards import MemoryCache, RewardSource
from grace_irl.evaluate.separation import Separation
from grace_irl.programs.program import Program
from grace_irl.propose.material import Workbench
from grace_irl.rl.fulfilled import does_alike, fulfilments
from grace_irl.runs.beginnings import Seen
from grace_irl.runs.record import Record
from grace_irl.runs.store import Store

ANOTHER = "choose another program (show lists them), or bring such episodes for training"
KEY = "audit"
"""Key of the audit in the table `meta` of run.db."""


def audited(bench: Workbench, best: Record, judge: Judge | None = None) -> Audit | None:
    """Audit the best program of a run.

    The result is None if the method does not separate expert from negative states, so that the evaluation contains no
    `Separation`. The result is also None if the `Separation` has no threshold, as in runs of older versions.

    Args:
        bench: data and sandbox of the run.
        best: the program, with its evaluation on all data.
        judge: function that decides whether an episode fulfils an instruction. By default, BabyAI's simulator decides.
    """
    separation = Separation.of(best.evaluation)
    if separation is None or separation.threshold is None:
        return None
    trajectories = [item.trajectory for item in bench.problem]

    def run(changed: Sequence[Trajectory]) -> list[NDArray[np.float64]]:
        return rewards_on(bench, best.program, changed)

    known = bench.rewards.get(best.program.id, [each.digest for each in trajectories])
    missing = [each for each in trajectories if each.digest not in known]
    try:
        known |= dict(zip((each.digest for each in missing), run(missing), strict=True)) if missing else {}
    except ProgramFailedError as error:  # on episodes for validation, with which no program is scored
        return Audit((RewardWarning("fails", f"the program fails on validation episodes: {error}", ANOTHER),), None)
    return audit(Subject(bench.problem, best.program, separation, known, run, judge or in_simulator, does_alike))


def with_seen(found: Audit, seen: Seen | None) -> Audit:
    """Add a warning if held-out trajectories were training data of a run whose programs this run began with."""
    if seen is None:
        return found
    said = (
        f"{seen.trajectories} of {seen.held_out} held-out episodes were training data of {seen.origin}, whose programs "
        "this run began with, so the held-out figures are no test of them"
    )
    advice = "begin with the same --seed, --held-out and demonstrations as that run, or hold out new episodes"
    return replace(found, warnings=(*found.warnings, RewardWarning("held-out-seen", said, advice)))


def rewards_on(bench: Workbench, program: Program, changed: Sequence[Trajectory]) -> list[NDArray[np.float64]]:
    """Run a program on any trajectories, without the run's cache. Return the rewards `(T+1,)` of each trajectory.

    Raises:
        ProgramFailedError: the program fails.
    """
    source = RewardSource(changed, bench.sandbox, MemoryCache(), bench.limits)
    try:
        outcome, rewards = source.run(program, source.digests)
    finally:
        source.close()
    if outcome.status != "ok":
        raise ProgramFailedError(outcome.message)
    return [rewards[each.digest] for each in changed]


def in_simulator(trajectory: Trajectory, instructions: Sequence[str], state: int) -> list[bool | None]:
    """Decide which instructions an episode of BabyAI fulfils at or before the state with index `state`; see `Judge`."""
    return [None if found is None else found.by(state) for found in fulfilments(trajectory, instructions)]


def store_audit(store: Store, found: Audit) -> None:
    """Store an audit with the run."""
    store.keep(KEY, found)


def stored_audit(store: Store) -> Audit | None:
    """The stored audit of a run's best program.

    The result is None for a run of an older version, and for a run that has not ended. A resumed run drops the audit of
    its earlier end when it finds another best program.

    Raises:
        InputError: a damaged audit.
    """
    return store.kept(KEY, Audit)
