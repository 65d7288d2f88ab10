"""Searches at equal budgets: milestones of a run, and what methods reach with equal programs, tokens and steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grace_irl.compare.budgets import AtBudget, budgets_of, milestones_of
from grace_irl.compare.folder import JobResult, Milestone, Used, read_result, write_result
from grace_irl.compare.settings import Comparison, Settings
from grace_irl.compare.table import equal_budgets_of, markdown
from grace_irl.config import Config
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.programs.program import Program
from grace_irl.propose.protocol import Proposal
from grace_irl.rl.curve import Point, to_json
from grace_irl.runs.store import Store
from grace_irl.search.protocol import Draft, Fate, Request, Result


def scored(score: float) -> Evaluation:
    return Evaluation("ok", score=score)


def trained(folder: Path, program: str, **steps: int) -> None:
    """A program's trainings, with these numbers of steps up to the last evaluation."""
    for name, each in steps.items():
        place = folder / program / name
        place.mkdir(parents=True)
        (place / "curve.json").write_text(to_json([Point(each, 1, 0.0, 0.0, None, 1.0, {})]))


def tell(store: Store, index: int, name: str, evaluation: Evaluation, draft: Draft | None = None) -> None:
    result = Result(Request(index, "x"), Program(name, name, 1), evaluation, drafts=(draft,) if draft else ())
    store.add_told(result, [], 0, 0.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "run.db", create=True)


def test_each_new_highest_score_comes_with_what_the_search_has_used(store: Store, tmp_path: Path) -> None:
    tell(store, 2, "best", scored(0.9))  # the third answer came first
    tell(store, 0, "first", scored(0.2))
    worse = Draft(Program("worse", "worse", 1), Evaluation("runtime", "it fails"))
    tell(store, 1, "broken", Evaluation("killed", "its training ended"), worse)
    store.add_told(Result(Request(3, "x"), failure="no answer"), [], 0, 0.0)
    tell(store, 4, "again", scored(0.9))  # no higher
    tell(store, 5, "early", Evaluation("ok", bound=7.0))  # judged in part
    tell(store, 6, "first", scored(0.2))  # trained once
    tell(store, 7, "last", scored(1.0))
    store.add_proposals({0: Proposal("s", tokens_in=10, tokens_out=1), 1: Proposal("s")})  # two answers of one call
    store.add_proposals({0: Proposal("s", tokens_in=5, tokens_out=2)}, 1, "repair")
    store.add_proposals({1: Proposal("s", tokens_in=100)})
    store.add_proposals({2: Proposal("s", tokens_out=1000)})
    store.add_proposals({8: Proposal("s", tokens_out=7)})  # no result yet
    trained(tmp_path, "first", **{"short-0": 32, "full-0": 64, "full-1": 64})
    trained(tmp_path, "worse", **{"full-0": 1})
    trained(tmp_path, "broken", **{"full-0": 2})
    trained(tmp_path, "best", **{"short-0": 128})
    trained(tmp_path, "unknown", **{"full-0": 5000})
    assert milestones_of(store, tmp_path) == (
        Milestone(1, 18, 160, 0.2),
        Milestone(3, 1118, 160 + 3 + 128, 0.9),
        Milestone(8, 1118, 160 + 3 + 128, 1.0),
    )


def test_programs_that_the_run_does_not_count_have_no_milestone(store: Store, tmp_path: Path) -> None:
    tell(store, 0, "honest", scored(0.2))
    tell(store, 1, "cheat", scored(0.95))
    tell(store, 2, "replaced", scored(0.3), Draft(Program("draft", "draft", 1), scored(0.9)))
    store.add_request(Request(3, "reshape", ("honest",)), 1)
    tell(store, 3, "reshaped", scored(0.99))
    store.set_final_fates([Fate("cheat", "invalid", "another reward in strict mode")], 3, 1)
    assert [(each.asked, each.score) for each in milestones_of(store, tmp_path / "none")] == [(1, 0.2), (3, 0.3)]


def search(
    method: str, seed: int, whole: tuple[int, int, int], *reached: Milestone, measure: str = "score"
) -> JobResult:
    asked, tokens, steps = whole
    used = Used(asked, asked, asked, tokens, 0, steps, measure=measure, milestones=reached)
    return JobResult(method, seed, used=used)


