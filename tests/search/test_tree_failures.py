"""Programs of a tree search that fail, repeat others or have no usable score: they give no node."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.search.protocol import Request, Result
from grace_irl.search.tree import TreeSearch, TreeSettings
from grace_irl.testing.searches import drive, fails
from tests.search.test_tree import TWO, answer, broken, by_id, expanded, table


def test_initial_nodes_are_asked_again_if_all_fail() -> None:
    search = TreeSearch(TreeSettings(programs=12, first=3, actions=TWO), 0)
    replies: list[Callable[[Request], Result]] = [broken, lambda r: fails(r, Bar()), broken]

    def reply(request: Request, _: Bar) -> Result:
        if request.index < 6:
            assert search.generation == 0
            return replies[request.index % 3](request)
        return broken(request) if request.index == 7 else answer(request, 0.1)

    found = drive(search, reply, 4)
    assert [r.operator for r in found.requests] == ["initialise"] * 9 + ["structure"] * 3
    assert [n.program_id for n in search.nodes if not n.parent] == ["p6", "p8"]
    assert [fate.verdict for fate in found.fates] == ["invalid"] * 4 + ["kept", "invalid"] + ["kept"] * 4


def test_nothing_but_failures_costs_the_budget() -> None:
    search = TreeSearch(TreeSettings(programs=10, first=4), 0)
    found = drive(search, lambda request, _: broken(request), 8)
    assert [r.operator for r in found.requests] == ["initialise"] * 10
    assert found.is_over
    assert (search.best, search.nodes, search.generation) == ((), (), 0)


def test_a_leaf_whose_children_fail_loses_its_attraction() -> None:
    search = TreeSearch(TreeSettings(programs=20, first=2, actions=TWO), 0)
    found = drive(search, table([1.0, 0.9], rest=None))
    nodes = by_id(search)
    assert {r.parents[0] for r in found.requests[2:]} == {"p0"}  # with two nodes, their values are 0 and 1
    assert (nodes["p0"].visits, nodes["p1"].visits) == (10, 1)
    assert [n.q for n in search.nodes] == [1.0, 0.9]
    assert search.generation == 10
    found = drive(TreeSearch(TreeSettings(programs=20, first=3, actions=TWO), 0), table([1.0, 0.9, -5.0], rest=None))
    assert expanded(found)[:2] == ["p0", "p1"]


def test_a_repeated_program_is_no_second_node() -> None:
    search = TreeSearch(TreeSettings(programs=6, first=2, actions=TWO), 0)
    found = drive(search, lambda request, _: answer(request, 0.5, name="same"))
    assert [fate.verdict for fate in found.fates] == ["kept"] + ["duplicate"] * 5
    assert [(n.program_id, n.visits) for n in search.nodes] == [("same", 3)]
    assert search.best == ("same",)


@pytest.mark.parametrize("score", [-math.inf, math.inf, math.nan])
def test_a_score_that_is_no_finite_number_counts_as_invalid(score: float) -> None:
    search = TreeSearch(TreeSettings(programs=2, first=2), 0)
    found = drive(search, table([score, 0.5]))
    assert [(fate.program_id, fate.verdict) for fate in found.fates] == [("p0", "invalid"), ("p1", "kept")]
    assert search.best == ("p1",)


def test_an_evaluation_that_stopped_early_gives_no_node() -> None:
    search = TreeSearch(TreeSettings(programs=1, first=1), 0)
    stopped = Evaluation("ok", "stopped early", bound=0.1)
    found = drive(search, lambda request, _: replace(answer(request, 0.0), evaluation=stopped))
    assert [fate.verdict for fate in found.fates] == ["dropped"]
    assert search.best == ()
