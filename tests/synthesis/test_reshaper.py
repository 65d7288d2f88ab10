"""Versions that pay for progress: which there are, of which programs, and what they are worth on real levels."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from grace_irl.demos import load
from grace_irl.demos.labels import Labelled, Problem, label
from grace_irl.demos.trajectory import Demonstrations, LabelRule, Metadata
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.metrics import monotonicity, ranking
from grace_irl.programs.check import read
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.search.protocol import Request
from grace_irl.synthesis import Synthesiser
from grace_irl.synthesis.grid.meaning import Hypothesis, Plan
from grace_irl.synthesis.grid.scene import Perception
from grace_irl.synthesis.grid.source import FORMS, WEIGHTS, write_source
from grace_irl.synthesis.reshaper import FOREIGN, UNSEEN, why_not
from tests.fakes.data import vector_set
from tests.synthesis.grid.programs import CHANGED, PERCEPTION
from tests.synthesis.worlds import FLOOR, go_to_set, problem, rewards_of_all

SHIPPED = Path(__file__).resolve().parents[2] / "datasets" / "babyai-go-to-obj"


@cache
def grids() -> Problem:
    return problem(go_to_set(0, 6, 6))


def reshaped(data: Problem, source: str, version: int, seed: int = 7) -> Proposal:
    """The answer of a synthesiser that was asked for nothing else."""
    request = Request(40 + version, "reshape", ("0" * 16,), seed, version=version)
    parent = Parent(Program("0" * 16, source, 100), Evaluation("ok"))
    return replace(asyncio.run(Synthesiser(data).propose(request, [parent])), seconds=0.0)


def best(data: Problem) -> str:
    return asyncio.run(Synthesiser(data).propose(Request(0, "initialise"), ())).source


def test_every_version_is_another_and_the_last_says_so() -> None:
    source, count = best(grids()), len(FORMS) * len(WEIGHTS)
    answers = [reshaped(grids(), source, version) for version in range(count + 2)]
    assert len({answer.source for answer in answers[:count]} - {"", source}) == count
    assert all(read(answer.source).problems == () for answer in answers[:count])
    assert all(answer.reasoning.endswith(".") for answer in answers[:count])
    assert {(answer.source, answer.failure) for answer in answers[count:]} == {
        ("", f"cannot reshape further: there are only {count} versions")
    }
    # Nothing but the program and the version matter.
    assert [reshaped(grids(), source, version, seed=8) for version in range(count)] == answers[:count]


def test_a_version_can_be_reshaped_in_all_other_ways() -> None:
    source, count = best(grids()), len(FORMS) * len(WEIGHTS)
    known = {reshaped(grids(), source, version).source for version in range(count)}
    one = reshaped(grids(), source, 4).source
    assert {reshaped(grids(), one, version).source for version in range(count - 1)} == known - {one}
    assert reshaped(grids(), one, count - 1).failure


def test_the_data_say_which_way_the_agent_heads() -> None:
    """A program that watches for changes does not; and other agents' headings are of no use."""
    source = write_source(Hypothesis(Plan(), (CHANGED,)), PERCEPTION, ())
    assert "AHEAD" not in source
    versions = [reshaped(grids(), source, version).source for version in range(3)]
    assert ["AHEAD" in version for version in versions] == [False, True, False]
    other = source.replace("AGENT = (0, 21)", "AGENT = (0, 22)")
    assert ["AHEAD" in reshaped(grids(), other, version).source for version in range(3)] == [False] * 3
    assert reshaped(grids(), other, 6).failure.startswith("cannot reshape further: there are only 6 versions")


def test_what_cannot_be_reshaped() -> None:
    plain = "class Reward:\n    def __init__(self, extra_info=None): pass\n    def reward_fn(self, state): return 0.0\n"
    unseen = write_source(Hypothesis(Plan(), (CHANGED,)), Perception(None, (FLOOR,)), ())
    assert [reshaped(grids(), source, 0).failure for source in (plain, unseen)] == [FOREIGN, UNSEEN]
    vectors = label(vector_set(4, 4), "all")
    assert reshaped(vectors, best(vectors), 0).failure == "cannot reshape rewards for vectors"


@pytest.mark.parametrize(
    ("kind", "rule", "said"),
    [
        ("grid", "last", ""),
        ("grid", "goal", ""),
        ("grid", "all", "grids labelled 'all'"),
        ("vector", "last", "vectors"),
        ("ui", "last", "screens"),
    ],
)
def test_of_which_data(kind: str, rule: LabelRule, said: str) -> None:
    assert why_not(Problem(Metadata(kind), rule, ())) == said  # type: ignore[arg-type]


def scores(source: str, items: Sequence[Labelled]) -> tuple[float, float, bool]:
    """Monotonicity, accuracy and whether states are separated."""
    paid = rewards_of_all(
        source, [item.trajectory.states for item in items], [item.trajectory.extra_info for item in items]
    )
    found = ranking(np.concatenate(paid), np.concatenate([item.positive for item in items]))
    steady = monotonicity(
        values for values, item in zip(paid, items, strict=True) if item.demonstration.role == "expert"
    )
    assert steady is not None
    return steady, found.accuracy, found.separated


def assert_better(data: Problem, held_out: Sequence[Labelled], by: float) -> None:
    source = best(data)
    plain = [scores(source, items) for items in (data.items, held_out)]
    for version in range(3):
        proposal = reshaped(data, source, version)
        assert proposal.failure == ""
        for before, items in zip(plain, (data.items, held_out), strict=True):
            after = scores(proposal.source, items)
            assert after[0] >= before[0] + by
            assert after[1:] == before[1:]


def test_the_demonstrations_that_ship() -> None:
    items = load([SHIPPED]).items
    train = Demonstrations(Metadata("grid"), tuple(item for at, item in enumerate(items) if at % 2))
    rest = Demonstrations(Metadata("grid"), tuple(item for at, item in enumerate(items) if not at % 2))
    assert_better(label(train, "last"), label(rest, "last").items, by=0.15)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("minigrid") is None, reason="minigrid is not installed: pip install 'grace-irl[rl]'"
)
@pytest.mark.parametrize(
    ("level", "by"),
    [
        ("GoToLocalS8N7", 0.2),
        ("PickupLoc", 0.2),  # taken, and sides
        ("OpenRedDoor", 0.2),
        ("OpenTwoDoors", 0.2),  # changed, in steps
        ("PutNextLocalS5N3", 0.2),
    ],
)
def test_levels(level: str, by: float) -> None:
    """From 8 experts and 8 random agents; held out are other instructions, too."""
    from grace_irl.rl.collect import collect

    def collected(episodes: int, seed: int) -> Problem:
        experts = collect(f"BabyAI-{level}-v0", "bot", episodes, "expert", seed=seed)
        others = collect(f"BabyAI-{level}-v0", "random", episodes, "negative", seed=seed + 1)
        return label(replace(experts, items=experts.items + others.items), "last")

    assert_better(collected(8, 100), collected(10, 5000).items, by)
