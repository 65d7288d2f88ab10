"""Conjunctions by beam search over places."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.synthesis.screen.pattern import NodePattern
from grace_irl.synthesis.screen.reading import Test
from grace_irl.synthesis.screen.universe import Universe


def named(count: int) -> list[Test]:
    return [Test(NodePattern(name=f"c{i}")) for i in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_planted_conjunction_is_found(seed: int, noise: float) -> None:
    """Three of 120 columns make the goal; 8 goals among 400 rows; some goals are missed and some others hit."""
    rng = np.random.default_rng(seed)
    table = rng.random((400, 120)) < 0.4
    planted = [5, 50, 115]
    goal = np.zeros(400, np.bool_)
    goal[:8] = True
    table[:8, planted] = True
    alike = np.flatnonzero(~goal & table[:, planted].all(axis=1))
    table[alike, planted[0]] = False
    flipped = np.flatnonzero(~goal)[rng.random(392) < noise / 4]
    table[np.ix_(flipped, planted)] = True
    signed = np.where(goal, -12.0, 2.0)
    universe = Universe(np.arange(400), 400, named(120), np.full(120, 1.0), table)
    best = universe.best(signed, 5)[0]
    chosen = {universe.conditions[column].pattern.name for column in best.columns}  # type: ignore[union-attr]
    assert {f"c{i}" for i in planted} <= chosen or best.cost < signed[goal].sum() + 3 + 2 * len(flipped)
    assert best.hits[:8].all()
    assert best.cost == pytest.approx(signed[best.hits].sum() + len(best.columns))
    if not noise:
        assert not best.hits[8:].any()


def test_what_holds_in_one_item_is_not_what_holds_in_several() -> None:
    """Row 0 has one item with both, row 1 two items with one each."""
    owners = np.array([0, 0, 1, 1])
    table = np.array([[1, 1], [0, 0], [1, 0], [0, 1]], dtype=np.bool_)
    universe = Universe(owners, 2, named(2), np.full(2, 0.5), table)
    best = universe.best(np.array([-12.0, 2.0]), 3)[0]
    assert best.columns == (0, 1)
    assert best.hits.tolist() == [True, False]
    assert best.cost == -11.0


def test_as_many_items_as_rows_are_not_one_item_for_each_row() -> None:
    """Row 0 has two items and row 1 none."""
    table = np.array([[1, 0], [0, 1], [0, 1]], dtype=np.bool_)
    universe = Universe(np.array([0, 0, 2]), 3, named(2), np.full(2, 0.5), table)
    found = {one.columns: one.cost for one in universe.best(np.array([-6.0, 7.0, 1.0]), 3)}
    assert found[(0,)] == -5.5
    assert found[(1,)] == -4.5


def test_columns_that_tell_the_same_are_one() -> None:
    table = np.array([[1, 1, 1, 0], [0, 0, 1, 0]], dtype=np.bool_)
    universe = Universe(np.arange(2), 2, named(4), np.array([2.0, 1.0, 0.1, 0.1]), table)
    assert universe.conditions == [Test(NodePattern(name="c1"))]  # the cheap one; c2 holds everywhere and c3 nowhere


def test_without_rows_there_is_nothing_to_find() -> None:
    universe = Universe(np.zeros(0, np.int64), 3, named(2), np.zeros(2), np.zeros((0, 2), np.bool_))
    assert universe.best(np.zeros(3), 3) == []
