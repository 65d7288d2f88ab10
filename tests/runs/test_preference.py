"""Programs that training data cannot tell apart: size decides, but not against the instruction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import grace_irl
from grace_irl.demos.labels import label
from grace_irl.demos.split import split
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.evaluate.rewards import MemoryCache
from grace_irl.propose.material import Workbench
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.runs.preference import Preference
from grace_irl.runs.record import Record
from grace_irl.search.protocol import Request
from tests.fakes.in_process_sandbox import InProcessSandbox

IGNORES = """
class Reward:
    def __init__(self, extra_info=""):
        pass

    def reward_fn(self, state):
        return float(state.max() > 0.5)
"""
FOLLOWS = """
class Reward:
    def __init__(self, extra_info=""):
        self.place = ["red", "blue", "green"].index(extra_info.split()[-1])

    def reward_fn(self, state):
        return float(state[self.place] > 0.5)
"""
LONG = FOLLOWS.replace("> 0.5", "> 0.123456789 + 0.345678912")


class Listed:
    """Answers the first requests by these sources, and no others."""

    def __init__(self, *sources: str) -> None:
        self._sources = sources

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        del parents
        if request.index < len(self._sources):
            return Proposal(self._sources[request.index])
        return Proposal("", failure="no more", exhausted=True)


def visits(colours: Sequence[str], count: int = 12) -> Demonstrations:
    """Experts end at the place that the instruction names; negatives stay away from all three."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(2 * count):
        expert, colour = number < count, colours[number % len(colours)]
        states = rng.uniform(0.0, 0.4, (6, 3))
        if expert:
            states[-1, ["red", "blue", "green"].index(colour)] = 1.0
        items.append(
            Demonstration(Trajectory(states, extra_info=f"go to {colour}"), "expert" if expert else "negative")
        )
    return Demonstrations(Metadata("vector", label="last"), tuple(items))


@pytest.mark.parametrize("order", [(IGNORES, FOLLOWS, LONG), (LONG, FOLLOWS, IGNORES)])
def test_the_smallest_program_that_follows_the_instruction_is_chosen(order: tuple[str, ...], tmp_path: Path) -> None:
    run = grace_irl.fit(
        visits(["red", "blue", "green"]), out=tmp_path / "run", proposer=Listed(*order), held_out=0.0, generations=0
    )
    assert run.best.train.separated
    assert run.best.source.strip() == FOLLOWS.strip()
    assert [row.program for row in run.front_rows if row.best] == [run.best.program.id]


def test_a_goal_that_is_never_paid_is_no_contrast() -> None:
    """Both ignore the instruction, and one pays the goals of two colours alone."""
    problem = label(split(visits(["red", "blue", "green"]), 0.0, 0), "last")
    with InProcessSandbox() as sandbox:
        cache = MemoryCache()
        evaluator = DiscriminatorEvaluator(problem, sandbox, cache=cache)
        records = []
        for source in (IGNORES, IGNORES.replace("state.max()", "state[:2].max()")):
            program = sandbox.inspect(source).program(source)
            records.append(Record(program, evaluator.evaluate([program])[0], len(records)))
        preference = Preference(Workbench(problem, sandbox, rewards=cache))
        assert preference._by_contrast(records) is records[0]


def test_with_one_instruction_the_smallest_is_chosen(tmp_path: Path) -> None:
    run = grace_irl.fit(
        visits(["red"]), out=tmp_path / "run", proposer=Listed(FOLLOWS, IGNORES), held_out=0.0, generations=0
    )
    assert run.best.source.strip() == IGNORES.strip()
