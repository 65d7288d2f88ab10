"""REvolve's islands as a pure state machine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.evaluate.evaluation import Bar
from grace_irl.search.islands import IslandSearch, IslandSettings, softmax
from grace_irl.search.protocol import Request, Result, Wait
from grace_irl.testing.searches import drive
from tests.search.replies import broken, by_index, by_seed, missing, scored

SMALL = IslandSettings(islands=3, size=4, programs=36)
ALONE = IslandSettings(islands=1, size=4, programs=4, crossover=0.0, migration=0.0)


def one_island(scores: Sequence[float | None], settings: IslandSettings = ALONE) -> tuple[IslandSearch, list[str]]:
    """A search with one island that gets these scores. Also the fates, as texts."""
    search = IslandSearch(settings, 0)
    known = {index: score for index, score in enumerate(scores) if score is not None}
    found = drive(search, by_index(known))
    return search, [f"{fate.program_id} {fate.verdict}" for fate in found.fates]


@pytest.mark.parametrize(
    ("scores", "temperature", "expected"),
    [
        ([3.0, 3.0], 1.0, [0.5, 0.5]),
        ([0.0, math.log(3)], 1.0, [0.25, 0.75]),
        ([0.0, math.log(3)], 0.5, [0.1, 0.9]),
        ([-1e4, 1e4], 1.0, [0.0, 1.0]),
        ([-1e308, 1e308], 1e-3, [0.0, 1.0]),
        ([5000.0, 5000.0 + math.log(2), 0.0], 1.0, [1 / 3, 2 / 3, 0.0]),
        ([7.0], 1.0, [1.0]),
    ],
)
def test_softmax_in_closed_form(scores: list[float], temperature: float, expected: list[float]) -> None:
    assert softmax(scores, temperature) == pytest.approx(expected)


def test_the_first_generation_fills_half_of_each_island() -> None:
    search = IslandSearch(IslandSettings(), 0)
    requests = [search.ask() for _ in range(16)]
    assert all(isinstance(each, Request) and each.operator == "initialise" for each in requests)
    assert isinstance(search.ask(), Wait)
    for request in requests:
        assert isinstance(request, Request)
        search.tell(scored(request, -float(request.index)))
    # However low its score is, each program stays.
    assert search.islands == tuple(tuple(f"p{island + 4 * row}" for row in range(4)) for island in range(4))
    assert search.generation == 1


@pytest.mark.parametrize("lag", [1, 100])
def test_it_asks_for_all_its_programs(lag: int) -> None:
    found = drive(IslandSearch(IslandSettings(), 0), by_seed, lag)
    operators = Counter(request.operator for request in found.requests)
    assert operators.total() == 80
    assert set(operators) == {"initialise", "mutate", "crossover"}
    few = drive(IslandSearch(IslandSettings(programs=7), 0), by_seed, lag)
    assert [request.operator for request in few.requests] == ["initialise"] * 7


@pytest.mark.parametrize(("crossover", "expected"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)])
def test_crossovers_have_their_probability(crossover: float, expected: float) -> None:
    settings = IslandSettings(islands=2, size=4, programs=1000, crossover=crossover)
    found = drive(IslandSearch(settings, 0), by_index(float))
    drawn = [request for request in found.requests if request.operator != "initialise"]
    share = sum(request.operator == "crossover" for request in drawn) / len(drawn)
    assert share == pytest.approx(expected, abs=0.05)
    for request in drawn:
        assert len(set(request.parents)) == len(request.parents) == (2 if request.operator == "crossover" else 1)


def test_parents_come_from_one_island_as_it_was_at_the_start_of_the_generation() -> None:
    search = IslandSearch(SMALL, 1)
    start = search.islands
    generation = 0

    def reply(request: Request, bar: Bar) -> Result:
        nonlocal start, generation
        if search.generation > generation:
            start, generation = search.islands, search.generation
        if request.parents:
            assert any(set(request.parents) <= set(island) for island in start)
        return by_seed(request, bar)

    drive(search, reply)
    assert generation == 6 - 1  # the last generation ends with the search, so no reply sees it


@pytest.mark.parametrize("operator", ["mutate", "crossover"])
def test_parents_are_drawn_by_softmax(operator: str) -> None:
    """The island's scores are log 1, log 2 and log 3. Children fail, so it stays the same."""
    settings = IslandSettings(islands=1, size=6, programs=1000, crossover=float(operator == "crossover"), migration=0.0)
    found = drive(IslandSearch(settings, 0), by_index({n: math.log(n + 1) for n in range(3)}))
    drawn = Counter(request.parents for request in found.requests[3:])
    if operator == "mutate":
        expected: dict[tuple[str, ...], float] = {("p0",): 1 / 6, ("p1",): 2 / 6, ("p2",): 3 / 6}
    else:  # the second parent by softmax over the others
        weights = {"p0": 1, "p1": 2, "p2": 3}
        pairs = [(a, b) for a in weights for b in weights if a != b]
        expected = {(a, b): weights[a] / 6 * weights[b] / (6 - weights[a]) for a, b in pairs}
    assert {pair: count / 997 for pair, count in drawn.items()} == pytest.approx(expected, abs=0.04)


