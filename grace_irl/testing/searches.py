"""The conformance suite of searches, which request programs and use their scores. The suite is a base class for pytest:

    class TestMySearch(SearchSuite):
        def make(self, seed):
            return MySearch(seed)

The suite calls a search as a run does. Several requests may wait for their results, and results come in the order of
the requests. Some programs fail, and some are duplicates. If a search has a bar (`Bar.floor`: a program with a lower
score is useless to the search), some evaluations of programs below the bar stop early.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.programs.program import Program
from grace_irl.runs.record import from_text, to_text
from grace_irl.search.protocol import Barred, Deciding, Draft, Fate, Generational, Request, Result, Search, Staged, Wait

LIMIT = 1000
"""Maximum number of requests of a search. A search with more requests fails the test."""
LAGS = (1, 3, 20)
"""Values of the argument `lag` of `drive` in the tests."""
VERDICTS = {"kept", "dropped", "duplicate", "invalid", "repaired"}
"""Possible decisions of a search on a program."""

Reply = Callable[[Request, Bar], Result]
"""A function that answers a request. It also receives the search's bar."""


@dataclass
class Drive:
    """A record of one use of a search by `drive`.

    Attributes:
        requests: all requests, in order.
        results: results that the search received, in order of the requests. The last requests may have no results.
        fates: decisions of the search on programs, such as to keep or drop them, in order.
        best: the value of `search.best` (ids of the best programs) after each result.
        is_over: whether the search ended by itself.
    """

    requests: list[Request] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    fates: list[Fate] = field(default_factory=list)
    best: list[tuple[str, ...]] = field(default_factory=list)
    is_over: bool = False


def drive(search: Search, reply: Reply, lag: int = 1, most: int = LIMIT) -> Drive:
    """Use a search as a run does: get requests, reply to them, and return the results to the search.

    Args:
        search: search to run.
        reply: function that answers a request. It also receives the bar at the time of the request.
        lag: maximum number of requests without a result.
        most: number of results after which to stop, even if the search has not ended.
    """
    found = Drive()
    flying: list[tuple[Request, Bar]] = []
    while len(found.results) < most:
        asked: Request | Wait | None = None
        while len(flying) < lag:
            asked = search.ask()
            if not isinstance(asked, Request):
                break
            found.requests.append(asked)
            flying.append((asked, search.bar if isinstance(search, Barred) else Bar()))
            assert len(found.requests) <= LIMIT, f"over {LIMIT} requests: give the suite a search that ends sooner"
        if not flying:
            assert asked is None, "the search waits, but nothing is in flight"
            found.is_over = True
            break
        result = reply(*flying.pop(0))
        found.results.append(result)
        found.fates += search.tell(result)
        found.best.append(search.best)
    return found


def fails(request: Request, bar: Bar) -> Result:
    """A result without a program, as if the proposer had not answered."""
    del bar
    return Result(request, failure="no answer")


