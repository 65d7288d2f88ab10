"""The loop: ask, propose, evaluate, tell (ARCHITECTURE: Protocols; docs/runs.md)."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from grace_irl.errors import GraceError
from grace_irl.evaluate.evaluation import EQUAL, Evaluation
from grace_irl.evaluate.protocol import Bar, Evaluator
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Parent, Proposal, Proposer
from grace_irl.runs.budget import Budget, Progress
from grace_irl.runs.store import Record, Store
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.search.evolution import is_exhausted
from grace_irl.search.protocol import Fate, Request, Result, Search, Wait
from grace_irl.search.ranks import Scored, winner

MAX_MESSAGE = 2_000  # characters of an invalid program's problems that are kept


@dataclass(frozen=True)
class Snapshot:
    """What a progress display may show, after each told result.

    Attributes:
        programs: different programs told.
        replayed: this result came from the store.
    """

    progress: Progress
    best: Record | None
    programs: int
    replayed: bool


class Engine:
    """Runs a search to its end, or to where it is interrupted.

    Requests in flight are proposed and evaluated side by side; results are told in the order of asking, and
    as soon as one is told everything that may be asked is asked. So what the search sees depends on nothing
    but the answers. A result that the store holds already is told again without being made again: resuming is
    the same loop.
    """

    def __init__(
        self,
        *,
        search: Search,
        proposer: Proposer,
        evaluator: Evaluator,
        sandbox: Sandbox,
        store: Store,
        budget: Budget,
        lag: int,
        on_told: Callable[[Snapshot], None] = lambda _: None,
        on_best: Callable[[Record], None] = lambda _: None,
    ) -> None:
        self._search = search
        self._proposer = proposer
        self._evaluator = evaluator
        self._sandbox = sandbox
        self._store = store
        self._budget = budget
        self._lag = lag
        self._on_told = on_told
        self._on_best = on_best
        self._records: dict[str, Record] = {}
        self._sketches: dict[str, str] = {}
        self._progress = Progress()
        self._old = store.told()
        self._old_records = store.records()
        self._tokens = store.tokens()
        self._earlier_seconds = max((told.seconds for told in self._old.values()), default=0.0)
        self._started = time.monotonic()
        self._in_flight: dict[tuple[str, Bar], asyncio.Task[Evaluation]] = {}
        self._pool = ThreadPoolExecutor(max_workers=max(1, sandbox.workers), thread_name_prefix="evaluate")
        self._best: Record | None = None
        self._shown: Record | None = None

    @property
    def progress(self) -> Progress:
        """Where the run stands."""
        return self._progress

    @property
    def records(self) -> dict[str, Record]:
        """Programs told so far, by id."""
        return dict(self._records)

    async def run(self) -> str:
        """Runs until a stop rule or the search ends it; returns why, in a few words.

        Raises:
            GraceError: the recorded run cannot be replayed, or the search waits for nothing.
            SandboxError: the sandbox itself failed.
        """
        asked: deque[tuple[Request, asyncio.Task[Result]]] = deque()
        count = 0
        try:
            while True:
                answer: Request | Wait | None = None
                while len(asked) < self._lag and self._budget.may_ask(count):
                    answer = self._search.ask()
                    if not isinstance(answer, Request):
                        break
                    self._store.add_request(answer, self._search.generation)
                    bar = Bar(self._search.floor, self._search.elite_floor)
                    asked.append((answer, asyncio.create_task(self._answer(answer, bar))))
                    count += 1
                if not asked:
                    if isinstance(answer, Wait):
                        raise GraceError("the search waits, but nothing is in flight: this is a defect of the search")
                    return "finished: every generation is done"
                _, task = asked.popleft()
                self._tell(await task)
                reason = self._budget.check(self._progress)
                if reason:
                    return reason
        finally:
            for _, task in asked:
                task.cancel()
            await asyncio.gather(*(task for _, task in asked), return_exceptions=True)
            for evaluation in self._in_flight.values():
                evaluation.cancel()
            self._pool.shutdown(wait=False, cancel_futures=True)

    def finish(self) -> Record | None:
        """Decides what is undecided, and returns the best program that keeps its rewards in strict mode."""
        fates = self._search.finish()
        while (best := self._winner()) is not None:
            problem = self._evaluator.verify(best.program)
            if not problem:
                break
            fates.append(Fate(best.program.id, "invalid", problem))
            invalid = Evaluation("mismatch", problem)
            self._records[best.program.id] = replace(best, evaluation=invalid)
        last = self._progress.calls - 1
        self._store.set_final_fates(fates, last, self._search.generation)
        self._set_best(best)
        return best

    def interrupt(self) -> Record | None:
        """The best program so far, for a run that is interrupted; decides nothing."""
        told = (record for record in self._records.values() if record.evaluation.complete)
        best = self._best_of(told)
        self._set_best(best)
        return best

    def _winner(self) -> Record | None:
        return self._best_of(self._records[name] for name in self._search.population)

    def _best_of(self, records: Iterable[Record]) -> Record | None:
        best = winner(Scored(r.program, r.evaluation, r.index) for r in records if r.evaluation.valid)
        return None if best is None else self._records[best.program.id]

    def _set_best(self, best: Record | None) -> None:
        if best is not None and (self._best is None or best.program.id != self._best.program.id):
            self._on_best(best)
        self._best = best

    async def _answer(self, request: Request, bar: Bar) -> Result:
        told = self._old.get(request.index)
        if told is not None:
            if told.program_id is None:
                return Result(request, failure=told.failure)
            record = self._old_records[told.program_id]
            return Result(request, record.program, record.evaluation)
        proposal = self._store.proposal(request.index)
        if proposal is None:
            parents = [self._parent(name) for name in request.parents]
            proposal = await self._proposer.propose(request, parents)
            self._store.add_proposal(request.index, proposal)
        self._tokens[request.index] = proposal.tokens_in + proposal.tokens_out
        if proposal.failure or not proposal.source.strip():
            return Result(request, failure=proposal.failure or "no program in the answer")
        return await self._score(request, proposal, bar)

    def _parent(self, name: str) -> Parent:
        record = self._records[name]
        if name not in self._sketches:
            proposal = self._store.proposal(record.index)
            self._sketches[name] = proposal.sketch if proposal else ""
        return Parent(record.program, record.evaluation, self._sketches[name])

    async def _score(self, request: Request, proposal: Proposal, bar: Bar) -> Result:
        loop = asyncio.get_running_loop()
        inspection = await loop.run_in_executor(self._pool, self._sandbox.inspect, proposal.source)
        name = inspection.id or hashlib.sha256(proposal.source.encode()).hexdigest()[:16]
        program = Program(name, proposal.source, inspection.nodes, request.operator, request.parents, proposal.prior)
        if inspection.problems:
            problems = "; ".join(inspection.problems)[:MAX_MESSAGE]
            return Result(request, program, Evaluation("rejected", problems))
        if name in self._records:
            return Result(request, program, self._records[name].evaluation)
        # Two requests in flight may give the same program: it is scored once. The bar is part of the key,
        # because what an evaluation holds depends on it, and must not depend on which of the two came first.
        if (name, bar) not in self._in_flight:
            future = loop.run_in_executor(self._pool, self._evaluator.evaluate, [program], bar)
            self._in_flight[name, bar] = asyncio.create_task(_first(future))
        evaluation = await asyncio.shield(self._in_flight[name, bar])
        return Result(request, program, evaluation)

    def _tell(self, result: Result) -> None:
        index = result.request.index
        old = self._old.get(index)
        generation = self._search.generation
        if result.program is not None and result.evaluation is not None:
            record = Record(result.program, result.evaluation, index)
            self._records.setdefault(result.program.id, record)
        fates = self._search.tell(result)
        ended = self._search.generation > generation
        now = self._earlier_seconds + time.monotonic() - self._started
        seconds = now if old is None else old.seconds
        if old is None:
            self._store.add_told(result, fates, generation, seconds)
        self._advance(result, ended, seconds)
        if ended and old is None:
            self._set_best(self._winner())
        if result.program is not None and result.program.id in self._records:
            new = self._records[result.program.id]
            if new.evaluation.complete:
                self._shown = self._best_of([new] if self._shown is None else [self._shown, new]) or self._shown
        self._on_told(Snapshot(self._progress, self._shown, len(self._records), old is not None))

    def _advance(self, result: Result, ended: bool, seconds: float) -> None:
        """Counts."""
        before = self._progress
        best, stale = before.best, before.stale
        if ended:
            found = self._winner()
            metrics = found.evaluation.train if found else None
            better = metrics is not None and (best is None or metrics.fitness > best.fitness + EQUAL)
            best, stale = metrics, 0 if better else stale + 1
        self._progress = Progress(
            calls=before.calls + 1,
            tokens=before.tokens + self._tokens.get(result.request.index, 0),
            seconds=seconds,
            generation=self._search.generation,
            generation_ended=ended,
            best=best,
            stale=stale,
            fruitless=0 if result.program else before.fruitless + 1,
            exhausted=before.exhausted + 1 if is_exhausted(result.failure) else 0,
        )


async def _first(future: asyncio.Future[list[Evaluation]]) -> Evaluation:
    return (await future)[0]
