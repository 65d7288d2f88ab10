"""Searches at equal budgets: milestones of a run, and what methods reach with equal programs, tokens and steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

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
from grace_irl.search.protocol import Draft, Request, Result


def scored(score: float) -> Evaluation:
    return Evaluation("ok", score=score)


def trained(folder: Path, program: str, *steps: int) -> None:
    """A program's trainings, with these numbers of steps up to the last evaluation."""
    for number, each in enumerate(steps):
        place = folder / program / f"full-{number}"
        place.mkdir(parents=True)
        (place / "curve.json").write_text(to_json([Point(each, 1, 0.0, 0.0, None, 1.0, {})]))


def test_each_new_highest_score_comes_with_what_the_search_has_used(tmp_path: Path) -> None:
    store = Store(tmp_path / "run.db", create=True)

    def tell(index: int, name: str, evaluation: Evaluation, draft: str = "") -> None:
        drafts = (Draft(Program(draft, draft, 1), Evaluation("runtime", "it fails")),) if draft else ()
        store.add_told(Result(Request(index, "x"), Program(name, name, 1), evaluation, drafts=drafts), [], 0, 0.0)

    tell(2, "best", scored(0.9))  # the third answer came first
    tell(0, "first", scored(0.2))
    tell(1, "broken", Evaluation("killed", "its training ended"), draft="worse")
    store.add_told(Result(Request(3, "x"), failure="no answer"), [], 0, 0.0)
    tell(4, "again", scored(0.9))  # no higher
    tell(5, "early", Evaluation("ok", bound=7.0))  # judged in part
    store.add_proposals({0: Proposal("s", tokens_in=10, tokens_out=1)})
    store.add_proposals({0: Proposal("s", tokens_in=5, tokens_out=2)}, 1, "repair")
    store.add_proposals({1: Proposal("s", tokens_in=100)})
    store.add_proposals({2: Proposal("s", tokens_out=1000)})
    trained(tmp_path, "first", 64, 32)
    trained(tmp_path, "worse", 1)
    trained(tmp_path, "broken", 2)
    trained(tmp_path, "best", 128)
    assert milestones_of(store, tmp_path) == (
        Milestone(1, 18, 96, 0.2),
        Milestone(3, 1118, 96 + 3 + 128, 0.9),
    )


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
        search("eureka", 0, (4, 950, 40), Milestone(1, 500, 10, 0.4), Milestone(4, 950, 40, 0.7)),
        search("eureka", 1, (8, 1600, 80), Milestone(6, 1000, 60, 0.2)),
        search("grace", 0, (3, 1, 0), Milestone(1, 1, 0, -0.2), measure="fitness"),
        JobResult("bc", 0, used=Used()),
    ]


def test_the_budget_is_the_least_that_a_run_has_used() -> None:
    programs, tokens, steps = budgets_of(runs(), ("grace", "eureka", "random", "bc"))
    assert [(each.resource, each.amount, each.measure) for each in (programs, tokens, steps)] == [
        ("asked", 4, "score"),
        ("tokens", 900, "score"),
        ("steps", 40, "score"),
    ]

    def reached(methods: Sequence[AtBudget]) -> dict[str, tuple[int, int, float]]:
        return {
            each.method: (each.runs, each.reached.runs, round(each.reached.mean, 9)) for each in methods if each.reached
        }

    assert reached(programs.methods) == {"eureka": (2, 1, 0.7), "random": (2, 2, 0.2)}
    assert reached(tokens.methods) == {"eureka": (2, 1, 0.4), "random": (2, 2, 0.65)}
    assert reached(steps.methods) == {"eureka": (2, 1, 0.7), "random": (2, 2, 0.2)}
    assert [each.method for each in steps.methods] == ["eureka", "random"]  # in order; grace is judged otherwise


def test_a_table_for_each_measure_without_resources_that_nobody_used() -> None:
    fitness = [search(name, 0, (3, 0, 0), Milestone(2, 0, 0, -0.25), measure="fitness") for name in ("grace", "forge")]
    ((title, head, rows), *more) = equal_budgets_of(fitness, ("grace", "forge"))
    assert (title, head, more) == ("fitness of searches at equal budgets", ["method", "runs", "programs: 3"], [])
    assert rows == [[name, "1", "-0.250 ± - [-]"] for name in ("grace", "forge")]
    said = markdown(Settings(Comparison(methods=("eureka", "random")), Config()), (), (), runs())
    assert "## Score of searches at equal budgets\n\nThe highest score in the search" in said
    assert "| method | runs | programs: 4 | tokens: 900 | environment steps: 40 |" in said
    assert "| eureka | 2 | 0.700 ± - [-] (1 of them) |" in said
    assert equal_budgets_of(runs()[:2], ("random",)) == []  # nothing to compare with


def test_a_run_without_a_valid_program_in_the_budget_is_told() -> None:
    late, soon = Milestone(5, 0, 0, 1.0), Milestone(2, 0, 0, 1.0)
    found = [search("random", 0, (9, 0, 0), late), search("forge", 0, (3, 0, 0), soon)]
    ((_, _, rows),) = equal_budgets_of(found, ("random", "forge"))
    assert rows[0] == ["random", "1", "-"]


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
