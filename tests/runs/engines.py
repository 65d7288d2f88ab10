"""An engine whose programs are numbers, for tests of the engine and of repairs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from grace_irl.evaluate.evaluation import Bar, Evaluation
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Parent, Proposal, Proposer
from grace_irl.runs.budget import Budget, Meter
from grace_irl.runs.engine import Engine, Snapshot
from grace_irl.runs.record import Record
from grace_irl.runs.store import Store
from grace_irl.search.evolution import Evolution, EvolutionSettings
from grace_irl.search.protocol import Request, Search
from tests.fakes.in_process_sandbox import InProcessSandbox
from tests.runs.test_budget import budget

SETTINGS = EvolutionSettings(population=4, elite=1, generations=2)


class Numbers:
    """Proposes `x = <seed % 97>`; keeps what it was handed."""

    def __init__(self, failure: Proposal | None = None) -> None:
        self.failure = failure
        self.parents: list[Sequence[Parent]] = []

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        self.parents.append(parents)
        await asyncio.sleep(0.001 * (request.seed % 7))
        if self.failure:
            return self.failure
        return Proposal(f"x = {request.seed % 97}", sketch=f"sketch of {request.index}", tokens_in=3, tokens_out=4)


class Values:
    """Fitness is minus the number in the source; counts calls and how many go on at once."""

    def __init__(self, cheats: Sequence[str] = ()) -> None:
        self.cheats = cheats
        self.scored: list[str] = []
        self.bars: set[Bar] = set()
        self.strict: list[str] = []
        self._lock = threading.Lock()

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        with self._lock:
            self.scored += [program.source for program in programs]
            self.bars.add(bar)
        return [value(program.source) for program in programs]

    def verify(self, program: Program) -> str:
        self.strict.append(program.source)
        return "mismatch in strict mode: caught" if program.source in self.cheats else ""


def value(source: str) -> Evaluation:
    fitness = -float(source.split("=")[1]) / 100
    return Separation(Metrics(fitness, 0.7, 0.7, False, 2, 2)).evaluation()


def make(
    folder: Path,
    proposer: Proposer,
    evaluator: Values,
    *,
    rules: Budget | None = None,
    lag: int = 3,
    snapshots: list[Snapshot] | None = None,
    settings: EvolutionSettings = SETTINGS,
    search: Search | None = None,
    on_best: Callable[[Record], None] = lambda _: None,
) -> tuple[Engine, Store]:
    store = Store(folder / "run.db", create=not (folder / "run.db").exists())
    engine = Engine(
        search=search or Evolution(settings, 0),
        proposer=proposer,
        evaluator=evaluator,
        sandbox=InProcessSandbox(),
        store=store,
        meter=Meter(store, rules or budget(fruitless=100)),
        lag=lag,
        on_change=(snapshots if snapshots is not None else []).append,
        on_best=on_best,
    )
    return engine, store
