"""Flawed parts, each of which its suite finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grace_irl.demos import save
from grace_irl.demos.files import open_source
from grace_irl.demos.source import Source
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.evaluate.evaluation import Bar, Evaluation, Evaluator
from grace_irl.programs.program import Program
from grace_irl.propose.given import Given, GivenProgram
from grace_irl.propose.protocol import Parent, Proposal, Proposer
from grace_irl.sandbox.protocol import Outcome, Sandbox
from grace_irl.search.evolution import Evolution, EvolutionSettings
from grace_irl.search.protocol import Fate, Request, Result, Search, Wait
from grace_irl.states.kind import States
from grace_irl.states.vector import VECTOR
from grace_irl.testing.evaluators import EvaluatorSuite
from grace_irl.testing.kinds import StateKindSuite
from grace_irl.testing.proposers import SOURCE, ProposerSuite
from grace_irl.testing.readers import ReaderSuite
from grace_irl.testing.sandboxes import SandboxSuite
from grace_irl.testing.searches import SearchSuite
from tests.fakes.in_process_sandbox import InProcessSandbox

SMALL = EvolutionSettings(population=6, elite=2, generations=3)


class Unnumbered(Evolution):
    """Numbers its requests from 1."""

    def ask(self) -> Request | Wait | None:
        found = super().ask()
        return replace(found, index=found.index + 1) if isinstance(found, Request) else found


class Careless(Evolution):
    """Draws from the process's generator."""

    def ask(self) -> Request | Wait | None:
        found = super().ask()
        return replace(found, seed=random.randrange(99)) if isinstance(found, Request) else found


class Credulous(Evolution):
    """Takes in what failed."""

    told: tuple[str, ...] = ()

    def tell(self, result: Result) -> list[Fate]:
        self.told += () if result.program is None else (result.program.id,)
        return super().tell(result)

    @property
    def best(self) -> tuple[str, ...]:
        return self.told


class Restless(Evolution):
    """Draws while it is looked at."""

    @property
    def best(self) -> tuple[str, ...]:
        self._rng.random()
        return super().best


class Inventive(Evolution):
    """Asks for children of programs that there are not."""

    def ask(self) -> Request | Wait | None:
        found = super().ask()
        return replace(found, ancestors=("nobody",)) if isinstance(found, Request) else found


class Silent(Evolution):
    """Leaves fates open."""

    def finish(self) -> list[Fate]:
        return []


@pytest.mark.parametrize(
    ("search", "test"),
    [
        (Unnumbered, "test_requests_are_numbered_and_the_search_ends_for_good"),
        (Careless, "test_a_seed_and_a_lag_decide_everything"),
        (Credulous, "test_best_names_valid_programs_that_were_told"),
        (Restless, "test_looking_at_a_search_changes_nothing"),
        (Inventive, "test_parents_and_ancestors_are_programs_that_were_told"),
        (Silent, "test_every_program_is_decided_in_the_end"),
    ],
)
def test_searches(search: type[Evolution], test: str) -> None:
    class Suite(SearchSuite):
        def make(self, seed: int) -> Search:
            return search(SMALL, seed)

    with pytest.raises(AssertionError):
        getattr(Suite(), test)()


