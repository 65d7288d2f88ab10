"""What is shown of a parent: the rewards that it gave, and what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grace_irl.demos.labels import Labelled
from grace_irl.propose.material import Material, chances
from grace_irl.propose.protocol import Parent
from grace_irl.propose.workbench import Workbench
from grace_irl.sandbox.protocol import DebugRequest
from grace_irl.search.protocol import Request

DEBUGGED = 8  # wrong trajectories whose debug output is fetched, worst first
SET_STATES = 400  # states of either side that debug(expert_states, negative_states) is shown


def material(bench: Workbench, request: Request, parents: Sequence[Parent]) -> Material:
    """What a prompt for this request is about. Only training data is looked at."""
    drawn = Material(seed=request.seed, **chances(request))
    if not parents:
        return drawn
    parent = parents[0]
    program, evaluation = parent.program, parent.evaluation
    train = {item.trajectory.digest: item for item in bench.problem.train}
    wrong = [digest for digest in dict.fromkeys(f.digest for f in evaluation.failures) if digest in train]
    experts = [name for name, item in train.items() if item.demonstration.role == "expert"]
    return replace(
        drawn,
        source=program.source,
        evaluation=evaluation,
        rewards=bench.rewards.get(program.id, [*wrong, *experts]),
        debug=_debug(bench, parent, [train[digest] for digest in wrong[:DEBUGGED]]),
        overall=_overall(bench, program.source, request.seed),
    )


def _debug(bench: Workbench, parent: Parent, items: Sequence[Labelled]) -> dict[tuple[str, int], str]:
    """What the parent's debug_fn says at its wrong states, by digest and step."""
    if "def debug_fn" not in parent.program.source or not items:
        return {}
    place = {item.trajectory.digest: position for position, item in enumerate(items)}
    asked = sorted({(f.digest, f.step) for f in parent.evaluation.failures if f.digest in place})
    requests = [DebugRequest(place[digest], step) for digest, step in asked]
    handle = bench.sandbox.put([item.trajectory for item in items])
    try:
        order = range(len(items))
        outcome = bench.sandbox.run(parent.program.source, handle, order, limits=bench.limits, debug=requests)
    finally:
        bench.sandbox.drop(handle)
    if outcome.status != "ok":  # a program that runs out of time in its debug function still has its score
        return {}
    return dict(zip(asked, outcome.debug, strict=True))


def _overall(bench: Workbench, source: str, seed: int) -> str:
    """What the program's debug(expert_states, negative_states) says of a sample of the training states."""
    if "\ndef debug(" not in f"\n{source}":
        return ""
    train = bench.problem.train
    sides: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for position, item in enumerate(train):
        for step, positive in enumerate(item.positive):
            sides[0 if positive else 1].append((position, step))
    rng = np.random.default_rng(seed)
    chosen = [[side[int(n)] for n in sorted(rng.permutation(len(side))[:SET_STATES])] for side in sides]
    used = sorted({position for side in chosen for position, _ in side})
    place = {position: n for n, position in enumerate(used)}
    experts, negatives = [[(place[position], step) for position, step in side] for side in chosen]
    handle = bench.sandbox.put([train[position].trajectory for position in used])
    try:
        outcome = bench.sandbox.debug_sets(source, handle, experts, negatives, limits=bench.limits)
    finally:
        bench.sandbox.drop(handle)
    said = outcome.debug[0] if outcome.debug else ""
    return said if outcome.status == "ok" else f"debug failed: {outcome.status}: {outcome.message}"
