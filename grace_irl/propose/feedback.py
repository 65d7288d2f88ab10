"""Feedback on programs, for use in prompts: rewards, misclassified states, and the output of debug functions.

Most prompts show one or more parents, the programs on which the new program builds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grace_irl.programs.contract import DEBUG_METHOD, DEBUG_SETS
from grace_irl.propose.briefing import Briefing
from grace_irl.propose.material import Material, ParentMaterial, Workbench, wrong_states
from grace_irl.propose.protocol import Parent
from grace_irl.propose.rendering import Operator
from grace_irl.propose.views.trajectory import Shown, foremost
from grace_irl.sandbox.protocol import DebugRequest
from grace_irl.search.protocol import Request

SET_STATES = 400  # maximum number of states in each argument of a program's debug(expert_states, negative_states)


def material(
    bench: Workbench, briefing: Briefing, request: Request, parents: Sequence[Parent], operator: Operator
) -> Material:
    """Collect the material from which an operator writes the prompt for a request. Only training data are used.

    Args:
        bench: data, sandbox and stored rewards of the run.
        briefing: the part that all prompts share.
        request: the request of the search.
        parents: the parents of the request, then its ancestors (`Request.ancestors`).
        operator: the function that writes the prompt.
    """
    count = len(parents) - len(request.ancestors)
    known = [_known(bench, briefing, each, request.seed if n < count else None) for n, each in enumerate(parents)]
    drawn = dict(request.context)
    found = Material(
        seed=request.seed,
        include_expert=bool(drawn.get("include_expert")),
        incorrect_only=bool(drawn.get("incorrect_only")),
        expert_only=bool(drawn.get("expert_only")),
        parents=tuple(known[:count]),
        ancestors=tuple(known[count:]),
    )
    if not known:
        return found
    first = known[0]
    found = replace(
        found,
        source=first.source,
        evaluation=first.evaluation,
        rewards=first.rewards,
        wrong=first.wrong,
        overall=first.overall,
        tried=first.tried,
    )
    if operator.debugged is None or not parents[0].program.defines(DEBUG_METHOD, "class"):
        return found
    shown = [each for section in operator.debugged(briefing, found).values() for each in section]
    return replace(found, debug=_debug(bench, first.source, shown)) if shown else found


def _known(bench: Workbench, briefing: Briefing, parent: Parent, seed: int | None) -> ParentMaterial:
    """Collect facts about a program.

    The seed is for the random choice of states for debug(expert_states, negative_states). Without a seed, `debug`
    is not called. Ancestors get no seed, because prompts do not show their debug output.
    """
    source = parent.program.source
    rewards = bench.rewards.get(parent.program.id, {item.trajectory.digest for item in briefing.items})
    wrong = wrong_states(briefing.items, rewards)
    compares = seed is not None and parent.program.defines(DEBUG_SETS, "module")
    overall = _overall(bench, source, seed) if compares and seed is not None else ""
    return ParentMaterial(source, parent.evaluation, rewards, wrong, overall, parent.notes, parent.tried)


def _debug(bench: Workbench, source: str, shown: Sequence[Shown]) -> dict[tuple[str, int], str]:
    """Run a program's debug_fn at the most important steps (`foremost`). Return the outputs by digest and step."""
    trajectories = [each.item.trajectory for each in shown]
    requests = [DebugRequest(place, step) for place, each in enumerate(shown) for step in sorted(foremost(each))]
    handle = bench.sandbox.put(trajectories)
    try:
        outcome = bench.sandbox.run(source, handle, range(len(shown)), limits=bench.limits, debug=requests)
    finally:
        bench.sandbox.drop(handle)
    if outcome.status != "ok":  # the prompt then has no debug output; the program keeps its score
        return {}
    asked = [(trajectories[request.position].digest, request.step) for request in requests]
    return dict(zip(asked, outcome.debug, strict=True))


def _overall(bench: Workbench, source: str, seed: int) -> str:
    """Call the program's debug(expert_states, negative_states) on random training states. Return its output."""
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
