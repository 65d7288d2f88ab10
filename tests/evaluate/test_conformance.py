"""The discriminator's evaluator, by the suite of evaluators."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import ClassVar

import pytest

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.split import split
from grace_irl.evaluate.evaluation import Evaluator
from grace_irl.evaluate.evaluator import DiscriminatorEvaluator
from grace_irl.sandbox import open_sandbox
from grace_irl.sandbox.protocol import Sandbox
from grace_irl.testing.evaluators import WHOLE, EvaluatorSuite
from tests.fakes.data import THRESHOLD, vector_set


@cache
def problem() -> Problem:
    return label(split(vector_set(8, 8, noise=0.1), 0.25, 0), "all")


class TestDiscriminator(EvaluatorSuite):
    valid = (
        f"{WHOLE}        return float(state[1] > {THRESHOLD})\n",
        f"{WHOLE}        return float(state[0])\n",
        f"{WHOLE}        return 1\n",
    )

    sandbox: ClassVar[Sandbox]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def opened_sandbox(cls) -> Iterator[None]:
        with open_sandbox(2) as cls.sandbox:
            yield

    def make(self) -> Evaluator:
        return DiscriminatorEvaluator(problem(), self.sandbox)
