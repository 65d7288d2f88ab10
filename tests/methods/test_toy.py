"""The search and the evaluator of the toy, by the suites that come with the package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from grace_irl.evaluate.evaluation import Evaluator
from grace_irl.search.protocol import Search
from grace_irl.testing.evaluators import EvaluatorSuite
from grace_irl.testing.searches import SearchSuite

TOY = Path(__file__).parent / "toy" / "grace_irl_toy.py"


def loaded() -> Any:
    """The toy's module, which nothing has installed here."""
    spec = importlib.util.spec_from_file_location("grace_irl_toy", TOY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOYS = loaded()


class TestPairs(SearchSuite):
    def make(self, seed: int) -> Search:
        pairs: Search = TOYS.Pairs(20, seed)
        return pairs


class TestNearness(EvaluatorSuite):
    def make(self) -> Evaluator:
        nearness: Evaluator = TOYS.Nearness(3.0)
        return nearness