class Flawed:
    """An evaluator with evidence that JSON changes, that counts its calls, or that raises."""

    def __init__(self, flaw: str) -> None:
        self.flaw, self.calls = flaw, 0

    def evaluate(self, programs: Sequence[Program], bar: Bar = Bar()) -> list[Evaluation]:
        return [self._evaluate(program, bar) for program in programs]

    def _evaluate(self, program: Program, bar: Bar) -> Evaluation:
        self.calls += 1
        if "return" not in program.source or "Error" in program.source or "'" in program.source:
            if self.flaw == "raises":
                raise ValueError("a program")
            return Evaluation("contract", "no")
        if self.flaw == "hasty" and bar.floor > -9:
            return Evaluation("ok", "stopped", bound=-9.0)
        evidence: dict[str, Any] = {"pair": (1, 2)} if self.flaw == "tuple" else {}
        return Evaluation("ok", score=-float(self.calls) if self.flaw == "counts" else -1.0, evidence=evidence)

    def verify(self, program: Program) -> str:
        return ""

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("flaw", "test", "error"),
    [
        ("tuple", "test_evidence_and_metrics_survive_the_database", AssertionError),
        ("counts", "test_the_same_twice_and_after_others", AssertionError),
        ("raises", "test_a_broken_program_is_an_evaluation_with_one_line", ValueError),
        ("hasty", "test_it_may_stop_below_the_floor_and_nowhere_else", AssertionError),
    ],
)
def test_evaluators(flaw: str, test: str, error: type[Exception]) -> None:
    class Suite(EvaluatorSuite):
        def make(self) -> Evaluator:
            return Flawed(flaw)

    with pytest.raises(error):
        getattr(Suite(), test)()


class Counting(Given):
    """Gives its programs in the order of the calls."""

    calls = 0

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        self.calls += 1
        return await super().propose(replace(request, index=(self.calls - 1) % 3), parents)


class Loud(Given):
    """Raises what it should say."""

    async def propose(self, request: Request, parents: Sequence[Parent]) -> Proposal:
        found = await super().propose(request, parents)
        if found.failure:
            raise LookupError(found.failure)
        return found


@pytest.mark.parametrize(
    ("proposer", "test", "error"),
    [
        (Counting, "test_the_same_answer_to_the_same_request_whatever_was_asked_before", AssertionError),
        (Loud, "test_what_it_has_no_program_for_is_a_failure_and_no_exception", LookupError),
    ],
)
def test_proposers(proposer: type[Given], test: str, error: type[Exception]) -> None:
    class Suite(ProposerSuite):
        def make(self) -> Proposer:
            return proposer([GivenProgram(SOURCE.replace("1.0", f"{number}.0"), "a file") for number in range(3)])

        def unanswered(self) -> list[tuple[Request, tuple[Parent, ...]]]:
            return [(Request(7, "initialise"), ())]

    with pytest.raises(error):
        getattr(Suite(), test)()


class Shared(type(VECTOR)):  # type: ignore[misc]
    """Hands a program the states themselves."""

    def as_state(self, state: Any) -> Any:
        return state


def test_kinds() -> None:
    class Suite(StateKindSuite):
        kind = Shared()

        def make(self, steps: int, seed: int) -> States:
            return np.random.default_rng([seed, steps]).normal(size=(steps + 1, 3))

    with pytest.raises(AssertionError):
        Suite().test_a_program_gets_a_copy_of_its_own()
    with pytest.raises(AssertionError):
        Suite().test_it_is_found_by_its_name_and_recognises_its_states()


class Unordered(InProcessSandbox):
    """Gives rewards in the order of the trajectories, whatever the call says."""

    def run(self, source: str, handle: int, order: Sequence[int], **more: Any) -> Outcome:
        return super().run(source, handle, sorted(order), **more)


def test_sandboxes() -> None:
    class Suite(SandboxSuite):
        def make(self) -> Sandbox:
            return Unordered()

    with pytest.raises(AssertionError):
        Suite().test_rewards_come_in_the_order_of_the_call_with_an_object_for_each_trajectory()


def test_readers(tmp_path: Path) -> None:
    class Suite(ReaderSuite):
        """Writes all but the last trajectory."""

        def make(self, demonstrations: Demonstrations, folder: Path) -> Callable[[], Source]:
            path = folder / "set.parquet"
            save(replace(demonstrations, items=demonstrations.items[:-1]), path)
            return lambda: open_source(path)

    with pytest.raises(AssertionError):
        Suite().test_it_gives_what_was_written_in_order_each_time_it_is_opened(tmp_path)
