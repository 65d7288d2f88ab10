"""Rules by which a tree search chooses a leaf: UCT beside others, and the virtual loss of pending expansions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grace_irl.evaluate.evaluation import Bar
from grace_irl.runs.config import settings_of
from grace_irl.search.protocol import Request, Result, Wait
from grace_irl.search.tree import Rule, TreeSearch, TreeSettings
from grace_irl.testing.searches import drive
from tests.search.test_tree import TWO, answer, broken, by_id, expanded, random_score, table


def test_scores_on_another_scale_change_no_choice() -> None:
    def scaled(request: Request, bar: Bar) -> Result:
        result = random_score(request, bar)
        found = result.evaluation
        if found is None or not found.valid:
            return result
        return replace(result, evaluation=replace(found, score=1024 * found.score))

    one, other = TreeSearch(TreeSettings(), 1), TreeSearch(TreeSettings(), 1)
    assert drive(one, random_score).requests == drive(other, scaled).requests
    assert len(one.nodes) > 40


@pytest.mark.parametrize(
    ("rule", "chosen"),
    [
        ("uct", "p0"),
        ("depth-first", "p1 p4 p7"),
        ("breadth-first", "p1 p2 p0"),
        ("greedy", "p1 p2 p7"),
    ],
)
def test_rules_expand_different_leaves(rule: Rule, chosen: str) -> None:
    settings = TreeSettings(programs=10, first=4, actions=TWO, rule=rule)
    # The model's opinion prefers p0, whose value is nearly that of p1 beside p3.
    opinions = [1, -1, -1, -1]
    found = drive(TreeSearch(settings, 0), table([0.5, 0.6, 0.55, -10.0, 0.3, 0.2, 0.1, 0.52, 0, 0], opinions))
    assert expanded(found)[: len(chosen.split())] == chosen.split()


@pytest.mark.parametrize("rule", ["depth-first", "breadth-first", "greedy"])
def test_rules_leave_a_leaf_whose_children_fail(rule: Rule) -> None:
    settings = TreeSettings(programs=9, first=3, actions=TWO, rule=rule)
    found = drive(TreeSearch(settings, 0), table([0.1, 0.3, 0.2], rest=None))
    assert expanded(found) == ["p1", "p2", "p0"]


@pytest.mark.parametrize("rule", ["uct", "depth-first", "breadth-first", "greedy"])
def test_with_a_virtual_loss_pending_expansions_choose_different_leaves(rule: Rule) -> None:
    settings = TreeSettings(programs=7, first=3, actions=TWO, exploration=2.0, virtual_loss=True, rule=rule)
    search = TreeSearch(settings, 0)
    found = drive(search, table([1.0, 0.9, 0.0, 0.5, 0.6, 0.7, 0.8]), 4)
    assert [r.parents for r in found.requests[3:]] == [("p0",)] * 2 + [("p1",)] * 2
    nodes = by_id(search)
    assert [nodes[name].visits for name in ("p0", "p1", "p2")] == [3, 3, 1]
    assert nodes["p0"].q == pytest.approx(0.3 * 1.0 + 0.7 * 0.6)
    assert nodes["p1"].q == pytest.approx(0.3 * 0.9 + 0.7 * 0.8)
    assert search.generation == 3


def test_a_virtual_loss_ends_with_its_expansion() -> None:
    """If only one request is in flight, nothing is pending when the next expansion begins."""
    settings = TreeSettings(programs=60)
    one, other = TreeSearch(settings, 0), TreeSearch(replace(settings, virtual_loss=True), 0)
    assert drive(one, random_score) == drive(other, random_score)
    assert one.nodes == other.nodes


def test_a_virtual_loss_waits_for_initial_nodes() -> None:
    search = TreeSearch(TreeSettings(programs=20, first=2, virtual_loss=True), 0)
    first, second = search.ask(), search.ask()
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    search.tell(answer(first, 0.1))
    assert isinstance(search.ask(), Wait)
    search.tell(broken(second))
    assert isinstance(search.ask(), Request)


def test_an_expansion_waits_for_the_last_one_unless_a_user_asks_for_a_virtual_loss() -> None:
    assert not TreeSettings().virtual_loss
    assert not settings_of("rf-agent")["tree.virtual_loss"].default