def runs() -> list[JobResult]:
    return [
        search("random", 0, (9, 900, 90), Milestone(1, 100, 10, 0.1), Milestone(5, 500, 50, 0.5)),
        search("random", 1, (9, 900, 90), Milestone(2, 200, 20, 0.3), Milestone(9, 900, 90, 0.8)),
        search("random", 2, (1, 1, 1), Milestone(1, 1, 1, 9.0)),  # eureka lacks this seed
        search("eureka", 0, (4, 950, 40), Milestone(1, 500, 10, 0.4), Milestone(4, 950, 40, 0.7)),
        search("eureka", 1, (8, 1600, 80), Milestone(6, 1000, 60, 0.2)),
        search("grace", 0, (3, 1, 0), Milestone(1, 1, 0, -0.2), measure="fitness"),
        search("theirs", 0, (3, 1, 0), Milestone(1, 1, 0, 200.0), measure=""),
        search("others", 0, (3, 1, 0), Milestone(1, 1, 0, 0.1), measure=""),
        JobResult("bc", 0, used=Used()),
    ]


METHODS = ("grace", "eureka", "random", "bc", "theirs", "others")


def test_the_budget_is_the_least_that_a_run_has_used() -> None:
    programs, tokens, steps = budgets_of(runs(), METHODS)
    assert [(each.resource, each.amount, each.measure) for each in (programs, tokens, steps)] == [
        ("asked", 4, "score"),
        ("tokens", 900, "score"),
        ("steps", 40, "score"),
    ]

    def reached(methods: Sequence[AtBudget]) -> list[tuple[str, int, float | None]]:
        return [(each.method, each.runs, round(each.reached.mean, 9) if each.reached else None) for each in methods]

    eureka = ("eureka", 2, None)  # its second run has no program by then
    assert reached(programs.methods) == [eureka, ("random", 2, 0.2)]
    assert reached(tokens.methods) == [eureka, ("random", 2, 0.65)]
    assert reached(steps.methods) == [eureka, ("random", 2, 0.2)]


def test_a_table_for_each_measure_without_resources_that_nobody_used() -> None:
    fitness = [search(name, 0, (3, 0, 0), Milestone(2, 0, 0, -0.25), measure="fitness") for name in ("grace", "forge")]
    ((title, head, rows), *more) = equal_budgets_of(fitness, ("grace", "forge"))
    assert (title, head, more) == ("fitness of searches at equal budgets", ["method", "runs", "programs asked: 3"], [])
    assert rows == [[name, "1", "-0.250 ± - [-]"] for name in ("grace", "forge")]
    said = markdown(Settings(Comparison(methods=METHODS), Config()), (), (), [*runs(), *fitness])
    assert "## Score of searches at equal budgets\n\nThe highest score in the search" in said
    assert "## Fitness of searches" not in said  # forge is not among the methods
    assert "| method | runs | programs asked: 4 | tokens: 900 | steps of the search: 40 |" in said
    assert "| eureka | 2 | - | - | - |" in said
    assert equal_budgets_of(runs()[:2], ("random",)) == []  # nothing to compare with
    one = Milestone(1, 0, 0, 1.0)
    apart = [search("random", 0, (1, 0, 0), one), search("forge", 1, (1, 0, 0), one)]
    assert equal_budgets_of(apart, ("random", "forge")) == []  # no common seed


def test_numbers_of_somebody_elses_results_do_no_harm() -> None:
    def odd(name: str) -> JobResult:
        reached = Milestone(1, 0, 0, 0.9), Milestone(2, 0, 0, 0.1)
        return search(name, 0, (2, 0, -5), *reached, measure="x\n\n<img> ![a](b)")

    said = markdown(Settings(Comparison(methods=("random", "forge")), Config()), (), (), [odd("random"), odd("forge")])
    assert "## X \\<img> !\\[a](b) of searches at equal budgets\n" in said
    assert "| method | runs | programs asked: 2 |\n" in said
    assert "| forge | 1 | 0.900 ± - [-] |" in said


def test_milestones_survive_the_file_of_a_result(tmp_path: Path) -> None:
    path = tmp_path / "random-0" / "result.json"
    path.parent.mkdir()
    (one, *_) = runs()
    write_result(path, one)
    assert read_result(path) == one
    old = json.loads(path.read_text())
    del old["used"]["milestones"], old["used"]["measure"]
    path.write_text(json.dumps(old))
    assert one.used is not None
    assert read_result(path) == replace(one, used=replace(one.used, milestones=(), measure=""))
    write_result(path, search("random", 0, (1, 0, 0), Milestone(1, 0, 0, float("nan"))))
    assert read_result(path) is None
