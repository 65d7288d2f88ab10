"""The proposer of drafts, for comparisons of searches. Drafts are programs drawn and varied without use of labels."""

from __future__ import annotations

from collections.abc import Callable

from grace_irl.demos.labels import Problem
from grace_irl.errors import InputError
from grace_irl.propose.protocol import Proposer
from grace_irl.states.grid import GRID
from grace_irl.states.record import RECORD
from grace_irl.states.vector import VECTOR
from grace_irl.synthesis.grid.drafter import GridDrafter
from grace_irl.synthesis.vector.designer import Designer


def drafter(problem: Problem, seed: int) -> Proposer:
    """Make the proposer of drafts for labelled demonstrations.

    Raises:
        InputError: the states are neither grids, vectors nor records; a trajectory of vectors or records has no
            actions; or no event, such as the disappearance of a thing, happens in the grids.
    """
    kind = problem.metadata.state_kind
    if kind.name not in DRAFTERS:
        raise InputError(f"--proposer drafts for {kind.plural}; expected grids, vectors or records")
    return DRAFTERS[kind.name](problem, seed)


def _readings(problem: Problem, seed: int) -> Proposer:
    del seed
    return GridDrafter(problem.train)


def _designs(problem: Problem, seed: int) -> Proposer:
    episodes = [item.trajectory for item in problem.train]
    rollouts = [(each.states, each.actions) for each in episodes if each.actions is not None]
    if len(rollouts) < len(episodes):
        raise InputError(
            f"--proposer drafts: {len(episodes) - len(rollouts)} of {len(episodes)} trajectories have no actions; "
            "expected actions, because drafts over numbers reward steps"
        )
    return Designer(rollouts, problem.metadata.fields, seed)


DRAFTERS: dict[str, Callable[[Problem, int], Proposer]] = {
    GRID.name: _readings,
    VECTOR.name: _designs,
    RECORD.name: _designs,
}
"""By kind of state: the function that makes the proposer of drafts from a problem and a seed."""
