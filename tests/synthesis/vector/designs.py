"""Worlds for the writer without a model and demonstrations, and its proposals in them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from grace_irl.demos.trajectory import Trajectory
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.check import read
from grace_irl.programs.program import Program, identify
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request
from grace_irl.states.record import RecordStates
from grace_irl.synthesis.vector.components import Rollout
from grace_irl.synthesis.vector.design import source
from grace_irl.synthesis.vector.designer import Designer
from tests.fakes.in_process_sandbox import InProcessSandbox

FIELDS = ("hand_x", "hand_y", "goal_x", "goal_y", "cos", "sin", "height", "lamp", "unused")
CHILDREN = ("reflect", "mutate", "structure", "weights", "crossover", "path", "different")
THREE = {"effort": 0.5, "level height": 1.0, "near distance(goal, hand) at 0.1": 2.0}


def arm(seed: int, length: int = 40) -> Rollout:
    """A hand that wanders beside a goal, a direction, a height, a lamp that is on or off, and a number that is 0."""
    rng = np.random.default_rng(seed)
    hand = np.cumsum(rng.normal(size=(length + 1, 2)) * 0.1, axis=0)
    goal = np.tile(rng.normal(size=2), (length + 1, 1))
    angle = np.cumsum(rng.normal(size=length + 1) * 0.3)
    height = 1.3 + 0.1 * rng.normal(size=length + 1)
    lamp = (rng.random(length + 1) < 0.3) * 1.0
    columns = [hand, goal, np.cos(angle), np.sin(angle), height, lamp, np.zeros(length + 1)]
    return np.column_stack(columns), rng.uniform(-1, 1, size=(length, 2))


def record(seed: int) -> Rollout:
    """The same as a record with whole numbers, a text and an image."""
    states, actions = arm(seed)
    rng = np.random.default_rng(seed)
    parts = {
        "arm/hand": states[:, :2],
        "arm/goal": states[:, 2:4].astype(np.float32),
        "state": states[:, 4:7],
        "lamp": states[:, 7].astype(np.uint8),
        "counts": rng.integers(0, 9, size=(len(states), 2), dtype=np.uint8),
        "image": np.zeros((len(states), 9, 9, 3), dtype=np.uint8),
        "said": np.array([b"go"] * len(states)),
    }
    return RecordStates(parts), actions


def choices(seed: int) -> Rollout:
    states, actions = arm(seed)
    return states, np.random.default_rng(seed).integers(0, 4, size=len(actions))


def single(seed: int) -> Rollout:
    states, actions = arm(seed)
    return states[:, :1], actions[:, 0]


ROLLOUTS = {
    "vectors": [arm(seed) for seed in range(8)],
    "records": [record(seed) for seed in range(8)],
    "choices": [choices(seed) for seed in range(8)],
    "one number": [single(seed) for seed in range(8)],
}
DESIGNERS = {name: Designer(rollouts, FIELDS if name != "records" else ()) for name, rollouts in ROLLOUTS.items()}
UNNAMED = Designer(ROLLOUTS["vectors"])
ARM = DESIGNERS["vectors"]


def proposed(designer: Designer, operator: str, seed: int, parents: Sequence[Parent] = (), count: int = 0) -> Proposal:
    """The answer to a request whose first `count` programs are parents, and the others ancestors."""
    ids = tuple(parent.program.id for parent in parents)
    request = Request(0, operator, ids[:count], seed, ancestors=ids[count:])
    return replace(asyncio.run(designer.propose(request, parents)), seconds=0.0)


def parent(proposal: Proposal, **evidence: Any) -> Parent:
    identity = identify(read(proposal.source).tree)  # type: ignore[arg-type]
    evaluation = Evaluation("ok", score=1.0, evidence=evidence)
    return Parent(Program(identity.id, proposal.source, identity.size), evaluation, proposal.sketch)


def new(designer: Designer, seed: int) -> Parent:
    return parent(proposed(designer, "initialise", seed))


def of(designer: Designer, design: dict[str, float], **evidence: Any) -> Parent:
    """A parent with this design."""
    return parent(Proposal(source(designer.components, design), sketch=json.dumps(design)), **evidence)


def foreign() -> Parent:
    return replace(new(ARM, 0), sketch="")


def terms(found: Proposal | Parent) -> dict[str, float]:
    return dict(json.loads(found.sketch)) if found.sketch else {}


def read_by(designer: Designer, found: Proposal | Parent) -> set[str]:
    """Names of the quantities that a program reads."""
    return {designer.components.listed[name].quantity for name in terms(found)}


def kinds(designer: Designer, found: Proposal | Parent) -> list[tuple[str, str]]:
    return [designer.components.listed[name].kind for name in terms(found)]


def ran(source: str, rollout: Rollout) -> np.ndarray:
    """The rewards of the program at each step, in this process."""
    sandbox = InProcessSandbox()
    outcome = sandbox.run(source, sandbox.put([Trajectory(*rollout)]), [0])
    assert outcome.status == "ok", outcome.message
    return outcome.rewards[0][1:]


SEEDS = st.integers(0, 2**32)
