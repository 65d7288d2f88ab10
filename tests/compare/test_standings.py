"""Results summed up: scores, fractions of an oracle that has learnt, tables."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grace_irl
from grace_irl.compare.folder import ComparisonFolder, Favourite, JobResult, TrainingOutcome, Used
from grace_irl.compare.plot import Line, plot
from grace_irl.compare.settings import Comparison, Settings
from grace_irl.compare.standings import Oracle, Scores, Standing, standings
from grace_irl.compare.table import csv_text, differences_of, markdown, ran_of, rows_of, used_of
from grace_irl.config import Config
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory

HOPPER = "Hopper-v5"


def ended(method: str, seed: int, mean: float, success: float | None = None, **fields: object) -> JobResult:
    """A run with one outcome."""
    known: dict[str, object] = {"environment": HOPPER, "transfer": False, "episodes": 10, "deviation": 1.0}
    known |= {"mean": mean, "success": success, "length": 100.0, "steps": 1000, "seconds": 2.0} | fields
    return JobResult(method, seed, (TrainingOutcome(**known),))  # type: ignore[arg-type]


def chosen(mean: float, success: float | None = None) -> Favourite:
    """A favourite that was trained for 500 steps."""
    return Favourite(500, (1.0, 0.5), 200, mean, 0.5, success, 80.0)


def failed(method: str, seed: int) -> JobResult:
    return JobResult(method, seed, failure="it broke | badly")


def of(found: tuple[Standing, ...], method: str) -> Standing:
    (one,) = [each for each in found if each.method == method and not each.transfer]
    return one


def test_scores_are_summed_up_over_seeds() -> None:
    results = [ended("grace", seed, mean) for seed, mean in enumerate([1000.0, 2000.0, 3000.0, 4000.0])]
    standing = of(standings(results, ("grace",), Oracle()), "grace")
    assert standing.last is not None
    score = standing.last.score
    assert (score.mean, score.iqm) == (2500.0, 2500.0)
    assert score.deviation == pytest.approx(np.std([1, 2, 3, 4], ddof=1) * 1000)
    half = 3.1824 * score.deviation / 2  # Student's t, 3 degrees of freedom
    assert score.interval == pytest.approx((2500 - half, 2500 + half), rel=1e-4)
    assert (standing.seeds, standing.failed, standing.rate) == ((0, 1, 2, 3), 0, 500.0)
    assert (standing.last.of_returns, standing.favourite, standing.choosing) == (None, None, None)


def test_the_interquartile_mean_of_eight_seeds_and_none_of_three() -> None:
    scores = [0.0, 10, 11, 12, 13, 14, 90, 100]
    results = [ended("grace", seed, mean) for seed, mean in enumerate(scores)]
    head, _ = rows_of(standings(results[:3], ("grace",), Oracle()))
    assert "IQM of return" not in head
    head, (row,) = rows_of(standings(results, ("grace",), Oracle()))
    assert dict(zip(head, row, strict=True))["IQM of return"] == "12.5 / -"


def test_a_fraction_is_of_the_mean_of_the_oracle_over_common_seeds() -> None:
    """The second run of grace failed: the oracle's second run stands beside nothing."""
    results = [ended("ppo-true", 0, 2000.0), ended("ppo-true", 1, 3000.0), ended("grace", 0, 1500.0)]
    found = standings([*results, failed("grace", 1)], ("grace", "ppo-true"), Oracle())
    assert fractions(of(found, "grace").last) == (None, pytest.approx(0.75))
    assert fractions(of(found, "ppo-true").last) == (None, pytest.approx(1.0))
    assert {each.note for each in found} == {""}


def fractions(scores: Scores | None) -> tuple[float | None, float | None]:
    assert scores is not None
    return scores.of_success, scores.of_returns


