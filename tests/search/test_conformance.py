"""Our searches, by the suite of searches."""

from __future__ import annotations

import random

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.map_elites import MapElites, MapElitesSettings
from grace_irl.methods.registry import METHODS
from grace_irl.runs.config import resolve
from grace_irl.search.evolution import Evolution, EvolutionSettings
from grace_irl.search.greedy import GreedySearch, GreedySettings
from grace_irl.search.independent import IndependentSearch, IndependentSettings
from grace_irl.search.islands import IslandSearch, IslandSettings
from grace_irl.search.pool import PoolSearch, PoolSettings
from grace_irl.search.protocol import Request, Search
from grace_irl.search.reshaping import Reshaping
from grace_irl.search.tree import TreeSearch, TreeSettings
from grace_irl.testing.searches import SearchSuite


class Rising(SearchSuite):
    """Programs whose rewards rise more or less steadily."""

    def evaluation(self, request: Request, score: float) -> Evaluation:
        tau = random.Random(f"tau {request.seed} {request.index}").uniform(-1, 1)
        metrics = {"fitness": score, "accuracy": 0.9, "monotonicity": tau, "positives": 10.0}
        return Evaluation("ok", score=score, metrics=metrics)


class TestEvolution(SearchSuite):
    def make(self, seed: int) -> Search:
        return Evolution(EvolutionSettings(population=6, elite=2, generations=4, samples=4), seed)


class TestSteadyEvolution(SearchSuite):
    def make(self, seed: int) -> Search:
        return Evolution(EvolutionSettings(population=6, elite=2, generations=4, steady=True), seed)


class TestReshaping(Rising):
    def make(self, seed: int) -> Search:
        search = Evolution(EvolutionSettings(population=5, elite=1, generations=2), seed)
        return Reshaping(search, 7, 3, seed)


class TestMapElites(Rising):
    def make(self, seed: int) -> Search:
        return MapElites(MapElitesSettings(programs=50, first=10), 3, seed)


class TestIndependentSearch(SearchSuite):
    def make(self, seed: int) -> Search:
        return IndependentSearch(IndependentSettings(programs=30), seed)


class TestGreedySearch(SearchSuite):
    def make(self, seed: int) -> Search:
        return GreedySearch(GreedySettings(rounds=5, samples=6), seed)


class TestGreedySearchWithTheBestOverall(SearchSuite):
    def make(self, seed: int) -> Search:
        return GreedySearch(GreedySettings(rounds=5, samples=6, keep_overall=True), seed)


class TestPoolSearch(SearchSuite):
    def make(self, seed: int) -> Search:
        return PoolSearch(PoolSettings(first=7, rounds=4, pairs=6, size=5, patience=3, deeper=3, wave=3), seed)


class TestPoolSearchWithoutPlannerAndSelection(SearchSuite):
    def make(self, seed: int) -> Search:
        settings = PoolSettings(first=7, rounds=4, pairs=6, size=5, choice="uniform", planner=False)
        return PoolSearch(settings, seed)


class TestIslandSearch(SearchSuite):
    def make(self, seed: int) -> Search:
        return IslandSearch(IslandSettings(islands=3, size=4, programs=50, migration=0.6), seed)


class TestTree(SearchSuite):
    def make(self, seed: int) -> Search:
        return TreeSearch(TreeSettings(programs=45), seed)


class TestTreeWithVirtualLoss(SearchSuite):
    def make(self, seed: int) -> Search:
        return TreeSearch(TreeSettings(programs=45, first=3, virtual_loss=True), seed)


class TestGreedyTree(SearchSuite):
    def make(self, seed: int) -> Search:
        return TreeSearch(TreeSettings(programs=45, first=3, rule="greedy"), seed)


def test_the_search_of_every_method_passes_the_suite() -> None:
    suites = [each for each in globals().values() if isinstance(each, type) and each.__name__.startswith("Test")]
    passed = {type(suite().make(0)) for suite in suites}
    for name, method in METHODS.items():
        config = resolve(flags={"method": name, "policy.task": "acrobot" if method.with_task else None})
        for form in (method, method.with_task or method):
            assert type(form.search(config)) in passed, name