class SearchSuite(ABC):
    """The tests of the conformance suite for searches."""

    @abstractmethod
    def make(self, seed: int) -> Search:
        """Return a small search, which ends within `LIMIT` requests."""

    def evaluation(self, request: Request, score: float) -> Evaluation:
        """The evaluation of a valid program. A subclass adds the metrics that its search reads."""
        del request
        return Evaluation("ok", score=score, metrics={"fitness": score}, evidence={"suite": {"score": score}})

    def reply(self, request: Request, bar: Bar) -> Result:
        """A pseudo-random result, which depends only on the request and the bar."""
        draw = random.Random(f"{request.seed} {request.index}")
        chance, score = draw.random(), -draw.random()
        if chance < 0.1:
            return Result(request, failure="no code in the answer")
        program = Program(f"{request.index:016x}", "class Reward: ...", draw.randrange(5, 80), request.operator)
        program = replace(program, parents=request.parents)
        broken = Evaluation("runtime", "ZeroDivisionError: division by zero", "Traceback …")
        if chance < 0.2:
            return Result(request, program, broken)
        if chance < 0.3:
            score = -0.5
            program = replace(program, id="1" * 16)  # after the first program with this id, all others are duplicates
        if score < bar.floor and chance < 0.8:
            return Result(request, program, Evaluation("ok", "stopped early", bound=score))
        drafts = (Draft(replace(program, id=f"{request.index:08x}{'f' * 8}"), broken),) if chance > 0.9 else ()
        return Result(request, program, self.evaluation(request, score), drafts=drafts, notes={"opinion": "3"})

    def test_requests_are_numbered_and_the_search_ends_for_good(self) -> None:
        for lag in LAGS:
            search = self.make(0)
            found = drive(search, self.reply, lag)
            assert found.is_over, f"lag {lag}: no end"
            assert [each.index for each in found.requests] == list(range(len(found.requests)))
            assert search.ask() is None
            assert search.ask() is None

    def test_requests_of_one_call_follow_each_other_and_ask_the_same(self) -> None:
        for lag in LAGS:
            first = Request(0, "")
            for request in drive(self.make(0), self.reply, lag).requests:
                assert 0 <= request.sample < request.samples
                if request.sample == 0:
                    first = request
                index, version = first.index + request.sample, request.version
                assert request == replace(first, index=index, sample=request.sample, version=version)

    def test_parents_and_ancestors_are_programs_that_were_told(self) -> None:
        search = self.make(0)
        known: set[str] = set()

        def reply(request: Request, bar: Bar) -> Result:
            missing = {*request.parents, *request.ancestors} - known
            assert not missing, f"request {request.index} names {missing}, which nobody told"
            result = self.reply(request, bar)
            known.update([] if result.program is None else [result.program.id])
            return result

        drive(search, reply)

    def test_a_seed_and_a_lag_decide_everything(self) -> None:
        for lag in LAGS:
            random.seed(1)
            np.random.seed(1)
            one = drive(self.make(5), self.reply, lag)
            assert random.random() == random.Random(1).random(), "it draws from the process's generator"
            assert np.random.random() == np.random.RandomState(1).random(), "it draws from NumPy's generator"
            assert drive(self.make(5), self.reply, lag) == one
        assert drive(self.make(6), self.reply).requests != drive(self.make(5), self.reply).requests

    def test_looking_at_a_search_changes_nothing(self) -> None:
        for lag in LAGS:
            search = self.make(2)

            def reply(request: Request, bar: Bar, search: Search = search) -> Result:
                for _ in range(2):
                    _look(search)
                return self.reply(request, bar)

            assert drive(search, reply, lag) == drive(self.make(2), self.reply, lag)

    def test_waiting_once_more_changes_nothing(self) -> None:
        def waiting(search: Search) -> Drive:
            """Run the search. After each `Wait`, ask a second time, as a run may do."""
            ask = search.ask

            def asked() -> Request | Wait | None:
                found = ask()
                if isinstance(found, Wait):
                    assert isinstance(ask(), Wait)
                return found

            search.ask = asked  # type: ignore[method-assign]
            return drive(search, self.reply, max(LAGS))

        assert waiting(self.make(3)) == drive(self.make(3), self.reply, max(LAGS))

    def test_best_names_valid_programs_that_were_told(self) -> None:
        for lag in LAGS:
            found = drive(self.make(1), self.reply, lag)
            valid: set[str] = set()
            for result, best in zip(found.results, found.best, strict=True):
                program, evaluation = result.program, result.evaluation
                if program is not None and evaluation is not None and evaluation.valid and evaluation.complete:
                    valid.add(program.id)
                assert set(best) <= valid
                assert len(set(best)) == len(best), "a program twice"
            assert not valid or found.best[-1], "valid programs were told, and none is best"

    def test_nothing_but_failures(self) -> None:
        broken = Evaluation("syntax", "line 1: invalid syntax")
        replies: tuple[Reply, ...] = (
            fails,
            lambda request, _: Result(request, failure="nothing new", exhausted=True),
            lambda request, _: Result(request, Program(f"{request.index:016x}", "(", 0), broken),
        )
        for reply in replies:
            search = self.make(0)
            assert drive(search, reply, 3).is_over
            assert search.best == ()
            if isinstance(search, Deciding):
                search.finish()

    def test_the_same_program_again_and_again(self) -> None:
        search = self.make(0)
        program = Program("1" * 16, "class Reward: ...", 9)
        found = drive(search, lambda request, _: Result(request, program, self.evaluation(request, -0.5)), 3)
        assert found.is_over
        if isinstance(search, Deciding):
            search.finish()
        assert search.best == (program.id,)

    def test_fates_are_of_programs_that_were_told_with_a_reason(self) -> None:
        search = self.make(4)
        found = drive(search, self.reply, 3)
        fates = [*found.fates, *(search.finish() if isinstance(search, Deciding) else [])]
        told = {each.program.id for each in found.results if each.program is not None}
        for fate in fates:
            assert fate.program_id in told
            assert fate.verdict in VERDICTS
            assert fate.reason
            assert "\n" not in fate.reason

    def test_an_interrupted_search_goes_on_from_what_it_was_told(self) -> None:
        """As in a resumed run, the results of the first half come from the database."""
        for lag in LAGS:
            whole = drive(self.make(7), self.reply, lag)
            half = len(whole.results) // 2
            assert drive(self.make(7), self.reply, lag, half).results == whole.results[:half]
            kept = {each.request.index: _stored(each) for each in whole.results[:half]}
            again = drive(self.make(7), lambda request, bar: kept.get(request.index) or self.reply(request, bar), lag)  # noqa: B023
            assert again == whole

    def test_a_bar_is_two_numbers_and_has_no_floor_at_first(self) -> None:
        search = self.make(0)
        if not isinstance(search, Barred):
            return
        assert search.bar.floor == float("-inf")

        def reply(request: Request, bar: Bar) -> Result:
            assert not np.isnan([bar.floor, bar.elite]).any()
            return self.reply(request, bar)

        drive(search, reply)

    def test_generations_only_rise(self) -> None:
        search = self.make(0)
        if not isinstance(search, Generational):
            return
        seen = [search.generation]

        def reply(request: Request, bar: Bar) -> Result:
            seen.append(search.generation)
            return self.reply(request, bar)

        drive(search, reply, 3)
        assert seen[0] == 0
        assert seen == sorted(seen)
        assert search.generation > 0

    def test_every_program_is_decided_in_the_end(self) -> None:
        for most in (2, 5, LIMIT):
            search = self.make(8)
            if not isinstance(search, Deciding):
                return
            found = drive(search, self.reply, 1, most)
            told = {each.program.id for each in found.results if each.program is not None}
            assert set(search.undecided) <= told
            decided = {fate.program_id for fate in [*found.fates, *search.finish()]}
            assert decided == told
            assert not search.undecided

    def test_a_search_that_is_concluded_still_ends(self) -> None:
        for most in (1, 4):
            search = self.make(9)
            if not isinstance(search, Staged):
                return
            before = drive(search, self.reply, 1, most)
            assert not before.is_over
            more = search.conclude()
            after = drive(search, self.reply)
            assert after.is_over
            assert more or not after.requests
            assert [each.index for each in after.requests] == [most + n for n in range(len(after.requests))]


def _look(search: Search) -> None:
    """Read all public properties of a search."""
    assert isinstance(search.best, tuple)
    if isinstance(search, Generational):
        assert search.generation >= 0
    if isinstance(search, Barred):
        assert isinstance(search.bar, Bar)
    if isinstance(search, Deciding):
        assert isinstance(search.undecided, tuple)


def _stored(result: Result) -> Result:
    """The result, with the evaluation as the database of a run would return it."""
    found = result.evaluation
    return replace(result, evaluation=None if found is None else from_text(to_text(found)))
