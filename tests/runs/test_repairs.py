"""Repairs: a program that fails goes back to the model once, and a resumed run follows the repairs that it has."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from grace_irl.propose.protocol import Parent, Proposal, Step
from grace_irl.search.independent import IndependentSearch, IndependentSettings
from grace_irl.search.protocol import Request
from tests.runs.engines import Numbers, Values, make
from tests.runs.test_budget import budget


class Mending(Numbers):
    """Its even answers do not parse; a repair gives what was meant, but for request 2."""

    def __init__(self) -> None:
        super().__init__()
        self.repaired: list[int] = []

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        proposal = await super().propose(request, parents)
        broken = request.index % 2 == 0
        return replace(proposal, source=f"x = ({request.index}") if broken else proposal

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], failed: Parent, attempt: int
    ) -> Proposal:
        assert (step.operator, attempt) == ("repair", 1)
        self.repaired.append(request.index)
        assert failed.evaluation.status == "rejected"
        assert failed.program.source == f"x = ({request.index}"
        if request.index == 2:
            return Proposal("", failure="no answer", tokens_in=1)
        return Proposal(f"x = {request.index}", tokens_in=1)


def test_a_program_that_fails_is_sent_back_once(tmp_path: Path) -> None:
    proposer = Mending()
    engine, store = make(tmp_path, proposer, Values())
    asyncio.run(engine.run())
    even = list(range(0, len(store.told()), 2))
    assert sorted(proposer.repaired) == even
    assert engine.progress.tokens == 7 * len(store.told()) + len(even)
    told, records = store.told(), store.records()
    assert records[told[0].program_id or ""].program.source == "x = 0"
    assert records[told[0].drafts[0]].program.source == "x = (0"
    fates = {row.fate.program_id: row.fate for row in store.fates()}
    assert fates[told[0].drafts[0]].verdict == "repaired"
    assert "line 1" in fates[told[0].drafts[0]].reason
    assert told[2].drafts == ()
    assert fates[told[2].program_id or ""].verdict == "invalid"


def test_a_repair_that_is_kept_is_not_asked_for_again(tmp_path: Path) -> None:
    first, store = make(tmp_path, Mending(), Values(), rules=budget(max_calls=5))
    asyncio.run(first.run())
    before = store.told(), store.records()
    store.close()
    proposer = Mending()
    second, store = make(tmp_path, proposer, Values())
    asyncio.run(second.run())
    assert min(proposer.repaired) >= 5
    assert {index: told for index, told in store.told().items() if index < 5} == before[0]
    assert set(before[1]) <= set(second.records)


class Twice:
    """Its first two answers are the same program, which fails; the second comes late. Repairs differ."""

    def __init__(self, late: float = 0.0) -> None:
        self.late = late

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        del parents
        if request.index == 1:
            await asyncio.sleep(self.late)
        return Proposal("x = (" if request.index < 2 else f"x = {50 + request.index}")

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], failed: Parent, attempt: int
    ) -> Proposal | None:
        del step, parents, failed, attempt
        return Proposal(f"x = {30 - request.index}")


class Silent:
    """Has no answers."""

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        raise AssertionError((request, parents))

    async def follow(
        self, step: Step, request: Request, parents: Sequence[Parent], failed: Parent, attempt: int
    ) -> Proposal | None:
        raise AssertionError((step, request, parents, failed, attempt))


@pytest.mark.parametrize("late", [0.0, 0.3])
def test_a_failing_program_that_two_requests_bring_is_repaired_twice_at_any_speed(tmp_path: Path, late: float) -> None:
    search = IndependentSearch(IndependentSettings(4), 0)
    engine, store = make(tmp_path, Twice(late), Values(), search=search, lag=4)
    asyncio.run(engine.run())
    sources = sorted(each.program.source for each in store.records().values())
    assert sources == ["x = (", "x = 29", "x = 30", "x = 52", "x = 53"]


def test_a_resumed_run_follows_the_repairs_that_it_has(tmp_path: Path) -> None:
    whole, store = make(tmp_path, Twice(), Values(), search=IndependentSearch(IndependentSettings(4), 0), lag=4)
    asyncio.run(whole.run())
    told = store.told()
    store.close()
    with closing(sqlite3.connect(tmp_path / "run.db")) as database, database:
        for table in ("results", "fates", "programs"):
            database.execute(f"DELETE FROM {table} WHERE idx >= 1")
    again, store = make(tmp_path, Silent(), Values(), search=IndependentSearch(IndependentSettings(4), 0), lag=4)
    asyncio.run(again.run())
    assert again.records.keys() == whole.records.keys()
    assert [each.program_id for each in store.told().values()] == [each.program_id for each in told.values()]
