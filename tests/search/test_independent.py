"""Random search as a pure state machine."""

from __future__ import annotations

from collections import Counter

import pytest

from grace_irl.evaluate.evaluation import Bar
from grace_irl.search.independent import IndependentSearch, IndependentSettings
from grace_irl.search.protocol import Request, Result
from grace_irl.testing.searches import drive
from tests.search.replies import broken, by_index, by_seed, missing, scored


def test_it_asks_for_new_programs_and_never_waits() -> None:
    search = IndependentSearch(IndependentSettings(), 0)
    requests = [search.ask() for _ in range(33)]
    assert requests.pop() is None
    assert all(isinstance(each, Request) for each in requests)
    assert [each.index for each in requests if each] == list(range(32))
    assert {(each.operator, each.parents, each.ancestors, each.samples) for each in requests if each} == {
        ("initialise", (), (), 1)
    }
    assert len({each.seed for each in requests if each}) == 32


@pytest.mark.parametrize("lag", [1, 8])
def test_results_change_no_request(lag: int) -> None:
    one = drive(IndependentSearch(IndependentSettings(20), 3), by_seed, lag)
    other = drive(IndependentSearch(IndependentSettings(20), 3), lambda request, _: missing(request))
    assert one.requests == other.requests


def test_the_best_of_all() -> None:
    found = drive(IndependentSearch(IndependentSettings(5), 0), by_index({0: -2.0, 1: 3.0, 3: 3.0, 4: 1.0}))
    assert found.best[-1] == ("p1", "p3", "p4", "p0")
    assert [(fate.program_id, fate.verdict) for fate in found.fates] == [
        ("p0", "kept"),
        ("p1", "kept"),
        ("p2", "invalid"),
        ("p3", "kept"),
        ("p4", "kept"),
    ]


def test_programs_that_fail_or_come_again_use_up_requests() -> None:
    def reply(request: Request, bar: Bar) -> Result:
        if request.index % 3 == 0:
            return scored(request, 1.0, "same")
        return broken(request) if request.index % 3 == 1 else missing(request)

    found = drive(IndependentSearch(IndependentSettings(9), 0), reply, 4)
    assert len(found.requests) == 9
    assert found.best[-1] == ("same",)
    assert Counter(fate.verdict for fate in found.fates) == {"kept": 1, "duplicate": 2, "invalid": 3}
