"""FORGE's pool as a pure state machine."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.evaluation import Bar
from grace_irl.search.pool import PoolProgram, PoolSearch, PoolSettings, pair_chances, unspent
from grace_irl.search.protocol import Request, Result, Wait
from grace_irl.testing.searches import drive
from tests.search.replies import broken, by_index, by_seed, missing, scored

SMALL = PoolSettings(first=4, rounds=3, pairs=3, size=4)


def pool(search: PoolSearch) -> list[str]:
    return [member.program_id for member in search.members]


def test_chances_of_three_by_hand() -> None:
    # (n - 1) sum J = 2 * 6
    assert pair_chances([1.0, 2.0, 3.0]) == pytest.approx({(0, 1): 3 / 12, (0, 2): 4 / 12, (1, 2): 5 / 12})


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([5.0, 5.0, 5.0], [1 / 3] * 3),
        ([0.0, 0.0, 0.0], [1 / 3] * 3),
        ([-2.0, -2.0, -2.0], [1 / 3] * 3),
        ([0.0, 0.0, 4.0], [0.0, 1 / 2, 1 / 2]),
        ([-1.0, 0.0, 1.0], [1 / 6, 2 / 6, 3 / 6]),  # as 0, 1, 2
        ([-3.0, -2.0, -1.0], [1 / 6, 2 / 6, 3 / 6]),
        ([7.0, 0.0], [1.0]),
        ([0.0, -7.0], [1.0]),
        ([1e308, 1e308, -1e308], [1 / 2, 1 / 4, 1 / 4]),
        ([1.0], []),
        ([], []),
    ],
)
def test_chances_in_closed_form(scores: list[float], expected: list[float]) -> None:
    found = pair_chances(scores)
    assert list(found) == list(combinations(range(len(scores)), 2))
    assert list(found.values()) == pytest.approx(expected)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_chances_sum_to_one(scores: list[float]) -> None:
    found = pair_chances(scores)
    assert len(found) == len(scores) * (len(scores) - 1) // 2
    assert min(found.values()) >= 0
    assert sum(found.values()) == pytest.approx(1)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=8).filter(any))
def test_a_program_is_a_parent_as_often_as_its_score_says(scores: list[float]) -> None:
    """Sum over pairs with i: ((n - 2) J_i + sum J) / ((n - 1) sum J)."""
    found, n, whole = pair_chances(scores), len(scores), sum(scores)
    for i, score in enumerate(scores):
        share = sum(chance for pair, chance in found.items() if i in pair)
        assert share == pytest.approx(((n - 2) * score + whole) / ((n - 1) * whole))


@pytest.mark.parametrize(("choice", "ahead"), [("score", 5 / 12), ("uniform", 1 / 3)])
def test_pairs_are_drawn_by_their_chances(choice: str, ahead: float) -> None:
    settings = PoolSettings(first=3, rounds=1, pairs=900, size=3, choice=choice)  # type: ignore[arg-type]
    found = drive(PoolSearch(settings, 0), lambda r, _: scored(r, float(r.index + 1)) if r.index < 3 else broken(r))
    drawn = Counter(request.parents for request in found.requests[3:])
    assert set(drawn) == {("p2", "p1"), ("p2", "p0"), ("p1", "p0")}  # the better one first
    assert drawn["p2", "p1"] / 900 == pytest.approx(ahead, abs=0.04)


def test_chances_without_spent_pairs_by_hand() -> None:
    chances = {("a", "b"): 0.5, ("a", "c"): 0.3, ("b", "c"): 0.2}
    assert unspent(chances, set()) == pytest.approx(chances)
    assert unspent(chances, {("a", "b"), ("x", "y")}) == pytest.approx({("a", "c"): 0.6, ("b", "c"): 0.4})
    assert unspent(chances, set(chances)) == chances


def test_of_unspent_pairs_without_a_chance_all_are_alike() -> None:
    chances = {("a", "b"): 0.5, ("a", "c"): 0.5, ("b", "c"): 0.0, ("b", "d"): 0.0}
    assert unspent(chances, {("a", "b"), ("a", "c")}) == {("b", "c"): 0.5, ("b", "d"): 0.5}


@pytest.mark.parametrize("lag", [1, 8])
def test_pairs_that_bring_nothing_new_make_room_for_others(lag: int) -> None:
    """Only p0 scores, so pairs without p0 have chance 0. All children are p0 again."""
    settings = PoolSettings(first=4, rounds=8, pairs=2, size=4)
    found = drive(
        PoolSearch(settings, 0), lambda r, _: scored(r, float(r.index == 0), "p0" if r.parents else f"p{r.index}"), lag
    )
    rounds = [{request.parents for request in found.requests[start : start + 2]} for start in range(4, 20, 2)]
    drawn: set[tuple[str, ...]] = set()
    for each in rounds:
        assert not each & drawn or len(drawn) == 6
        assert any("p0" in pair for pair in each) or len(drawn) >= 3
        drawn |= each
    assert len(drawn) == 6


def test_a_pair_comes_again_once_all_pairs_brought_duplicates() -> None:
    found = drive(
        PoolSearch(PoolSettings(first=2, rounds=4, pairs=2, size=2), 0), lambda r, _: scored(r, 1.0, f"p{r.index % 2}")
    )
    assert [request.parents for request in found.requests[2:]] == [("p0", "p1")] * 8


def test_the_first_pool_plans_and_the_rounds_merge_pairs() -> None:
    found = drive(PoolSearch(PoolSettings(), 0), by_seed)
    assert Counter(request.operator for request in found.requests) == {"plan": 16, "crossover": 160}
    assert all(request.parents == () for request in found.requests[:16])
    assert all(len(set(request.parents)) == 2 and not request.ancestors for request in found.requests[16:])
    assert len({request.seed for request in found.requests}) == 176


def test_without_a_planner_new_programs_show_nothing_and_wait_for_nothing() -> None:
    search = PoolSearch(PoolSettings(planner=False), 0)
    requests = [search.ask() for _ in range(17)]
    assert isinstance(requests.pop(), Wait)
    assert all(isinstance(each, Request) and each.operator == "initialise" for each in requests)
    assert not any(isinstance(each, Request) and each.ancestors for each in requests)


@pytest.mark.parametrize("lag", [1, 3, 8])
def test_plans_show_the_newest_programs_of_earlier_waves(lag: int) -> None:
    settings = PoolSettings(first=14, rounds=0, wave=3)
    found = drive(PoolSearch(settings, 0), by_index({n: 1.0 for n in range(14) if n != 4}), lag)
    waves = [request.ancestors for request in found.requests]
    assert waves[0:3] == [()] * 3
    assert waves[3:6] == [("p2", "p1", "p0")] * 3
    assert waves[6:9] == [("p5", "p3", "p2", "p1", "p0")] * 3  # p4 fails
    assert waves[9:12] == [("p8", "p7", "p6", "p5", "p3", "p2", "p1", "p0")] * 3
    assert waves[12:] == [("p11", "p10", "p9", "p8", "p7", "p6", "p5", "p3")] * 2


def test_a_child_is_one_deeper_than_its_deeper_parent() -> None:
    search = PoolSearch(PoolSettings(first=2, rounds=2, pairs=1, size=2), 0)
    drive(search, by_index({0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}))
    # The pool is p2 (depth 1) and p1 (depth 0) when p3 is drawn.
    assert search.history == (
        PoolProgram("p0", 1.0, 0, ()),
        PoolProgram("p1", 2.0, 0, ()),
        PoolProgram("p2", 3.0, 1, ("p1", "p0")),
        PoolProgram("p3", 4.0, 2, ("p2", "p1")),
    )
    assert search.members == search.history[:1:-1]


@given(st.integers(0, 30))
def test_depths_follow_the_parents(seed: int) -> None:
    search = PoolSearch(SMALL, seed)
    found = drive(search, by_seed, 3)
    depths = {member.program_id: member.depth for member in search.history}
    asked = {f"p{request.index}": request.parents for request in found.requests}
    for member in search.history:
        assert member.parents == asked[member.program_id]
        assert member.depth == (1 + max(depths[name] for name in member.parents) if member.parents else 0)
    assert max(depths.values(), default=0) <= SMALL.rounds


def test_after_each_round_the_pool_is_cut_to_the_best() -> None:
    search = PoolSearch(PoolSettings(first=4, rounds=1, pairs=2, size=3), 0)
    found = drive(search, by_index({0: 1.0, 1: 4.0, 2: 3.0, 3: 2.0, 4: 2.5, 5: 0.5}))
    assert pool(search) == ["p1", "p2", "p4"]
    assert [(fate.program_id, fate.verdict) for fate in found.fates] == [
        ("p1", "kept"),
        ("p2", "kept"),
        ("p3", "kept"),
        ("p0", "dropped"),
        ("p4", "kept"),
        ("p3", "dropped"),
        ("p5", "dropped"),
    ]
    assert found.fates[3].reason == "outside the best 3: score 1, depth 0, the last kept has score 2"
    assert found.fates[4].reason == "place 3 of 3: score 2.5, depth 1"
    assert found.fates[5].reason == "displaced the best 3: score 2, depth 0, the last kept has score 2.5"
    assert found.best[-1] == ("p1", "p2", "p4", "p3", "p0", "p5")


def test_of_equal_programs_the_smaller_and_then_the_earlier_stays() -> None:
    search = PoolSearch(PoolSettings(first=4, rounds=0, size=2), 0)
    drive(search, lambda request, _: scored(request, 1.0, size=[9, 7, 7, 8][request.index]))
    assert pool(search) == ["p1", "p2"]


def test_the_pool_does_not_change_within_a_round() -> None:
    search = PoolSearch(SMALL, 0)
    seen = []

    def reply(request: Request, bar: Bar) -> Result:
        seen.append((search.generation, tuple(pool(search))))
        assert not request.parents or set(request.parents) <= set(pool(search))
        return by_seed(request, bar)

    drive(search, reply, 2)
    assert len(set(seen)) == 4


def test_patience_counts_rounds_without_a_better_best_program() -> None:
    settings = PoolSettings(first=2, rounds=9, pairs=1, size=2, patience=2)
    # Better, equal, better, worse, failed: two rounds in a row.
    found = drive(PoolSearch(settings, 0), by_index({0: 0.0, 1: 1.0, 2: 2.0, 3: 2.0, 4: 3.0, 5: 1.0}))
    assert len(found.requests) == 2 + 5
    assert found.is_over
    whole = drive(PoolSearch(PoolSettings(first=2, rounds=9, pairs=1, size=2), 0), by_index(lambda n: 0.0))
    assert len(whole.requests) == 2 + 9


def test_patience_begins_after_the_first_pool() -> None:
    settings = PoolSettings(first=2, rounds=9, pairs=2, size=2, patience=1)
    found = drive(PoolSearch(settings, 0), by_index({2: 1.0}))  # the first pool fails, the first round is better
    assert len(found.requests) == 2 + 2 * 2


def test_the_search_ends_once_deeper_programs_bring_nothing() -> None:
    settings = PoolSettings(first=2, rounds=9, pairs=1, size=2, deeper=2)
    # p2 is the best at depth 1; p3 and p4 displace the second of the pool and reach depths 2 and 3.
    search = PoolSearch(settings, 0)
    found = drive(search, by_index(lambda n: [0.0, 1.0, 5.0, 2.0, 3.0, 4.0, 4.5][n]))
    assert [member.depth for member in search.history] == [0, 0, 1, 2, 3]
    assert len(found.requests) == 5
    rising = drive(PoolSearch(settings, 0), by_index(lambda n: float(n)))
    assert len(rising.requests) == 2 + 9


@pytest.mark.parametrize("lag", [1, 8])
def test_a_pool_of_one_asks_for_new_programs(lag: int) -> None:
    settings = PoolSettings(first=3, rounds=2, pairs=3, size=4, wave=2)
    search = PoolSearch(settings, 0)
    found = drive(search, by_index({1: 1.0, 4: 2.0, 6: 3.0}), lag)
    assert [request.operator for request in found.requests] == ["plan"] * 6 + ["crossover"] * 3
    assert [request.ancestors for request in found.requests[:6]] == [(), (), ("p1",), ("p1",), ("p1",), ("p4", "p1")]
    assert [(member.program_id, member.depth) for member in search.members] == [("p6", 1), ("p4", 0), ("p1", 0)]


def test_an_empty_pool_asks_for_new_programs() -> None:
    found = drive(PoolSearch(SMALL, 0), lambda request, _: missing(request), 3)
    assert [request.operator for request in found.requests] == ["plan"] * 13
    assert found.is_over


def test_programs_that_fail_or_come_again_never_enter() -> None:
    def reply(request: Request, bar: Bar) -> Result:
        if request.index < 4:
            return scored(request, float(request.index))
        # p0 was cut off after the first pool; p3 is the best.
        return scored(request, 99.0, "p0" if request.index % 2 else "p3")

    search = PoolSearch(PoolSettings(first=4, rounds=2, pairs=4, size=2), 0)
    found = drive(search, reply)
    assert pool(search) == ["p3", "p2"]
    assert [member.depth for member in search.history] == [0] * 4
    assert Counter(fate.verdict for fate in found.fates) == {"kept": 2, "dropped": 2, "duplicate": 8}


def test_finish_decides_a_broken_off_round() -> None:
    search = PoolSearch(SMALL, 0)
    drive(search, by_index({0: 1.0, 1: 3.0}), most=3)
    assert search.undecided == ("p0", "p1")
    assert search.members == ()
    assert [(fate.program_id, fate.verdict) for fate in search.finish()] == [("p1", "kept"), ("p0", "kept")]
    assert pool(search) == ["p1", "p0"]
    assert search.finish() == []


@given(st.integers(0, 50), st.sampled_from(["score", "uniform"]), st.booleans(), st.integers(1, 5))
def test_the_lag_changes_nothing(seed: int, choice: str, planner: bool, wave: int) -> None:
    settings = PoolSettings(first=5, rounds=3, pairs=4, size=4, choice=choice, planner=planner, wave=wave)  # type: ignore[arg-type]
    searches = [PoolSearch(settings, seed) for _ in range(3)]
    found = [drive(search, by_seed, lag) for search, lag in zip(searches, (1, 3, 8), strict=True)]
    assert all(one == other for one, other in pairwise(found))
    assert len({(search.members, search.history) for search in searches}) == 1


@given(st.integers(0, 50), st.integers(0, 13))
def test_a_search_that_receives_the_same_again_asks_for_the_same(seed: int, most: int) -> None:
    before = drive(PoolSearch(SMALL, seed), by_seed, most=most)
    search = PoolSearch(SMALL, seed)
    told = iter(before.results)
    drive(search, lambda request, _: next(told), most=most)
    rest = drive(search, by_seed)
    whole = PoolSearch(SMALL, seed)
    assert [*before.requests, *rest.requests] == drive(whole, by_seed).requests
    assert search.members == whole.members
