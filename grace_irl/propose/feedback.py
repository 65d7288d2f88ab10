"""Feedback on a parent: the rewards that it gave, where it is wrong, and what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grace_irl.propose.briefing import Briefing
from grace_irl.propose.material import Material, Workbench, chances, wrong_states
from grace_irl.propose.operators import mutation
from grace_irl.propose.protocol import Parent
from grace_irl.propose.views.trajectory import Shown, foremost
from grace_irl.sandbox.protocol import DebugRequest
from grace_irl.search.protocol import Request

SET_STATES = 400  # states of either side that debug(expert_states, negative_states) is shown


def material(bench: Workbench, briefing: Briefing, request: Request, parents: Sequence[Parent]) -> Material:
    """What a prompt for this request is about. Only training data is looked at."""
    empty = Material(seed=request.seed, **chances(request))
    if not parents:
        return empty
    parent = parents[0]
    rewards = bench.rewards.get(parent.program.id, {item.trajectory.digest for item in briefing.items})
    found = replace(
        empty,
        source=parent.program.source,
        evaluation=parent.evaluation,
        rewards=rewards,
        wrong=wrong_states(briefing.items, rewards),
        overall=_overall(bench, parent.program.source, request.seed),
    )
    if request.operator != "mutate" or "def debug_fn" not in parent.program.source:
        return found
    shown = [each for section in mutation(briefing, found).values() for each in section]
    if not shown:
        return found
    return replace(found, debug=_debug(bench, parent.program.source, shown))


def _debug(bench: Workbench, source: str, shown: Sequence[Shown]) -> dict[tuple[str, int], str]:
    """What debug_fn says by digest and step: at wrong states, at those beside them, at the ends and at goals."""
    trajectories = [each.item.trajectory for each in shown]
    requests = [DebugRequest(place, step) for place, each in enumerate(shown) for step in sorted(foremost(each))]
    handle = bench.sandbox.put(trajectories)
    try:
        outcome = bench.sandbox.run(source, handle, range(len(shown)), limits=bench.limits, debug=requests)
    finally:
        bench.sandbox.drop(handle)
    if outcome.status != "ok":  # a program that runs out of time in its debug function still has its score
        return {}
    asked = [(trajectories[request.position].digest, request.step) for request in requests]
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
