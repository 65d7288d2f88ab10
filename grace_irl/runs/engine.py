"""The main loop of a run (docs/runs.md, "The loop").

The engine gets requests from the search. For each request, it gets a program from the proposer, and the program's score
from the evaluator. Then it passes the result to the search.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from heapq import nlargest

from grace_irl.errors import GraceError
from grace_irl.evaluate.evaluation import EQUAL, Bar, Evaluation, Evaluator
from grace_irl.methods.account import Account
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Following, LimitReached, Proposal, Proposer, repairs
from grace_irl.runs.answering import Answering
from grace_irl.runs.budget import Meter, Progress
from grace_irl.runs.record import Record, candidate
from grace_irl.runs.store import Store
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.search.protocol import (
    COUNTED,
    Barred,
    Deciding,
    Fate,
    Generational,
    Request,
    Result,
    Search,
    Staged,
    Wait,
)
from grace_irl.search.ranks import merit, winner

ELITES = 4
"""Number of best programs that count as elites (`Bar.elite`) if the search has no bar of its own (`Barred`). GRACE's
evolution has the same number of elites."""

Prefers = Callable[[Sequence[Record], Sequence[Record]], Record]
"""Function that chooses the best program of a run. Its arguments are the valid programs in `Search.best`, best first,
and all programs of the run, valid or not."""


@dataclass(frozen=True)
class Live:
    """Counts of requests, answers and tokens for the progress display.

    A sitting is the time from a start or resume of a run until the run next stops.

    Attributes:
        in_flight: number of requests without a result yet.
        answers: number of answers in this sitting.
        tokens: number of input and output tokens in all sittings.
        cost: cost of these tokens, in the currency of the configured prices.
        seconds: duration of the last call, in seconds.
    """

    in_flight: int = 0
    answers: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """The content of the progress display after an answer or a result.

    Attributes:
        progress: state of the run after the last result.
        seconds: search time until now, in seconds, in all sittings.
        best: the best program so far, or None.
        headline: score of the best program in a few words; "" if there is none.
        programs: number of different scored programs.
        live: counts of requests, answers and tokens.
        told: True after a result, False after an answer whose result is still open.
        replayed: whether the result is from an earlier sitting (see `Live`), read from the store.
        generations: number of all generations of the longest run; None if not known.
        brief: the most important figure of `headline`; "" if there is no best program.
    """

    progress: Progress
    seconds: float
    best: Record | None
    headline: str
    programs: int
    live: Live
    told: bool
    replayed: bool
    generations: int | None = None
    brief: str = ""


class Engine:
    """The loop that runs a search to its end, or to an interruption.

    The engine keeps up to `lag` requests in flight, which are answered and evaluated concurrently. The search receives
    the results in the order of the requests, and the engine asks for a new request after each result. So the course of
    the search depends only on the answers, not on their timing.

    A resumed run repeats the same loop from its first request. If the store has the result of a request, the search
    receives it without a new answer.
    """

    def __init__(
        self,
        *,
        search: Search,
        proposer: Proposer,
        evaluator: Evaluator,
        sandbox: Sandbox,
        store: Store,
        meter: Meter,
        lag: int,
        account: Account = Account(),
        following: Following = repairs(1),
        generations: int | None = None,
        on_change: Callable[[Snapshot], None] = lambda _: None,
        on_best: Callable[[Record], None] = lambda _: None,
        prefer: Prefers = lambda order, _: order[0],
        evaluations: int = 1,
    ) -> None:
        self._search = search
        self._evaluator = evaluator
        self._store = store
        self._meter = meter
        self._budget = meter.budget
        meter.on_answer = self._show_answer
        self._lag = lag
        self._account = account
        self._on_change = on_change
        self._on_best = on_best
        self._prefer = prefer
        if isinstance(search, Staged):
            search.prefer = lambda: found.program.id if (found := self._preferred()) else None
        self._generations = generations
        self._records: dict[str, Record] = {}
        self._answering = Answering(proposer, evaluator, sandbox, store, self._records, meter, following, evaluations)
        self._live = Live(tokens=meter.tokens, cost=meter.cost)
        self._progress = Progress()
        self._concluded = ""  # reason why the first stage of the search ended, if another stage follows; else ""
        self._old = store.told()
        self._leaders: list[float] = []  # scores of the best programs so far, at most `ELITES`, highest first
        self._elites = Bar()  # the bar of a search without one of its own
        self._verified: dict[str, str] = {}  # result of strict mode by program id: the problem, or ""
        self._written: Record | None = None
        self._told = 0
        self._best: Record | None = None  # first valid program of `Search.best` when the last generation ended
        self._shown: Record | None = None  # best program of all results so far

    @property
    def progress(self) -> Progress:
        """The state of the run after the last result, with the tokens and the cost of all answers so far."""
        return replace(self._progress, tokens=self._meter.tokens, cost=self._meter.cost)

    @property
    def records(self) -> dict[str, Record]:
        """All programs that the search has received so far, by id."""
        return dict(self._records)

    async def run(self) -> str:
        """Run until a stop rule or the search ends the run, and return the reason in a few words.

        Raises:
            GraceError: a request of a resumed run differs from the stored one, the model's server is lost, or the
                search waits for a result although no request is in flight.
            SandboxError: the sandbox itself failed.
        """
        asked: deque[asyncio.Task[Result]] = deque()
        count = 0
        try:
            while True:
                answer: Request | Wait | None = None
                while len(asked) < self._lag and self._budget.may_ask(count):
                    answer = self._search.ask()
                    if not isinstance(answer, Request):
                        break
                    self._store.add_request(answer, self._generation)
                    asked.append(asyncio.create_task(self._answering.answer(answer, self._bar, self._told)))
                    count += 1
                self._live = replace(self._live, in_flight=len(asked))
                if not asked:
                    if isinstance(answer, Wait):
                        raise GraceError("the search waits, but nothing is in flight: this is a defect of the search")
                    return self._concluded or "finished: the search is over"
                # No time limit applies to results of earlier sittings, which come from the store.
                left = None if self._told < len(self._old) else self._budget.seconds_left(self._meter.seconds)
                done, _ = await asyncio.wait({asked[0]}, timeout=left)
                if not done:
                    return self._stopped_by(self._budget.may_call(0, 0.0, self._meter.seconds))
                try:
                    result = asked.popleft().result()
                except LimitReached as reached:
                    return self._stopped_by(self._meter.limit() or str(reached))
                await self._tell(result)
                reason = self._budget.check(self._progress)
                if reason and (self._budget.spent(self._progress) or not self._concludes()):
                    return reason
                self._concluded = self._concluded or reason
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            await self._answering.close()
            with suppress(GraceError):  # the disk may be full
                self._meter.close()

    def _stopped_by(self, reason: str) -> str:
        self._progress = replace(self._progress, seconds=self._meter.seconds, generation_ended=False)
        return reason

    @property
    def _bar(self) -> Bar:
        """The bar of the next evaluation.

        If the search has no bar of its own (`Barred`), the `ELITES` best programs of all complete generations are the
        elites, and the lowest of their scores is `Bar.elite`. This bar does not depend on the number of requests in
        flight, if no generation begins before the previous one has ended.
        """
        return self._search.bar if isinstance(self._search, Barred) else self._elites

    def finish(self) -> Record | None:
        """Decide all open fates of programs, such as "kept", and return the best program that passes strict mode.

        Strict mode computes all rewards twice, in different orders, and requires equal results.
        """
        fates = self._search.finish() if isinstance(self._search, Deciding) else []
        while (best := self._preferred()) is not None:
            problem = self._verify(best)
            if not problem:
                break
            fates.append(Fate(best.program.id, "invalid", problem))
            invalid = Evaluation("mismatch", problem)
            self._records[best.program.id] = replace(best, evaluation=invalid)
        if best is not None and best.program.id not in self._search.best:
            best = self._completed(best)
        last = self._progress.calls - 1
        self._store.set_final_fates(fates, last, self._generation)
        self._write(best)
        return best

    def interrupt(self) -> Record | None:
        """Return the best program so far that passes strict mode (see `finish`).

        Open fates of programs are not decided before the run is resumed.
        """
        undecided = self._search.undecided if isinstance(self._search, Deciding) else ()
        left = [self._records[name] for name in dict.fromkeys((*self._search.best, *undecided))]
        while (best := _best_of(left) if undecided else next(iter(left), None)) is not None and self._verify(best):
            left = [record for record in left if record.program.id != best.program.id]
        self._write(best)
        return best

    def _winner(self) -> Record | None:
        found = (self._records[name] for name in self._search.best)
        return next((record for record in found if record.evaluation.valid), None)

    def _preferred(self) -> Record | None:
        """The best program: the reshaped version that the search kept, if any, else the program that `prefer` chooses.

        The result is None without a valid program.
        """
        left = [record for record in (self._records[name] for name in self._search.best) if record.evaluation.valid]
        if not left or left[0].program.operator == "reshape":
            return left[0] if left else None
        return self._prefer(left, tuple(self._records.values()))

    @property
    def _generation(self) -> int:
        """Number of complete generations. If the search has no generations, `COUNTED` results are one generation."""
        return self._search.generation if isinstance(self._search, Generational) else self._told // COUNTED

    def _completed(self, record: Record) -> Record:
        """Evaluate a program again, completely, and store the result.

        `prefer` may choose a program that the search dropped. If its score was below `Bar.floor`, the first evaluation
        lacks figures, such as those on held-out data. The program need not run again, because strict mode has put all
        its rewards into the cache.
        """
        (found,) = self._evaluator.evaluate([record.program], Bar(elite=float("inf")))
        evaluation = replace(found, seconds=record.evaluation.seconds + found.seconds)
        self._store.set_evaluation(record.program.id, evaluation)
        self._records[record.program.id] = replace(record, evaluation=evaluation)
        return self._records[record.program.id]

    def _concludes(self) -> bool:
        return isinstance(self._search, Staged) and self._search.conclude()

    def _verify(self, record: Record) -> str:
        """Check a program over all data in strict mode, at most once. Return the problem, or ""."""
        name = record.program.id
        if name not in self._verified:
            self._verified[name] = self._evaluator.verify(record.program)
        return self._verified[name]

    def _write(self, best: Record | None) -> None:
        if best is not None and (self._written is None or best.program.id != self._written.program.id):
            self._on_best(best)
            self._written = best

    async def _tell(self, result: Result) -> None:
        index = result.request.index
        old = self._old.get(index)
        generation = self._generation
        known = self._records.get(result.program.id) if result.program is not None else None
        if known is not None:  # the store keeps the first evaluation of a program; the new one may have another bar
            result = replace(result, evaluation=known.evaluation)
        for program, evaluation in _scored(result):
            self._records.setdefault(program.id, Record(program, evaluation, index))
        self._answering.remember(result)
        fates = self._search.tell(result)
        self._told += 1
        self._answering.forget(self._told - self._lag)
        fates = [*_sent_back(result), *fates]
        ended = self._generation > generation
        if result.evaluation is not None and result.evaluation.valid and known is None:
            self._leaders = nlargest(ELITES, [*self._leaders, result.evaluation.score])
        if ended:
            self._answering.settle()
            if len(self._leaders) == ELITES:
                self._elites = Bar(elite=self._leaders[-1])
        seconds = self._meter.seconds if old is None else old.seconds
        if old is None:
            self._store.add_told(result, fates, generation, seconds)
        self._advance(result, ended, seconds)
        if ended and old is None and self._best is not None:
            name = self._best.program.id
            if name not in self._verified:
                self._verified[name] = await self._answering.verified(self._best.program)
            if not self._verified[name]:
                self._write(self._best)
        if result.program is not None:
            new = self._records[result.program.id]
            if new.evaluation.complete:
                self._shown = _best_of([new] if self._shown is None else [self._shown, new]) or self._shown
        self._show(told=True, replayed=old is not None)

    def _show_answer(self, proposal: Proposal) -> None:
        """Count an answer. The search may receive its result later, after the results of earlier requests."""
        live, meter = self._live, self._meter
        self._live = replace(
            live,
            answers=live.answers + 1,
            tokens=meter.tokens,
            cost=meter.cost,
            seconds=proposal.seconds or live.seconds,
        )
        self._show(told=False, replayed=False)

    def _show(self, *, told: bool, replayed: bool) -> None:
        best = self._shown
        self._on_change(
            Snapshot(
                progress=self.progress,
                seconds=self._meter.seconds,
                best=best,
                headline=self._account.headline(best.evaluation) if best else "",
                programs=len(self._records),
                live=self._live,
                told=told,
                replayed=replayed,
                generations=self._generations,
                brief=self._account.brief(best.evaluation) if best else "",
            )
        )

    def _advance(self, result: Result, ended: bool, seconds: float) -> None:
        """Update the progress after a result."""
        before, stale = self._progress, self._progress.stale
        if ended:
            found = self._winner()
            better = found is not None and (
                self._best is None or merit(candidate(found)) > merit(candidate(self._best)) + EQUAL
            )
            self._best, stale = found, 0 if better else stale + 1
        self._progress = Progress(
            calls=before.calls + 1,
            seconds=seconds,
            generation=self._generation,
            generation_ended=ended,
            best=self._best.evaluation.metrics if self._best else {},
            stale=stale,
            fruitless=0 if result.program else before.fruitless + 1,
            exhausted=before.exhausted + 1 if result.exhausted else 0,
        )


def _best_of(records: Iterable[Record]) -> Record | None:
    by_id = {record.program.id: record for record in records if record.evaluation.valid}
    best = winner(map(candidate, by_id.values()))
    return None if best is None else by_id[best.program.id]


def _sent_back(result: Result) -> list[Fate]:
    """The fate "repaired" for each version of the program that a follow-up call replaced."""
    fates = []
    for draft in result.drafts:
        said = draft.evaluation.message
        words = (
            "improved by a further call" if draft.evaluation.valid else f"sent back: {draft.evaluation.status}: {said}"
        )
        fates.append(Fate(draft.program.id, "repaired", words))
    return fates


def _scored(result: Result) -> Iterator[tuple[Program, Evaluation]]:
    for draft in result.drafts:
        yield draft.program, draft.evaluation
    if result.program is not None and result.evaluation is not None:
        yield result.program, result.evaluation