def test_where_success_saturates_the_fraction_of_the_return_is_there_too() -> None:
    results = [
        ended("grace", 0, 0.45, 1.0, environment="BabyAI-GoToObj-v0", favourite=chosen(0.72, 1.0)),
        ended("ppo-true", 0, 0.9, 1.0, environment="BabyAI-GoToObj-v0", favourite=chosen(0.96, 1.0)),
    ]
    found = standings(results, ("grace", "ppo-true"), Oracle())
    assert fractions(of(found, "grace").last) == (1.0, pytest.approx(0.5))
    assert fractions(of(found, "grace").favourite) == (1.0, pytest.approx(0.75))
    head, (grace, _) = rows_of(found)
    row = dict(zip(head, grace, strict=True))
    assert (row["of ppo-true's success"], row["of ppo-true's return"]) == ("1.000 / 1.000", "0.500 / 0.750")
    assert (row["success, last policy"], row["return"]) == ("1.000 ± - [-]", "0.450 / 0.720")
    assert row["steps to choose"] == "200"


def test_no_fraction_of_a_return_that_is_not_positive() -> None:
    results = [ended("grace", 0, -0.5, 1.0), ended("ppo-true", 0, -0.1, 1.0)]
    found = standings(results, ("grace", "ppo-true"), Oracle())
    assert fractions(of(found, "grace").last) == (1.0, None)


def test_no_fraction_of_a_hopper_that_stands_still() -> None:
    results = [ended("ppo-true", 0, 1050.0), ended("grace", 0, 1000.0)]
    found = standings(results, ("grace", "ppo-true"), Oracle())
    assert [fractions(each.last) for each in found] == [(None, None)] * 2
    assert found[0].note == (
        "Hopper-v5: ppo-true has not learnt (1050; expected at least 2000 return): no fraction of it is quoted"
    )


def test_last_policies_and_favourites_are_judged_each_by_their_own_oracle() -> None:
    results = [
        ended("ppo-true", 0, 1050.0, favourite=chosen(2500.0)),
        ended("grace", 0, 1000.0, favourite=chosen(5000.0)),
    ]
    grace = of(standings(results, ("grace", "ppo-true"), Oracle()), "grace")
    assert (fractions(grace.last), fractions(grace.favourite)) == ((None, None), (None, pytest.approx(2.0)))
    assert grace.note.endswith("no fraction of it is quoted for last policies")


def test_a_favourite_of_some_runs_only_is_none() -> None:
    """Of a comparison that an earlier version began, say."""
    results = [ended("grace", 0, 1.0, favourite=chosen(9.0)), ended("grace", 1, 2.0)]
    grace = of(standings(results, ("grace",), Oracle()), "grace")
    assert (grace.favourite, grace.choosing) == (None, None)


def test_differences_are_between_runs_of_one_seed() -> None:
    """Seeds differ by far more than methods: unpaired, nothing could be said. The last seed of gail failed."""
    base = [100.0, 900.0, 500.0, 300.0]
    results = [ended("grace", seed, mean + 10 + seed, favourite=chosen(mean)) for seed, mean in enumerate(base)]
    others = [ended("gail", seed, mean, favourite=chosen(mean + seed)) for seed, mean in enumerate(base[:3])]
    found = standings([*reversed(others), *results, failed("gail", 3)], ("grace", "gail"), Oracle())
    grace, gail = of(found, "grace"), of(found, "gail")
    assert grace.last is not None
    assert grace.last.ahead is None
    assert gail.last is not None
    assert gail.last.ahead is not None
    assert (gail.last.ahead.runs, gail.last.ahead.mean) == (3, pytest.approx(11.0))
    half = 4.3027 / math.sqrt(3)
    assert gail.last.ahead.interval == pytest.approx((11 - half, 11 + half), rel=1e-4)
    _, ((*_, last, favourites),) = differences_of(found)
    assert last == "11.0 ± 1.000 [8.516, 13.5]"
    assert favourites == "-1.000 ± 1.000 [-3.484, 1.484]"


def test_a_method_whose_runs_all_failed_has_a_row_in_a_transfer_too() -> None:
    there = replace(ended("ppo-true", 0, 5.0).outcomes[0], environment="T", transfer=True)
    oracle = ended("ppo-true", 0, 5.0)
    results = [replace(oracle, outcomes=(*oracle.outcomes, there)), failed("grace", 0)]
    rows = [each for each in standings(results, ("grace", "ppo-true"), Oracle()) if each.environment == "T"]
    assert [(each.method, each.failed, each.last is None) for each in rows] == [
        ("grace", 1, True),
        ("ppo-true", 0, False),
    ]


