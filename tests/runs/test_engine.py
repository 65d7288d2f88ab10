"""The engine: order, overlap, duplicates, endings."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from grace_irl.errors import GraceError
from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.programs.program import Program
from grace_irl.propose.given import InThread
from grace_irl.propose.protocol import Parent, Proposal
from grace_irl.runs.budget import Meter
from grace_irl.runs.engine import ELITES, Engine, Snapshot
from grace_irl.runs.store import Store
from grace_irl.search.evolution import Evolution, EvolutionSettings
from grace_irl.search.independent import IndependentSearch, IndependentSettings
from grace_irl.search.protocol import COUNTED, Fate, Request, Wait
from grace_irl.search.tree import TreeSearch, TreeSettings
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.runs.engines import SETTINGS, Numbers, Values, make
from tests.runs.test_budget import budget


def test_results_are_told_in_the_order_of_asking(tmp_path: Path) -> None:
    snapshots: list[Snapshot] = []
    engine, store = make(tmp_path, Numbers(), Values(), snapshots=snapshots)
    assert asyncio.run(engine.run()).startswith("finished")
    assert list(store.told()) == list(range(12))
    told = [snapshot for snapshot in snapshots if snapshot.told]
    assert [snapshot.progress.calls for snapshot in told] == list(range(1, 13))
    assert [s.progress.generation for s in told if s.progress.generation_ended] == [1, 2, 3]
    assert told[-1].progress.tokens == 12 * 7
    answered = [snapshot.live for snapshot in snapshots if not snapshot.told]
    assert [live.tokens for live in answered] == [7 * n for n in range(1, 13)]
    assert max(live.in_flight for live in answered) == 3


def test_the_best_is_the_best_of_all(tmp_path: Path) -> None:
    engine, store = make(tmp_path, Numbers(), evaluator := Values())
    asyncio.run(engine.run())
    best = engine.finish()
    assert best is not None
    assert best.evaluation.score == max(record.evaluation.score for record in store.records().values())
    assert evaluator.strict[-1] == best.program.source
    assert len(set(evaluator.strict)) == len(evaluator.strict)


def test_a_winner_that_fails_strict_mode_makes_room_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    engine, _ = make(tmp_path / "a", Numbers(), Values())
    asyncio.run(engine.run())
    honest = engine.finish()
    assert honest is not None
    engine, store = make(tmp_path / "b", Numbers(), Values(cheats=[honest.program.source]))
    asyncio.run(engine.run())
    second = engine.finish()
    assert second is not None
    assert second.program.id != honest.program.id
    assert store.fates()[-1].fate == Fate(honest.program.id, "invalid", "mismatch in strict mode: caught")


def test_what_is_written_on_the_way_is_honest(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    told: list[str] = []
    engine, _ = make(tmp_path / "a", Numbers(), Values(), on_best=lambda r: told.append(r.program.source))
    asyncio.run(engine.run())
    assert told
    cheats, honest = told.copy(), []
    engine, _ = make(tmp_path / "b", Numbers(), Values(cheats), on_best=lambda r: honest.append(r.program.source))
    asyncio.run(engine.run())
    interrupted = engine.interrupt()
    assert interrupted is not None
    assert honest[-1] == interrupted.program.source
    assert not set(honest) & set(cheats)


def test_the_best_so_far_are_the_elites_of_a_search_without_a_bar(tmp_path: Path) -> None:
    class Distinct(Numbers):
        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            return Proposal(f"x = {request.index * 37 % 97}")

    class Barring(Values):
        def __init__(self) -> None:
            super().__init__()
            self.each: list[tuple[float, Bar]] = []

        def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
            found = super().evaluate(programs, bar)
            self.each += [(one.score, bar) for one in found]
            return found

    for folder in ("whole", "resumed"):
        (tmp_path / folder).mkdir()

    def run(folder: str, most: int) -> list[tuple[float, Bar]]:
        search = IndependentSearch(IndependentSettings(4 * COUNTED), 0)
        rules = budget(fruitless=100, max_calls=most)
        engine, _ = make(tmp_path / folder, Distinct(), evaluator := Barring(), rules=rules, lag=1, search=search)
        asyncio.run(engine.run())
        return evaluator.each

    whole = run("whole", 4 * COUNTED)
    scores = [score for score, _ in whole]
    for number, (_, bar) in enumerate(whole):
        before = number // COUNTED * COUNTED
        best = sorted(scores[:before], reverse=True)[:ELITES]
        assert bar == (Bar(elite=best[-1]) if before else Bar())
    assert len({bar for _, bar in whole}) == 4
    assert run("resumed", COUNTED + 9) + run("resumed", 4 * COUNTED) == whole


@pytest.mark.parametrize("lag", [1, 8])
def test_the_course_of_a_tree_does_not_depend_on_the_number_in_flight(tmp_path: Path, lag: int) -> None:
    """Half of the programs fail in strict mode, which only elites run in."""

    class Cheated(Values):
        def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
            found = super().evaluate(programs, bar)
            odd = [int(program.source.split("=")[1]) % 2 for program in programs]
            caught = Evaluation("mismatch", "caught")
            return [caught if one and each.score >= bar.elite else each for one, each in zip(odd, found, strict=True)]

    told = []
    for folder, number in (("one", 1), ("more", lag)):
        (tmp_path / folder).mkdir()
        search = TreeSearch(TreeSettings(programs=40), 0)
        engine, store = make(tmp_path / folder, Numbers(), Cheated(), lag=number, search=search)
        asyncio.run(engine.run())
        told.append([(each.program.source, each.evaluation.status) for each in store.records().values()])
    assert told[0] == told[1]
    assert len({status for _, status in told[0]}) == 2


def test_time_is_up_though_the_proposer_still_computes(tmp_path: Path) -> None:
    released = threading.Event()

    class Slow(Numbers):
        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            if request.index == 3:
                released.wait()  # for ever, as far as the run is concerned: it is released only below
            return await super().propose(request, parents)

    proposer = InThread(Slow())
    engine, store = make(tmp_path, proposer, Values(), rules=budget(max_seconds=0.3))
    reason = asyncio.run(engine.run())
    assert not released.is_set()
    released.set()
    assert reason.startswith("max_seconds")
    assert len(store.told()) == 3
    assert engine.progress.seconds >= 0.3
    best = engine.finish()
    assert best is not None
    assert best.evaluation.score == max(record.evaluation.score for record in store.records().values())


def test_parents_come_with_their_sketch(tmp_path: Path) -> None:
    proposer = Numbers()
    engine, store = make(tmp_path, proposer, Values())
    asyncio.run(engine.run())
    records = store.records()
    handed = [parents[0] for parents in proposer.parents if parents]
    assert len(handed) == 8
    assert all(p.sketch == f"sketch of {records[p.program.id].index}" for p in handed)


def test_a_program_is_scored_once(tmp_path: Path) -> None:
    class Same(Numbers):
        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            del parents
            return Proposal(f"x = {request.index % 2}")

    evaluator = Values()
    engine, store = make(tmp_path, Same(), evaluator, lag=4, settings=EvolutionSettings(4, 1, 0))
    asyncio.run(engine.run())
    assert sorted(evaluator.scored) == ["x = 0", "x = 1"]
    assert len(store.records()) == 2
    assert [row.fate.verdict for row in store.fates()].count("duplicate") == len(store.told()) - 2


@pytest.mark.parametrize(("ignores", "times"), [(True, 1), (False, 2)])
def test_an_evaluator_that_ignores_the_bar_scores_a_program_once(tmp_path: Path, ignores: bool, times: int) -> None:
    class Asked(Values):
        ignores_bar = ignores

    class Same(Numbers):
        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            del parents
            return Proposal("x = 7" if request.index in (16, 18) else f"x = {20 + request.index}")

    evaluator = Asked()
    search = IndependentSearch(IndependentSettings(24), 0)
    engine, _ = make(tmp_path, Same(), evaluator, search=search, lag=8)
    asyncio.run(engine.run())
    assert evaluator.scored.count("x = 7") == times


def test_proposals_in_flight_overlap(tmp_path: Path) -> None:
    class Counting(Numbers):
        now = most = 0

        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            self.now += 1
            self.most = max(self.most, self.now)
            answer = await super().propose(request, parents)
            self.now -= 1
            return answer

    proposer = Counting()
    engine, _ = make(tmp_path, proposer, Values(), lag=3)
    asyncio.run(engine.run())
    assert proposer.most == 3


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Proposal("", "exhausted by the work"), "no program in 10"),  # words alone say nothing
        (Proposal("", "nothing new", exhausted=True), "exhausted: the proposer"),
    ],
)
def test_a_proposer_without_answers_does_not_spin(tmp_path: Path, failure: Proposal, said: str) -> None:
    proposer = Numbers(failure)
    engine, store = make(tmp_path, proposer, Values(), rules=budget(fruitless=10), settings=EvolutionSettings())
    assert asyncio.run(engine.run()).startswith(said)
    assert engine.finish() is None
    assert len(store.told()) <= 10
    assert {told.exhausted for told in store.told().values()} == {failure.exhausted}
    assert len(proposer.parents) <= 10 + 3


def test_max_calls_is_exact(tmp_path: Path) -> None:
    proposer = Numbers()
    engine, store = make(tmp_path, proposer, Values(), rules=budget(max_calls=6))
    assert asyncio.run(engine.run()).startswith("max_calls")
    assert len(store.told()) == len(proposer.parents) == 6
    best = engine.finish()
    assert best is not None
    assert best.evaluation.score == max(record.evaluation.score for record in store.records().values())


def test_answers_that_are_kept_are_not_asked_for_again(tmp_path: Path) -> None:
    first, store = make(tmp_path, Numbers(), Values(), rules=budget(max_calls=6))
    asyncio.run(first.run())
    store.close()
    proposer, evaluator = Numbers(), Values()
    second, store = make(tmp_path, proposer, evaluator)
    asyncio.run(second.run())
    assert len(proposer.parents) == 6
    assert len(store.told()) == 12
    assert second.progress.tokens == 12 * 7


def test_answers_that_wait_for_an_earlier_one_count_under_a_cap(tmp_path: Path) -> None:
    class FirstLast(Numbers):
        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            if request.index == 0:
                await asyncio.sleep(0.1)
            return await super().propose(request, parents)

    proposer = FirstLast()
    engine, store = make(tmp_path, proposer, Values(), rules=budget(max_tokens=14))
    assert asyncio.run(engine.run()) == "max_tokens: 21 tokens"
    assert len(proposer.parents) == len(store.told()) == 3  # those in flight are paid for, so they are taken in
    assert engine.progress.tokens == 21
    store.close()
    again, store = make(tmp_path, proposer, Values(), rules=budget(max_tokens=14))
    assert asyncio.run(again.run()) == "max_tokens: 21 tokens"
    assert again.progress.calls == len(proposer.parents) == 3
    store.close()
    longer, store = make(tmp_path, proposer, Values())
    asyncio.run(longer.run())
    (tmp_path / "whole").mkdir()
    whole, _ = make(tmp_path / "whole", Numbers(), Values())
    asyncio.run(whole.run())
    assert list(longer.records) == list(whole.records)
    assert longer.progress.tokens == whole.progress.tokens == 12 * 7


def test_the_line_of_a_resumed_run_begins_with_what_was_spent(tmp_path: Path) -> None:
    first, store = make(tmp_path, Numbers(), Values(), rules=budget(max_calls=6))
    asyncio.run(first.run())
    store.close()
    snapshots: list[Snapshot] = []
    second, _ = make(tmp_path, Numbers(), Values(), snapshots=snapshots)
    asyncio.run(second.run())
    assert snapshots[0].live.tokens == 6 * 7


def test_the_time_of_all_sittings_counts(tmp_path: Path) -> None:
    class Slow(Numbers):
        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            self.parents.append(parents)
            await asyncio.sleep(60)
            raise AssertionError(request)

    proposer = Slow()
    for _ in range(2):
        engine, store = make(tmp_path, proposer, Values(), rules=budget(max_seconds=0.2), lag=1)
        assert asyncio.run(engine.run()).startswith("max_seconds: 0.2")
        assert store.seconds() >= 0.2
        store.close()
    assert len(proposer.parents) == 1  # the second sitting has no time left, so it asks for nothing


def test_an_evaluator_that_breaks_ends_the_run_with_its_error(tmp_path: Path) -> None:
    class Broken(Values):
        def evaluate(self, *_: object) -> list[Evaluation]:
            raise GraceError("the sandbox is gone")

    engine, _ = make(tmp_path, Numbers(), Broken())
    with pytest.raises(GraceError, match="the sandbox is gone"):
        asyncio.run(engine.run())


def test_a_search_that_waits_for_nothing_is_a_defect(tmp_path: Path) -> None:
    class Stuck(Evolution):
        def ask(self) -> Request | Wait | None:
            return Wait()

    engine = Engine(
        search=Stuck(SETTINGS, 0),
        proposer=Numbers(),
        evaluator=Values(),
        sandbox=InProcessSandbox(),
        store=(store := Store(tmp_path / "run.db", create=True)),
        meter=Meter(store, budget()),
        lag=2,
    )
    with pytest.raises(GraceError, match="waits"):
        asyncio.run(engine.run())


def test_syntax_errors_are_invalid_programs(tmp_path: Path) -> None:
    class Broken(Numbers):
        async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
            del parents
            return Proposal("x = (" if request.index % 2 else f"x = {request.index}")

    evaluator = Values()
    engine, store = make(tmp_path, Broken(), evaluator, settings=EvolutionSettings(4, 1, 0))
    asyncio.run(engine.run())
    invalid = [row.fate for row in store.fates() if row.fate.verdict == "invalid"]
    assert len(invalid) == 1  # the same broken text again is a duplicate
    assert "line 1" in invalid[0].reason
    assert "x = (" not in evaluator.scored


def test_requests_are_kept_with_what_asked_for_them(tmp_path: Path) -> None:
    engine, store = make(tmp_path, Numbers(), Values())
    asyncio.run(engine.run())
    expected = {i: (0, "initialise") if i < 4 else (i // 4, "mutate") for i in range(12)}
    assert store.requests() == expected