def test_two_parents_are_drawn_even_if_one_has_all_the_weight() -> None:
    settings = IslandSettings(islands=1, size=4, programs=40, crossover=1.0)
    found = drive(IslandSearch(settings, 0), by_index({0: 1e6, 1: -1e6}))
    assert {request.parents for request in found.requests[2:]} == {("p0", "p1")}


def test_an_island_of_one_mutates_and_an_empty_one_begins_again() -> None:
    settings = IslandSettings(islands=2, size=2, programs=40, crossover=1.0, migration=0.0)
    found = drive(IslandSearch(settings, 0), by_index({0: 1.0}))
    asked = Counter((request.operator, request.parents) for request in found.requests[2:])
    assert set(asked) == {("mutate", ("p0",)), ("initialise", ())}


def test_a_child_stays_if_it_reaches_the_mean_of_its_island() -> None:
    search, fates = one_island([0.0, 2.0, 0.9, 1.0])
    # p2 is below the mean of 0 and 2, p3 equal to it.
    assert search.islands == (("p1", "p3", "p0"),)
    assert fates == ["p0 kept", "p1 kept", "p2 dropped", "p3 kept"]


def test_the_mean_includes_earlier_children_of_the_generation() -> None:
    search, _ = one_island([0.0, 2.0, 4.0, 1.9])
    assert search.islands == (("p2", "p1", "p0"),)  # the mean is 2 by then
    earlier, _ = one_island([0.0, 2.0, 4.0, 2.0])
    assert earlier.islands == (("p2", "p1", "p3", "p0"),)


@pytest.mark.parametrize("score", [0.1, -0.1, 1e6 + 0.1, 1e-12])
def test_an_equal_score_reaches_the_mean(score: float) -> None:
    settings = IslandSettings(islands=1, size=6, programs=6, migration=0.0)
    search, fates = one_island([score] * 6, settings)
    assert fates == [f"p{n} kept" for n in range(6)]
    assert search.islands == (tuple(f"p{n}" for n in range(6)),)


def test_a_rounding_error_below_the_mean_is_not_below_it() -> None:
    search, _ = one_island([0.1 + 0.2, 0.1 + 0.2, 0.3, 0.3 - 1e-6])
    assert search.islands == (("p0", "p1", "p2"),)


def test_islands_are_cut_to_their_size() -> None:
    settings = IslandSettings(islands=1, size=2, programs=4, migration=0.0)
    search = IslandSearch(settings, 0)
    found = drive(search, by_index({0: 1.0, 1: 3.0, 2: 4.0, 3: 3.5}))
    assert search.islands == (("p2", "p3"),)
    assert [(fate.program_id, fate.verdict) for fate in found.fates] == [
        ("p0", "kept"),
        ("p1", "kept"),
        ("p2", "kept"),
        ("p0", "dropped"),
        ("p3", "kept"),
        ("p1", "dropped"),
    ]
    assert found.fates[2].reason == "island 1: score 4, not below the mean 2"
    assert found.fates[5].reason == "outside the best 2 of island 1: score 3, the last kept has score 3.5"
    assert found.best[-1] == ("p2", "p3", "p1", "p0")


def test_a_child_that_has_no_place_among_equals_is_dropped() -> None:
    search, fates = one_island([1.0, 1.0, 1.0], IslandSettings(islands=1, size=2, programs=3))
    assert search.islands == (("p0", "p1"),)
    assert fates == ["p0 kept", "p1 kept", "p2 dropped"]


