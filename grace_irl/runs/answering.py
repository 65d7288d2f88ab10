"""The steps from a request to a result: the proposer's answer, static checks, a score, and follow-up calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from grace_irl.evaluate.evaluation import Bar, Barless, Evaluation, Evaluator
from grace_irl.programs.parsing import canonical
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import (
    Attempt,
    Follower,
    Following,
    LimitReached,
    Parent,
    Proposal,
    Proposer,
    Step,
    Stoppable,
    proposed,
)
from grace_irl.runs.budget import Meter
from grace_irl.runs.record import Record
from grace_irl.runs.store import Store
from grace_irl.sandbox.protocol import Inspection, Sandbox
from grace_irl.search.protocol import Draft, Request, Result
from grace_irl.work import Job, LocalExecutor

MAX_MESSAGE = 2_000  # maximum length of the stored message about the problems that static checks found, in characters


class Answering:
    """Concurrent processing of requests. If the store has the result of a request, this result is used again.

    Args:
        proposer: source of the answers.
        evaluator: source of the scores.
        sandbox: sandbox for the static checks of programs.
        store: database of the run.
        records: programs that the search has received, by id. The engine adds entries to this mapping.
        meter: object that stores new answers, and tells whether another call may be made.
        following: rule that chooses the next follow-up step after a result, for example a repair. It returns None to
            end the steps.
        evaluations: number of parallel evaluations. If the sandbox has more workers, their number applies instead.
    """

    def __init__(
        self,
        proposer: Proposer,
        evaluator: Evaluator,
        sandbox: Sandbox,
        store: Store,
        records: Mapping[str, Record],
        meter: Meter,
        following: Following,
        evaluations: int = 1,
    ) -> None:
        self._proposer = proposer
        self._store = store
        self._records = records
        self._meter = meter
        self._next = following
        self._notes: dict[str, Mapping[str, str]] = {}
        self._tried: dict[str, tuple[Attempt, ...]] = {}
        self._fresh: list[tuple[str, Attempt]] = []  # attempts of this generation, as (id of the parent, attempt)
        self._sketches: dict[str, str] = {}
        self._old = store.told()
        self._answered = store.answered()  # requests that an earlier sitting answered
        self._called: set[int] = set()  # groups (`Request.samples`) with a call in this sitting, by their first index
        self._old_records = store.records()
        self._ignores_bar = isinstance(evaluator, Barless) and evaluator.ignores_bar
        self._in_flight: dict[tuple[str, Bar], asyncio.Future[Evaluation]] = {}
        services: dict[str, Callable[..., Any]] = {
            "inspect": lambda source: sandbox.inspect(source),
            "evaluate": lambda program, bar: evaluator.evaluate([program], bar)[0],
            "verify": lambda program: evaluator.verify(program),
        }
        self._executor = LocalExecutor(max(evaluations, sandbox.workers), services, name="evaluate")

    async def answer(self, request: Request, bar: Bar, told: int) -> Result:
        """Return the result of a request, from the store or from new work.

        Args:
            request: the request.
            bar: limits on the score. A program with a lower score is evaluated less thoroughly.
            told: number of results that the search had received before this request. The answer must not depend on
                later results, because the speed of the work decides which of them have arrived.

        Raises:
            LimitReached: the result needs a call that a limit of the run forbids.
            SandboxError: the sandbox itself failed.
        """
        old = self._old.get(request.index)
        if old is not None:
            record = self._old_records[old.program_id] if old.program_id else None
            drafts = [self._old_records[name] for name in old.drafts]
            return Result(
                request,
                record.program if record else None,
                record.evaluation if record else None,
                old.failure,
                tuple(Draft(each.program, each.evaluation) for each in drafts),
                old.notes,
                old.exhausted,
            )
        parents = [self._parent(name) for name in (*request.parents, *request.ancestors)]
        index, group = request.index, request.index - request.sample
        proposal = self._store.proposal(index) if index in self._answered else None
        if proposal is None:
            if group not in self._called:
                self._require_call()
                self._called.add(group)
            proposal = await proposed(self._proposer, request, parents)
            if self._store.proposal(index) is None:  # else the proposer has stored all answers of the call
                self._meter.keep({index: proposal})
        result = await self._score(request, proposal, bar, told)
        return await self._followed(request, parents, result, bar, told)

    async def _followed(self, request: Request, parents: list[Parent], result: Result, bar: Bar, told: int) -> Result:
        """Take the follow-up steps after a first result, and return the last result.

        The rule `following` chooses each step. The steps end when the rule returns None, when a step brings no answer,
        or when a step that should write a program brings an answer without one.
        """
        # A known program has had its follow-up steps after an earlier request.
        known = result.program is not None and self._known(result.program.id, told) is not None
        done: list[Step] = []
        while not known and isinstance(self._proposer, Follower):
            step, program, evaluation = self._next(request, result, done), result.program, result.evaluation
            if step is None or program is None or evaluation is None:
                break
            attempt = len(done) + 1
            proposal = self._store.proposal(request.index, attempt)
            if proposal is None:
                self._require_call()
                version = Parent(program, evaluation, notes=result.notes)
                proposal = await self._proposer.follow(step, request, parents, version, attempt)
                if proposal is None:
                    break
                self._meter.keep({request.index: proposal}, attempt, step.operator)
            done.append(step)
            if not step.writes:
                result = replace(result, notes={**result.notes, step.operator: proposal.raw})
                continue
            again = await self._score(request, proposal, bar, told)
            if again.program is None:
                break
            drafts = (*result.drafts, Draft(program, evaluation))
            result = replace(again, drafts=drafts, notes=result.notes)
        return result

    def remember(self, result: Result) -> None:
        """Keep the parts of a result that later prompts may show: the notes and the attempt.

        The notes are texts that follow-up calls returned. The attempt holds the reasoning of the request's first
        answer, and the evaluation of the program's last version. Later prompts show the attempt with the request's
        first parent.
        """
        if result.program is not None and result.notes:
            self._notes.setdefault(result.program.id, result.notes)
        proposal = self._store.proposal(result.request.index)
        if result.request.parents and result.evaluation is not None and proposal is not None:
            attempt = Attempt(proposal.reasoning, result.evaluation)
            self._fresh.append((result.request.parents[0], attempt))

    def settle(self) -> None:
        """End a generation. From now on, prompts show the attempts of this generation.

        During a generation, prompts do not show its attempts. The number of requests in flight decides which results
        have arrived, and prompts must not depend on this number.
        """
        for parent, attempt in self._fresh:
            self._tried[parent] = (*self._tried.get(parent, ()), attempt)
        self._fresh.clear()

    async def verified(self, program: Program) -> str:
        """Compute the program's rewards on training and held-out data twice, in different orders (strict mode).

        Return the problem, for example rewards that differ; "" if there is none.
        """
        said: str = await self._done("verify", program=program)
        return said

    def forget(self, told: int) -> None:
        """Drop the finished evaluations of programs from the first `told` results.

        Call this method only if the search had received these results before it made the oldest request in flight. All
        requests in flight then find these programs in the records.
        """
        for key in [key for key, task in self._in_flight.items() if self._known(key[0], told) and task.done()]:
            del self._in_flight[key]

    def _known(self, name: str, told: int) -> Record | None:
        """The record of a program, if the program is in one of the first `told` results."""
        record = self._records.get(name)
        return record if record is not None and record.index < told else None

    def _require_call(self) -> None:
        if reached := self._meter.limit():
            raise LimitReached(reached)

    async def close(self) -> None:
        """Stop the proposer and cancel the evaluations. A program that already runs in the sandbox ends by itself."""
        if isinstance(self._proposer, Stoppable):
            await self._proposer.stop()
        for task in self._in_flight.values():
            task.cancel()
        self._executor.close()

    def _parent(self, name: str) -> Parent:
        record = self._records[name]
        if name not in self._sketches:
            proposal = self._store.proposal(record.index)
            self._sketches[name] = proposal.sketch if proposal else ""
        notes, tried = self._notes.get(name, {}), self._tried.get(name, ())
        return Parent(record.program, record.evaluation, self._sketches[name], notes, tried)

    async def _score(self, request: Request, proposal: Proposal, bar: Bar, told: int) -> Result:
        if proposal.failure or not proposal.source.strip():
            failure = proposal.failure or "no program in the answer"
            return Result(request, failure=failure, exhausted=proposal.exhausted)
        source = canonical(proposal.source)
        inspection: Inspection = await self._done("inspect", source=source)
        program = inspection.program(source, request.operator, request.parents, proposal.prior)
        name = program.id
        if inspection.problems:
            problems = "; ".join(inspection.problems)[:MAX_MESSAGE]
            return Result(request, program, Evaluation("rejected", problems))
        record = self._records.get(name) if self._ignores_bar else self._known(name, told)
        if record is not None:
            return Result(request, program, record.evaluation)
        # Two requests in flight may bring the same program. If evaluations depend on the bar, the program is scored
        # once per bar, because the result of a request must not depend on which request came first. Otherwise the
        # program is scored once.
        bar = Bar() if self._ignores_bar else bar
        if (name, bar) not in self._in_flight:
            self._in_flight[name, bar] = self._done("evaluate", program=program, bar=bar)
        evaluation = await asyncio.shield(self._in_flight[name, bar])
        return Result(request, program, evaluation)

    def _done(self, service: str, **arguments: Any) -> asyncio.Future[Any]:
        return asyncio.wrap_future(self._executor.submit(Job(service, arguments)))
