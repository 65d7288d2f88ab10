"""Eureka's greedy search as a pure state machine."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.evaluation import Bar
from grace_irl.search.greedy import GreedySearch, GreedySettings
from grace_irl.search.protocol import Request, Result, Wait
from grace_irl.testing.searches import Drive, drive
from tests.search.replies import broken, by_index, by_seed, missing, scored

SMALL = GreedySettings(rounds=3, samples=2)
OVERALL = GreedySettings(rounds=3, samples=2, keep_overall=True)


def asked(found: Drive) -> list[tuple[str, tuple[str, ...]]]:
    """Operator and parents of each request."""
    return [(request.operator, request.parents) for request in found.requests]


def test_defaults_are_those_of_eureka() -> None:
    found = drive(GreedySearch(GreedySettings(), 0), by_seed)
    assert Counter(request.operator for request in found.requests) == {"initialise": 16, "reflect": 64}
    assert {len(request.parents) for request in found.requests[16:]} == {1}
    assert not any(request.ancestors for request in found.requests)


def test_the_best_of_the_last_round_is_the_parent_even_if_it_is_worse() -> None:
    found = drive(GreedySearch(SMALL, 0), by_index({0: 1.0, 1: 5.0, 2: 3.0, 3: 2.0, 4: 0.0, 5: 4.0}))
    assert asked(found) == [("initialise", ())] * 2 + [("reflect", ("p1",))] * 2 + [("reflect", ("p2",))] * 2
    assert found.best[-1] == ("p1", "p5", "p2", "p3", "p0", "p4")
    assert [(fate.program_id, fate.verdict) for fate in found.fates] == [
        ("p1", "kept"),
        ("p0", "dropped"),
        ("p2", "kept"),
        ("p3", "dropped"),
        ("p5", "kept"),
        ("p4", "dropped"),
    ]
    assert found.fates[2].reason == "the best of round 2: score 3"
    assert found.fates[3].reason == "score 2, below the best of round 2 (score 3)"


def test_the_best_of_all_rounds_is_the_parent_with_keep_overall() -> None:
    found = drive(GreedySearch(OVERALL, 0), by_index({0: 1.0, 1: 5.0, 2: 3.0, 3: 2.0, 4: 6.0, 5: 4.0}))
    assert asked(found) == [("initialise", ())] * 2 + [("reflect", ("p1",))] * 4
    verdicts = [(fate.program_id, fate.verdict) for fate in found.fates]
    assert verdicts == [(f"p{n}", "kept" if n in (1, 4) else "dropped") for n in (1, 0, 2, 3, 4, 5)]
    assert found.fates[2].reason == "score 3, below the best of all rounds (score 5)"
    assert found.fates[4].reason == "the best of all rounds: score 6"


def test_a_round_that_fails_whole_keeps_the_parent() -> None:
    found = drive(GreedySearch(SMALL, 0), by_index({0: 1.0, 1: -5.0, 5: 4.0}))
    assert asked(found) == [("initialise", ())] * 2 + [("reflect", ("p0",))] * 4
    assert [(fate.program_id, fate.verdict) for fate in found.fates[2:]] == [
        ("p2", "invalid"),
        ("p3", "invalid"),
        ("p4", "invalid"),
        ("p5", "kept"),
    ]


def test_without_a_parent_a_round_asks_for_new_programs_again() -> None:
    found = drive(GreedySearch(SMALL, 0), by_index({2: 1.0}))
    assert asked(found) == [("initialise", ())] * 4 + [("reflect", ("p2",))] * 2
    nothing = drive(GreedySearch(SMALL, 0), lambda request, _: missing(request))
    assert asked(nothing) == [("initialise", ())] * 6
    assert nothing.is_over


@pytest.mark.parametrize(("settings", "parent"), [(SMALL, "p0"), (OVERALL, "p1")])
def test_a_program_that_comes_again_competes_with_its_first_score(settings: GreedySettings, parent: str) -> None:
    def reply(request: Request, bar: Bar) -> Result:
        if request.index == 2:
            return scored(request, 99.0, "p0")
        return scored(request, {0: 1.0, 1: 2.0, 3: -1.0}.get(request.index, 0.0))

    found = drive(GreedySearch(settings, 0), reply)
    assert {request.parents for request in found.requests[4:]} == {(parent,)}
    assert [(fate.program_id, fate.verdict) for fate in found.fates if fate.program_id == "p0"] == [
        ("p0", "dropped"),
        ("p0", "duplicate"),
        *([("p0", "kept")] if parent == "p0" else []),
    ]


def test_the_parent_that_comes_again_stays_without_a_further_fate() -> None:
    def reply(request: Request, bar: Bar) -> Result:
        return scored(request, 2.0, "same") if request.index in (0, 2) else scored(request, 1.0)

    found = drive(GreedySearch(SMALL, 0), reply)
    assert [request.parents for request in found.requests[2:]] == [("same",)] * 4
    assert [fate.verdict for fate in found.fates if fate.program_id == "same"] == ["kept", "duplicate"]


def test_equal_scores_go_to_the_smaller_program_then_to_the_earlier_request() -> None:
    def reply(request: Request, bar: Bar) -> Result:
        return scored(request, 1.0, size=[30, 20, 20, 9][request.index])

    search = GreedySearch(GreedySettings(rounds=1, samples=3), 0)
    found = drive(search, reply)
    assert search.parent == "p1"
    assert found.fates[1].reason == "score 1, equal to the best of round 1 (score 1)"


def test_it_waits_for_its_round_and_counts_it() -> None:
    search = GreedySearch(SMALL, 0)
    first, second = search.ask(), search.ask()
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    assert isinstance(search.ask(), Wait)
    assert search.tell(scored(first, 1.0)) == []
    assert isinstance(search.ask(), Wait)
    assert (search.undecided, search.parent, search.generation) == (("p0",), None, 0)
    assert len(search.tell(scored(second, 2.0))) == 2
    assert (search.undecided, search.parent, search.generation) == ((), "p1", 1)


def test_finish_decides_a_broken_off_round() -> None:
    search = GreedySearch(GreedySettings(rounds=2, samples=9), 0)
    drive(search, by_index({0: 1.0, 1: 2.0}), most=3)
    assert [(fate.program_id, fate.verdict) for fate in search.finish()] == [("p1", "kept"), ("p0", "dropped")]
    assert search.finish() == []


@given(st.integers(0, 50), st.booleans())
def test_the_lag_changes_nothing(seed: int, overall: bool) -> None:
    settings = GreedySettings(rounds=4, samples=5, keep_overall=overall)
    one, eight = (drive(GreedySearch(settings, seed), by_seed, lag) for lag in (1, 8))
    assert one == eight


@given(st.integers(0, 50), st.integers(0, 20))
def test_a_search_that_receives_the_same_again_asks_for_the_same(seed: int, most: int) -> None:
    settings = GreedySettings(rounds=4, samples=5)
    before = drive(GreedySearch(settings, seed), by_seed, most=most)
    search = GreedySearch(settings, seed)
    told = iter(before.results)
    drive(search, lambda request, _: next(told), most=most)
    rest = drive(search, by_seed)
    whole = drive(GreedySearch(settings, seed), by_seed)
    assert [*before.requests, *rest.requests] == whole.requests
    assert rest.best[-1:] == (whole.best[-1:] if most < 20 else [])


def test_invalid_programs_use_up_the_round() -> None:
    found = drive(GreedySearch(SMALL, 0), lambda request, _: broken(request), 8)
    assert len(found.requests) == 6
    assert Counter(fate.verdict for fate in found.fates) == {"invalid": 6}