@pytest.mark.parametrize(
    ("environment", "score", "success", "experts", "learnt"),
    [
        (HOPPER, 1999.0, False, 3000.0, False),
        (HOPPER, 2000.0, False, None, True),
        ("HalfCheetah-v5", 1000.0, False, None, True),
        ("HalfCheetah-v5", 900.0, False, 100.0, False),
        ("BabyAI-GoToObj-v0", 0.5, True, None, True),
        ("BabyAI-GoToObj-v0", 0.4, True, None, False),
        ("Own-v0", 50.0, False, 100.0, True),
        ("Own-v0", 49.0, False, 100.0, False),
        ("Own-v0", 49.0, False, None, False),
        ("Own-v0", 49.0, False, -10.0, False),
    ],
)
def test_when_an_oracle_has_learnt(
    environment: str, score: float, success: bool, experts: float | None, learnt: bool
) -> None:
    doubt = Oracle(experts).doubt(environment, score, success=success)
    assert (doubt == "") is learnt
    assert learnt or doubt.startswith(f"{environment}: ")


def test_short_episodes_lower_the_bound_of_an_oracle() -> None:
    assert Oracle(steps=200).doubt(HOPPER, 400.0, success=False) == ""
    assert "expected at least 400 return" in Oracle(steps=200).doubt(HOPPER, 399.0, success=False)
    assert "expected at least 2000 return" in Oracle(steps=5000).doubt(HOPPER, 1999.0, success=False)
    away = [ended(name, 0, 500.0, transfer=True) for name in ("grace", "ppo-true")]
    for carried, quoted in ((Oracle(), False), (Oracle(steps=200), True)):
        for each in standings(away, ("grace", "ppo-true"), Oracle(steps=200), carried):
            assert each.last is not None
            assert (each.last.of_returns is not None) == quoted  # a task's limit holds at home alone
    items = [Demonstration(Trajectory(np.zeros((4, 1)), rewards=np.array([1.0, 2.0, 4.0])), "expert")]
    found = Oracle.of(Demonstrations(Metadata("vector"), tuple(items)), steps=2)
    assert (found.experts, found.steps) == (3.0, 2)


def test_experts_returns_are_those_that_were_recorded() -> None:
    def demonstrations(*totals: float | None) -> Demonstrations:
        items = [
            Demonstration(
                Trajectory(np.full((3, 1), number, float), rewards=None if total is None else np.array([total, 0.0])),
                "expert",
            )
            for number, total in enumerate(totals)
        ]
        return Demonstrations(Metadata("vector"), tuple(items))

    assert Oracle.of(demonstrations(10.0, 20.0, None)).experts == 15.0
    assert Oracle.of(demonstrations(None)).experts is None


def test_experts_of_one_environment_say_nothing_of_another() -> None:
    results = [
        ended("grace", 0, 5.0, environment="Own-v0"),
        ended("ppo-true", 0, 8.0, environment="Own-v0"),
    ]
    for transfer, learnt in ((False, True), (True, False)):
        outcomes = [replace(each, outcomes=(replace(each.outcomes[0], transfer=transfer),)) for each in results]
        grace, _ = standings(outcomes, ("grace", "ppo-true"), Oracle(10.0, steps=7))
        assert (grace.last is not None and grace.last.of_returns is not None) is learnt
        assert ("nothing says when it has learnt there" in grace.note) is not learnt


def test_success_is_the_score_where_all_have_a_goal() -> None:
    results = [ended("grace", 0, 0.9, 1.0), ended("ppo-true", 0, 0.8, 0.5)]
    found = standings(results, ("grace", "ppo-true"), Oracle())
    grace = of(found, "grace")
    assert grace.last is not None
    assert grace.last.success is not None
    assert (grace.success, grace.last.of_success, grace.last.success.mean, grace.last.returns.mean) == (
        *(True, 2.0, 1.0, 0.9),
    )


