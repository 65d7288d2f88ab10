"""The test of a run's best program on the demonstrations that the run's sample left out (docs/demonstrations.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grace_irl.audit.rest import MORE, of_rest
from grace_irl.audit.subject import ProgramFailedError
from grace_irl.audit.warning import Audit
from grace_irl.config import Config
from grace_irl.demos.goals import Goals, goals_of
from grace_irl.demos.labels import Labelled, positive_states
from grace_irl.demos.memory import give_back
from grace_irl.demos.trajectory import Demonstration, LabelRule, Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.evaluate.rest import Rest, RestTotals
from grace_irl.evaluate.separation import Separation
from grace_irl.propose.material import Workbench
from grace_irl.runs.auditing import rewards_on, store_audit
from grace_irl.runs.beginnings import trained_of
from grace_irl.runs.config import flat
from grace_irl.runs.data import open_data
from grace_irl.runs.labelling import Labelling
from grace_irl.runs.parts import EVERY, rewarded
from grace_irl.runs.run import Interrupted, Run
from grace_irl.runs.store import Store

KEY = "rest"
"""Key of the metrics outside the sample (`Rest`) in the table `meta` of run.db."""

Floats = NDArray[np.float64]


class _GoalsError(InputError):
    """A goal state of the user's file that is outside its trajectory."""


def with_rest(
    run: Run,
    bench: Workbench,
    labelling: Labelling,
    config: Config,
    store: Store,
    again: str,
    note: Callable[[str], None],
    show: Callable[[str], None],
) -> Run:
    """Test the best program of a run on the demonstrations outside the run's sample.

    The files of all demonstrations are read again. The metrics and their warnings are stored, and a complete test is
    not repeated. Nothing happens if the run has no sample, if the caller gave the demonstrations in memory, or if the
    evaluation of the program has no threshold.

    Args:
        run: the run, whose search has ended.
        bench: data and sandbox of the run.
        labelling: the sample with its goal states, and those that a file gave for other trajectories.
        config: the configuration of the run, which names the files.
        store: the store of the run.
        again: the arguments that resume the run, or the expansion or comparison that contains it.
        note: callback for a line to the user, which is stored with the run.
        show: callback for a line about progress, which is not stored.

    Raises:
        Interrupted: Ctrl-C. The run is saved.
    """
    demonstrations = labelling.demonstrations
    separation, sampled = Separation.of(run.best.evaluation), demonstrations.sampled
    if separation is None or separation.threshold is None or sampled is None or not config.data.files:
        return run
    before = stored_rest(store)
    if before is not None and not before.failure:
        return _told(run, before, separation, MORE, store)
    give_back()  # the memory that the search used
    left = sampled.of_trajectories - sampled.trajectories
    note(f"testing the best program on the {left:,} trajectories outside the sample")
    constant = flat(config).get("fitness.log_pi", "constant") == "constant"
    totals = RestTotals(bench.problem.rule, separation, run.best.program.takes_action, constant)
    totals.trained = {each.origin: frozenset(each.digests) for each in trained_of(store)}
    # `_others` also counts the trajectories of the sample as copies, because it reads them again. The count starts
    # below 0 to make up for this. Swaps are not in the files.
    totals.copies = -sum(not item.swapped for item in demonstrations)

    def rewards_of(part: Sequence[Trajectory]) -> list[Floats]:
        try:
            return rewards_on(bench, run.best.program, part)
        except ProgramFailedError as error:
            raise ProgramFailedError(f"{part[0].source} to {part[-1].source}: {error}") from None

    failure, advice, shown = "", MORE, time.monotonic()
    try:
        known = {item.trajectory.digest for item in demonstrations}
        kept = _others(open_data(config.data).each(np.empty), known, bench.problem.rule, labelling.goals, totals)
        for items, rewards in rewarded(kept, rewards_of, bench.sandbox.workers):
            totals.add(items, rewards)
            if time.monotonic() - shown > EVERY:
                shown = time.monotonic()
                show(f"tested {totals.trajectories:,} of {left:,} trajectories outside the sample")
    except ProgramFailedError as error:
        failure = str(error)
    except _GoalsError as error:
        failure, advice = str(error), "correct the file of goal states, and fit anew with it (--goals)"
    except (GraceError, OSError) as error:
        failure = f"the demonstrations cannot be read any more ({error})"
        advice = f"put them back, and go on with: grace-irl fit {again}"
    except KeyboardInterrupt:
        store.add_event("interrupted", f"while the result was tested: {totals.trajectories} trajectories so far")
        raise Interrupted(run.folder, run.best) from None
    rest = replace(totals.rest(failure), program=run.best.program.id)
    store.keep(KEY, rest)
    return _told(run, rest, separation, advice, store)


def _told(run: Run, rest: Rest, separation: Separation, advice: str, store: Store) -> Run:
    """Add the metrics outside the sample, with their warnings, to the run. Store the warnings."""
    audit = run.audit or Audit()
    audit = Audit((*of_rest(rest, separation, advice), *audit.warnings), audit.contrast)
    store_audit(store, audit)
    return replace(run, rest=rest, audit=audit)


def _others(
    every: Iterable[Demonstration], known: set[str], rule: LabelRule, goals: Goals, totals: RestTotals
) -> Iterator[Labelled]:
    """The labelled demonstrations outside the sample. `totals` counts the demonstrations that are not tested."""
    for item in every:
        if item.trajectory.digest in known:
            totals.copies += 1
            continue
        try:
            unlabelled = rule == "goal" and item.role == "expert" and goals_of(item, goals) is None
        except InputError as error:
            raise _GoalsError(str(error)) from None
        if unlabelled:
            totals.unlabelled += 1
        else:
            yield Labelled(item, positive_states(item, rule, goals))


def stored_rest(store: Store) -> Rest | None:
    """The stored metrics of the best program outside the sample.

    The result is None if the run has no sample, or if its best program is not tested yet. For example, a resumed run
    may find a better program and be interrupted before the test.

    Raises:
        InputError: damaged metrics.
    """
    found = store.kept(KEY, Rest)
    return found if found is not None and found.program == store.meta("best") else None
