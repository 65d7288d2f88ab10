"""Walks through readings: the costs that a walk keeps are those of the readings it visits."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grace_irl.synthesis.grid.lexicon import Lexicon
from grace_irl.synthesis.grid.meaning import Plan
from grace_irl.synthesis.grid.reading import GridReading
from grace_irl.synthesis.grid.search import view
from grace_irl.synthesis.grid.walk import LEAST, Change, Walk
from tests.synthesis.grid.scenes import FACED, FIVE, ONE, TAKEN, TINY, TWO, reading
from tests.synthesis.grid.test_search import put_beside, two_steps
from tests.synthesis.worlds import go_to_set, labelled

LEXICONS = {
    "whole": Lexicon(view(labelled(go_to_set(0, 4, 4))).evidence, Plan()),
    "then": Lexicon(view(labelled(two_steps(0, 4, "then"))).evidence, Plan((("dol", "then"),))),
    "both": Lexicon(view(labelled(two_steps(0, 4, "both"))).evidence, Plan((("dol", "both"),))),
    "beside": Lexicon(view(labelled(put_beside(0, 4))).evidence, Plan((("ved", "beside"),))),
}


def start(lexicon: Lexicon) -> GridReading:
    return GridReading({"event": lexicon.features.index("event")})


@pytest.mark.parametrize("name", LEXICONS)
@settings(max_examples=15, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_a_walk_keeps_the_cost_of_its_reading(name: str, seed: int) -> None:
    lexicon, rng = LEXICONS[name], np.random.default_rng(seed)
    walk = Walk(lexicon, start(lexicon))
    walk.kick(30, rng)
    assert walk.cost == pytest.approx(lexicon.total(walk.reading))
    walk.transfer(rng)
    assert walk.cost == pytest.approx(lexicon.total(walk.reading))
    walk.descend(steepest=bool(seed % 2))
    assert walk.cost == pytest.approx(lexicon.total(walk.reading))
    again = Walk(lexicon, walk.reading)
    assert (again.cost, again.reading) == (pytest.approx(walk.cost), walk.reading)


@pytest.mark.parametrize("name", LEXICONS)
@pytest.mark.parametrize("seed", range(12))
def test_a_descent_ends_at_the_same_minimum_with_known_minima_and_without(name: str, seed: int) -> None:
    """A descent weighs all neighbours of its last reading, though in two passes, unless the reading is known."""
    lexicon, fresh = LEXICONS[name], copy.copy(LEXICONS[name])
    fresh.minima = set()
    frozen, ends = (-1, 0)[seed % 2], []
    for one in (fresh, fresh, lexicon):
        walk = Walk(one, start(lexicon))
        walk.kick(30, np.random.default_rng(seed))
        walk.descend(frozen, steepest=seed % 3 == 0)
        ends.append(walk.reading)
    assert ends[0] == ends[1] == ends[2]
    assert len(fresh.minima) == 1
    assert all(walk.weigh(change) >= -LEAST for _, change in walk._neighbours(frozen))


@pytest.mark.parametrize("name", LEXICONS)
def test_the_best_reading_of_a_run_is_one_that_it_visits(name: str) -> None:
    lexicon = LEXICONS[name]
    walk = Walk(lexicon, start(lexicon))
    best = walk.run(300, 4.0, 0.3, np.random.default_rng(0))
    assert lexicon.total(best) <= min(walk.cost, lexicon.total(start(lexicon))) + 1e-9


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (reading({"event": FACED}), ("lu", ONE), reading({"event": FACED}, lu=ONE)),
        (reading({"event": FACED}, ka=ONE), ("mo", ONE), reading({"event": FACED}, ka=ONE, mo=ONE)),  # a synonym
        (reading({"event": FACED}, ka=ONE, mo=ONE), ("mo", TWO), reading({"event": FACED}, ka=ONE, mo=TWO)),
        (reading({"event": FACED}, ka=ONE, mo=ONE), ("mo", None), reading({"event": FACED}, ka=ONE)),
        (reading({"event": FACED}, go=TAKEN), ("lu", TAKEN), reading({"event": FACED}, go=TAKEN, lu=TAKEN)),
    ],
)
def test_a_change_weighs_what_it_adds_to_the_cost(
    before: GridReading, change: tuple[str, object], after: GridReading
) -> None:
    lexicon = Lexicon(TINY, Plan())
    word, meaning = change
    column = TINY.index[meaning] if meaning else -1  # type: ignore[index]
    walk, made = Walk(lexicon, before), Change(((lexicon.words.index(word), column),))
    assert walk.weigh(made) == pytest.approx(lexicon.total(after) - lexicon.total(before))
    assert walk.reading == before  # nothing is changed yet
    walk.make(made, walk.weigh(made))
    assert (walk.reading, walk.cost) == (after, pytest.approx(lexicon.total(after)))


def test_an_exchange_and_a_constant_weigh_what_they_add() -> None:
    lexicon = Lexicon(TINY, Plan())
    before = reading({"event": FACED}, ka=ONE, lu=FIVE)
    places = [lexicon.words.index(word) for word in ("ka", "lu")]
    for change, after in (
        (
            Change(((places[0], TINY.index[FIVE]), (places[1], TINY.index[ONE]))),
            reading({"event": FACED}, ka=FIVE, lu=ONE),
        ),
        (
            Change(constant=("channel 0", TINY.index[TWO])),
            reading({"event": FACED, "channel 0": TWO}, ka=ONE, lu=FIVE),
        ),
    ):
        walk = Walk(lexicon, before)
        assert walk.weigh(change) == pytest.approx(lexicon.total(after) - lexicon.total(before))
        walk.make(change, walk.weigh(change))
        assert walk.reading == after
        assert walk.cost == pytest.approx(lexicon.total(after))


@pytest.mark.parametrize("name", LEXICONS)
@pytest.mark.parametrize("limit", [-5.0, 0.0, 3.0, 15.0])
def test_a_limit_hides_what_costs_more_and_changes_nothing_else(name: str, limit: float) -> None:
    known = LEXICONS[name]
    fresh = Lexicon(known.evidence, known.plan)  # without costs that are known already
    walk = Walk(fresh, start(fresh))
    walk.kick(6, np.random.default_rng(0))
    at, seen = walk.reading, {"below": 0, "above": 0}
    for _, change in list(walk._neighbours(-1)):
        limited, whole = walk.weigh(change, limit), walk.weigh(change)
        other = Walk(known, at)
        other.make(change, 0.0)
        assert whole == pytest.approx(known.total(other.reading) - known.total(at))
        assert limited == (whole if whole <= limit else math.inf)
        seen["above" if limited == math.inf else "below"] += 1
    assert seen["above"]
    assert seen["below"] or limit < 0


@pytest.mark.parametrize("name", LEXICONS)
def test_a_price_is_at_least_its_bound(name: str) -> None:
    lexicon, rng = LEXICONS[name], np.random.default_rng(1)
    walk, prices = Walk(lexicon, start(lexicon)), Lexicon(LEXICONS[name].evidence, LEXICONS[name].plan).prices
    for _ in range(30):
        walk.kick(2, rng)
        packed = prices.pack(walk.reading.meanings)
        bound = prices.at_least(packed)
        assert 0.0 <= bound <= prices.of_features(packed) == prices.at_least(packed)