def test_a_method_that_failed_is_in_the_table() -> None:
    results = [
        ended("ppo-true", 0, 3000.0),
        failed("gail", 0),
        failed("gail", 1),
        ended("bc", 0, 1500.0),
        failed("bc", 1),
    ]
    found = standings(results, ("gail", "bc", "ppo-true"), Oracle())
    head, rows = rows_of(found)
    assert [row[:3] for row in rows] == [
        ["gail", "0 (2 failed)", "failed"],
        ["bc", "1 (1 failed)", "1,500.0 ± - [-]"],
        ["ppo-true", "1", "3,000.0 ± - [-]"],
    ]
    assert {len(row) for row in rows} == {len(head)}


def test_a_run_that_failed_in_a_transfer_alone_has_not_failed_at_home() -> None:
    home = ended("gail", 0, 1500.0).outcomes
    found = standings([JobResult("gail", 0, home, failure="it broke in Light")], ("gail",), Oracle())
    assert [(each.seeds, each.failed) for each in found] == [((0,), 0)]


def test_where_everything_failed_there_is_no_table() -> None:
    assert standings([failed("grace", 0)], ("grace",), Oracle()) == ()


def test_transfer_has_a_table_of_its_own_after_the_first() -> None:
    away = TrainingOutcome("Light", True, 10, 1000.0, 1.0, None, 50.0)
    results = [JobResult("grace", 0, (ended("grace", 0, 2000.0).outcomes[0], away)), ended("bc", 0, 10.0)]
    found = standings(results, ("grace", "bc"), Oracle())
    assert [(each.environment, each.method) for each in found] == [
        (HOPPER, "grace"),
        (HOPPER, "bc"),
        ("Light", "grace"),
    ]
    text = markdown(Settings(Comparison(), Config()), found, ("one thing",))
    assert text.index("## Hopper-v5\n") < text.index(
        "## Light (with rewards that were recovered in another environment)"
    )
    assert text.rstrip().endswith("- one thing")


def test_components_and_what_is_not_known() -> None:
    results = [ended("grace", 0, 1.0, epic=0.25, components={"reward_forward": 2.0}), ended("bc", 0, 1.0, seconds=None)]
    head, (grace, bc) = rows_of(standings(results, ("grace", "bc"), Oracle()))
    assert dict(zip(head, grace, strict=True))["forward"] == "2.000 / -"
    assert (dict(zip(head, grace, strict=True))["EPIC"], dict(zip(head, bc, strict=True))["EPIC"]) == ("0.250", "-")
    assert dict(zip(head, bc, strict=True))["steps/s"] == "-"


def test_the_csv_file_has_a_row_for_each_run() -> None:
    results = [ended("grace", 1, 1.0, components={"reward_x": 2.5}), failed("gail", 0), ended("grace", 0, math.pi, 0.5)]
    rows = list(csv.DictReader(csv_text(results).splitlines()))
    assert [(row["method"], row["seed"]) for row in rows] == [("gail", "0"), ("grace", "0"), ("grace", "1")]
    assert rows[0]["failure"] == "it broke | badly"
    assert (rows[1]["return"], rows[1]["success"], rows[1]["reward_x"]) == ("3.14159", "0.5", "")
    assert (rows[2]["reward_x"], rows[2]["success"], rows[2]["steps_per_second"]) == ("2.5", "", "500")


def test_scores_of_a_task_stand_beside_the_return() -> None:
    results = [ended("random", seed, 10.0, score=0.1 * seed, favourite=chosen(20.0)) for seed in range(3)]
    head, (row,) = rows_of(standings(results, ("random",), Oracle()))
    told = dict(zip(head, row, strict=True))
    assert told["score, last policy"].startswith("0.100 ± 0.100")
    assert told["score, favourite"] == "-"


def test_without_grace_differences_are_from_random_search_in_the_tasks_score() -> None:
    """Returns say nothing in an environment without a reward of its own."""
    unpaid: dict[str, Any] = {"mean": 0.0, "deviation": 0.0}
    results = [ended("random", seed, score=0.1 * seed, **unpaid) for seed in range(3)]
    results += [ended("eureka", seed, score=0.1 * seed + 0.02 * (seed + 1), **unpaid) for seed in range(3)]
    results += [ended("ppo-true", 0, score=0.0, **unpaid)]
    found = standings(results, ("eureka", "random", "ppo-true"), Oracle())
    head, (eureka, oracle) = differences_of(found)
    assert head == ["random ahead of", "common seeds", "score, last policies", "score, favourites"]
    assert (eureka[:2], oracle[:2]) == (["eureka", "3"], ["ppo-true", "1"])
    assert eureka[2].startswith("-0.040 ± 0.020")
    (note,) = {each.note for each in found}
    assert "the environment's own reward sums to 0 in every episode of every policy" in note
    assert {each.last.of_returns for each in found if each.last} == {None}


