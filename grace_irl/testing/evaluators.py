"""The conformance suite of evaluators, which score programs. The suite is a base class for pytest:

class TestMyEvaluator(EvaluatorSuite):
    def make(self):
        return MyEvaluator()
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from math import inf, isfinite

from grace_irl.evaluate.evaluation import EQUAL, Bar, Evaluation, Evaluator
from grace_irl.programs.check import read
from grace_irl.programs.program import Program, identify, text_id
from grace_irl.runs.record import from_text, to_text

WHOLE = "class Reward:\n    def __init__(self, extra_info=None):\n        pass\n\n    def reward_fn(self, state):\n"
BROKEN = (
    "class Reward:\n    def reward_fn(self, state)\n",
    "",
    "class Reward:\n    pass\n",
    f"{WHOLE}        raise ValueError('always')\n",
    f"{WHOLE}        return float('nan')\n",
    f"{WHOLE}        return 'text'\n",
)
"""Sources that every evaluator refuses: invalid syntax, no `Reward` or `reward_fn`, or a failure in a run."""


def program(source: str) -> Program:
    """Make a program from a source, as a run of a search does."""
    found = read(source)
    if found.tree is None:
        return Program(text_id(source), source, 0)
    known = identify(found.tree)
    return Program(known.id, source, known.size, functions=known.functions, takes_action=found.takes_action)


def told(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations without their durations, which differ from run to run."""
    return [replace(each, seconds=0.0) for each in evaluations]


class EvaluatorSuite(ABC):
    """The tests of the conformance suite for evaluators."""

    valid: Sequence[str] = (f"{WHOLE}        return 1.0\n", f"{WHOLE}        return 2.5\n")
    """Sources of different programs that the evaluator accepts."""
    broken: Sequence[str] = BROKEN
    """Sources of programs that the evaluator refuses."""

    @abstractmethod
    def make(self) -> Evaluator:
        """Return a new evaluator, always for the same data. The suite closes the evaluator."""

    @contextmanager
    def opened(self) -> Iterator[Evaluator]:
        """A fresh evaluator, closed after the block."""
        evaluator = self.make()
        try:
            yield evaluator
        finally:
            evaluator.close()

    @property
    def programs(self) -> list[Program]:
        """All valid and broken programs, in a mixed order."""
        sources = [*self.broken[1:], *self.valid, *self.broken[:1]]
        return [program(source) for source in sources]

    def test_one_evaluation_for_each_program_in_order(self) -> None:
        with self.opened() as evaluator:
            assert evaluator.evaluate([]) == []
            one_by_one = [evaluator.evaluate([each])[0] for each in self.programs]
        with self.opened() as evaluator:
            assert told(evaluator.evaluate(self.programs)) == told(one_by_one)

    def test_a_valid_program_has_a_score_and_metrics(self) -> None:
        with self.opened() as evaluator:
            for found in evaluator.evaluate([program(source) for source in self.valid]):
                assert (found.status, found.message, found.traceback, found.bound) == ("ok", "", "", None)
                assert isfinite(found.score)
                assert found.seconds >= 0
                assert all(isinstance(name, str) and isfinite(value) for name, value in found.metrics.items())

    def test_a_broken_program_is_an_evaluation_with_one_line(self) -> None:
        with self.opened() as evaluator:
            for source in self.broken:
                (found,) = evaluator.evaluate([program(source)])
                assert not found.valid, source
                assert found.score == -inf
                assert found.message
                assert "\n" not in found.message

    def test_the_same_twice_and_after_others(self) -> None:
        with self.opened() as evaluator:
            first = told(evaluator.evaluate(self.programs))
            assert told(evaluator.evaluate(self.programs)) == first
            assert told(evaluator.evaluate(self.programs[::-1])) == first[::-1]
        with self.opened() as evaluator:
            assert told(evaluator.evaluate(self.programs[::-1])) == first[::-1]

    def test_the_same_from_several_threads(self) -> None:
        with self.opened() as evaluator, ThreadPoolExecutor(4) as threads:
            first = told(evaluator.evaluate(self.programs))
            for found in threads.map(evaluator.evaluate, [self.programs] * 4):
                assert told(found) == first

    def test_evidence_and_metrics_survive_the_database(self) -> None:
        with self.opened() as evaluator:
            for found in evaluator.evaluate(self.programs):
                assert json.loads(json.dumps(found.evidence)) == found.evidence, "no plain JSON values"
                assert from_text(to_text(found)) == found

    def test_it_may_stop_below_the_floor_and_nowhere_else(self) -> None:
        programs = [program(source) for source in self.valid]
        with self.opened() as evaluator:
            whole = told(evaluator.evaluate(programs))
        for each, found in zip(programs, whole, strict=True):
            for floor in (found.score - 1.0, found.score - 2 * EQUAL, found.score, found.score + 1.0, inf):
                with self.opened() as evaluator:
                    (again,) = told(evaluator.evaluate([each], Bar(floor=floor)))
                assert again.valid
                if not again.complete:
                    assert again.bound is not None
                    assert found.score - EQUAL <= again.bound < floor
                    assert (again.score, again.metrics) == (-inf, {})
                elif floor <= found.score:
                    assert again.score == found.score

    def test_honest_programs_are_verified_and_a_problem_is_one_line(self) -> None:
        with self.opened() as evaluator:
            for source in self.valid:
                assert evaluator.verify(program(source)) == ""
            for source in self.broken:
                problem = evaluator.verify(program(source))
                assert "\n" not in problem