def migrated(seed: int, settings: IslandSettings, score: float = 0.0) -> tuple[IslandSearch, list[Request]]:
    """A search after the start of its third generation. Children fail, so only migration changes its islands."""
    search = IslandSearch(settings, seed)
    length = settings.islands * settings.size // 2
    requests = []
    for _ in range(2 * length):
        request = search.ask()
        assert isinstance(request, Request)
        requests.append(request)
        search.tell(scored(request, score * request.index) if request.index < length else broken(request))
    assert all(len(island) == settings.size // 2 for island in search.islands)
    assert isinstance(search.ask(), Request)
    return search, requests


def test_a_migrant_is_a_copy_on_another_island() -> None:
    settings = IslandSettings(islands=3, size=4, migration=1.0)
    ways = set()
    for seed in range(60):
        search, _ = migrated(seed, settings)
        first = [(f"p{n}", f"p{n + 3}") for n in range(3)]
        grown = [place for place, island in enumerate(search.islands) if len(island) == 3]
        assert len(grown) == 1
        (extra,) = set(search.islands[grown[0]]) - set(first[grown[0]])
        source = int(extra[1:]) % 3
        assert source != grown[0]
        assert all(set(first[place]) <= set(island) for place, island in enumerate(search.islands))
        ways.add((source, grown[0]))
    assert len(ways) == 6  # each island to each other


def test_migrations_have_their_probability() -> None:
    for migration, expected in ((0.0, 0.0), (0.3, 0.3), (1.0, 1.0)):
        settings = IslandSettings(islands=2, size=2, migration=migration)
        moved = [max(map(len, migrated(seed, settings)[0].islands)) > 1 for seed in range(300)]
        assert np.mean(moved) == pytest.approx(expected, abs=0.08)


def test_migrants_are_drawn_by_softmax() -> None:
    """Scores of p0 to p3 are 0, -100, -200, -300: the better one of each island migrates."""
    settings = IslandSettings(islands=2, size=4, migration=1.0)
    for seed in range(20):
        islands = migrated(seed, settings, -100.0)[0].islands
        assert islands in ((("p0", "p1", "p2"), ("p1", "p3")), (("p0", "p2"), ("p0", "p1", "p3")))


def test_nobody_migrates_from_the_first_generation_or_from_a_single_island() -> None:
    search = IslandSearch(IslandSettings(islands=2, size=2, migration=1.0), 0)
    for _ in range(2):
        request = search.ask()
        assert isinstance(request, Request)
        search.tell(scored(request, 0.0))
    search.ask()
    assert search.islands == (("p0",), ("p1",))
    alone, fates = one_island([1.0] * 4, IslandSettings(islands=1, size=2, programs=4, migration=1.0))
    assert alone.islands == (("p0", "p1"),)
    assert Counter(fate.split()[1] for fate in fates) == {"kept": 2, "dropped": 2}


@given(st.integers(0, 60))
def test_a_program_counts_as_kept_as_long_as_an_island_holds_it(seed: int) -> None:
    settings = IslandSettings(islands=3, size=2, programs=60, migration=1.0)
    search = IslandSearch(settings, seed)
    found = drive(search, by_seed, 4)
    last = {fate.program_id: fate.verdict for fate in [*found.fates, *search.finish()]}
    held = {name for island in search.islands for name in island}
    assert {name for name, verdict in last.items() if verdict == "kept"} == held
    assert all(len(island) == len(set(island)) <= 2 for island in search.islands)


def test_a_migrant_displaces_the_worst_of_a_full_island() -> None:
    """The migration happens in `ask`, so its fates come with the next result, or from `finish`."""
    settings = IslandSettings(islands=2, size=2, programs=99, migration=1.0)
    displaced = 0
    for seed in range(10):
        search, fates = IslandSearch(settings, seed), []
        before = search.islands
        while isinstance(asked := search.ask(), Request):
            if dropped := search.finish():
                ((old, new, other),) = [
                    (before[place], search.islands[place], before[1 - place])
                    for place in range(2)
                    if before[place] != search.islands[place]
                ]
                assert [(fate.program_id, fate.verdict) for fate in dropped] == [(old[1], "dropped")]
                assert old[1] not in other
                assert set(new) == {old[0], *(set(new) & set(other))}
                displaced += 1
            fates += [*dropped, *search.tell(by_seed(asked, Bar()))]
            before = search.islands
        assert fates == drive(IslandSearch(settings, seed), by_seed).fates
    assert displaced


def test_programs_that_fail_or_come_again_change_no_island() -> None:
    def reply(request: Request, bar: Bar) -> Result:
        if request.index < 6:
            return scored(request, float(request.index))
        again = (scored(request, 99.0, f"p{request.index % 6}"), broken(request), missing(request))
        return again[request.index % 3]

    search = IslandSearch(IslandSettings(islands=3, size=4, programs=36, migration=0.0), 0)
    found = drive(search, reply, 5)
    assert search.islands == (("p3", "p0"), ("p4", "p1"), ("p5", "p2"))
    assert Counter(fate.verdict for fate in found.fates) == {"kept": 6, "duplicate": 10, "invalid": 10}


def test_islands_without_any_valid_program() -> None:
    search = IslandSearch(SMALL, 0)
    found = drive(search, lambda request, _: missing(request), 8)
    assert [request.operator for request in found.requests] == ["initialise"] * 36
    assert search.islands == ((), (), ())


@given(st.integers(0, 50))
def test_the_lag_changes_nothing(seed: int) -> None:
    searches = [IslandSearch(SMALL, seed) for _ in range(2)]
    one, eight = (drive(search, by_seed, lag) for search, lag in zip(searches, (1, 8), strict=True))
    assert one.requests == eight.requests
    assert one.best == eight.best
    assert searches[0].islands == searches[1].islands


@given(st.integers(0, 50), st.integers(0, 36))
def test_a_search_that_receives_the_same_again_asks_for_the_same(seed: int, most: int) -> None:
    before = drive(IslandSearch(SMALL, seed), by_seed, most=most)
    search = IslandSearch(SMALL, seed)
    told = iter(before.results)
    drive(search, lambda request, _: next(told), most=most)
    rest = drive(search, by_seed)
    whole = IslandSearch(SMALL, seed)
    assert [*before.requests, *rest.requests] == drive(whole, by_seed).requests
    assert search.islands == whole.islands