def test_what_an_earlier_version_used_is_unknown() -> None:
    results = [ended("random", 0, 10.0), JobResult("bc", 0, failure="it broke")]
    head, (row,) = used_of(results, ("random", "bc"))
    told = dict(zip(head, row, strict=True))
    assert (told["method"], told["programs asked"], told["steps of the search"]) == ("random", "-", "-")
    assert (told["steps of the training"], told["steps in all"]) == ("1,000", "-")


def test_what_ran_is_told_once_and_by_run_if_runs_differ() -> None:
    def run(method: str, seed: int, writer: str, versions: str) -> JobResult:
        trains = {"steps": 0} if method == "bc" else {"learner": "PPO with 8 environments"}
        return replace(ended(method, seed, 1.0, versions=versions, **trains), used=Used(writer=writer))

    results = [run("grace", 0, "synthesis", "a 1"), run("grace", 1, "synthesis", "a 2"), run("bc", 0, "", "a 1")]
    assert ran_of(results, Settings(Comparison(), Config())) == [
        "programs by: synthesis",
        f"learner in {HOPPER}: PPO with 8 environments",
        "versions: a 1 (grace 0, bc 0); a 2 (grace 1)",
    ]
    model = [*results[:2], run("eureka", 0, "llm (Qwen)", "a 1"), failed("bc", 0)]
    lines = ran_of(model, Settings(Comparison(tuned=("bc.epochs=3",)), Config()))
    assert lines[0] == "programs by: synthesis (grace 0 1); llm (Qwen) (eureka 0)"
    assert lines[2] == "changed settings: bc.epochs=3"
    resumed = [*results, ended("gail", 0, 1.0)]  # by an earlier version
    assert ran_of(resumed, Settings(Comparison(), Config()))[1:] == [
        f"learner in {HOPPER}: PPO with 8 environments (grace 0 1); unknown (gail 0)",
        "versions: a 1 (grace 0, bc 0); a 2 (grace 1); unknown (gail 0)",
    ]


def test_what_an_earlier_version_did_not_keep_is_left_out() -> None:
    assert ran_of([ended("grace", 0, 1.0)], Settings(Comparison(), Config())) == []


def test_texts_of_a_comparison_that_read_as_numbers_stay_texts(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    results = [replace(ended("grace", 0, 1.0), data="12345678901e4567"), JobResult("bc", 0, failure="404")]
    ComparisonFolder(tmp_path).csv.write_text(csv_text(results))
    found = grace_irl.comparison(tmp_path)
    assert [*found.loc[0, ["failure", "seed"]]] == ["404", 0.0]
    assert [*found.loc[1, ["method", "data", "return"]]] == ["grace", "12345678901e4567", 1.0]


def test_texts_of_others_are_only_texts_in_tables() -> None:
    """A name from a data file, and what a program's failure says, begin no line, picture or column of their own."""
    name = "a\n## b | <img src=x> [c](d) \x1b[2J\u202e"
    results = [ended("grace", 0, 1.0, environment=name), JobResult("bc", 0, failure=name)]
    text = markdown(Settings(Comparison(), Config()), standings(results, ("grace", "bc"), Oracle()), (name,))
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        r"## a ## b | \<img src=x> \[c](d) \\x1b\[2J\\u202e"
    ]
    assert r"- a ## b | \<img" in text
    escaped = markdown(Settings(Comparison(), Config()), (), (r"\<img src=x> \[c](d)",))
    assert r"- \\\<img src=x> \\\[c](d)" in escaped
    for written in (text, csv_text(results), plot(name, [Line(name, ())])):
        assert all(sign.isprintable() or sign == "\n" for sign in written)
    assert len(csv_text(results).splitlines()) == 3
