"""Results summed up: scores, fractions of an oracle that has learnt, tables."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from grace_irl.compare.curves import Line, plot
from grace_irl.compare.oracle import Oracle
from grace_irl.compare.outcome import Outcome, Result
from grace_irl.compare.settings import Comparison, Settings
from grace_irl.compare.standings import Standing, standings
from grace_irl.compare.table import csv_text, markdown, rows_of
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.runs.config import Config

HOPPER = "Hopper-v5"


def ended(method: str, seed: int, mean: float, success: float | None = None, **fields: object) -> Result:
    """A run with one outcome."""
    known: dict[str, object] = {"environment": HOPPER, "transfer": False, "episodes": 10, "deviation": 1.0}
    known |= {"mean": mean, "success": success, "length": 100.0, "steps": 1000, "seconds": 2.0} | fields
    return Result(method, seed, (Outcome(**known),))  # type: ignore[arg-type]


def failed(method: str, seed: int) -> Result:
    return Result(method, seed, failure="it broke | badly")


def of(found: tuple[Standing, ...], method: str) -> Standing:
    (one,) = [each for each in found if each.method == method and not each.transfer]
    return one


def test_scores_are_summed_up_over_seeds() -> None:
    results = [ended("grace", seed, mean) for seed, mean in enumerate([1000.0, 2000.0, 3000.0, 4000.0])]
    standing = of(standings(results, ("grace",), Oracle()), "grace")
    assert standing.score is not None
    assert standing.score.mean == 2500.0
    assert standing.score.iqm == 2500.0
    assert standing.score.deviation == pytest.approx(np.std([1, 2, 3, 4], ddof=1) * 1000)
    assert standing.score.iqm_interval[0] < 2500.0 < standing.score.iqm_interval[1]
    assert (standing.seeds, standing.failed, standing.rate, standing.fraction) == ((0, 1, 2, 3), 0, 500.0, None)


def test_a_fraction_is_of_the_mean_of_the_oracle() -> None:
    results = [ended("ppo-true", 0, 2000.0), ended("ppo-true", 1, 3000.0), ended("grace", 0, 2000.0)]
    found = standings(results, ("grace", "ppo-true"), Oracle())
    assert of(found, "grace").fraction == pytest.approx(0.8)
    assert of(found, "ppo-true").fraction == pytest.approx(1.0)
    assert {each.note for each in found} == {""}


def test_no_fraction_of_a_hopper_that_stands_still() -> None:
    results = [ended("ppo-true", 0, 1050.0), ended("grace", 0, 1000.0)]
    found = standings(results, ("grace", "ppo-true"), Oracle())
    assert [each.fraction for each in found] == [None, None]
    assert found[0].note == (
        "Hopper-v5: ppo-true has not learnt (1050; expected at least 2000 return): no fraction of it is quoted"
    )


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


def test_success_is_the_score_where_all_have_a_goal() -> None:
    results = [ended("grace", 0, 0.9, 1.0), ended("ppo-true", 0, 0.8, 0.5)]
    found = standings(results, ("grace", "ppo-true"), Oracle())
    assert of(found, "grace").fraction == 2.0
    assert (of(found, "grace").success, of(found, "grace").returns) == (True, 0.9)


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
        ["bc", "1 (1 failed)", "1,500.0 ± -"],
        ["ppo-true", "1", "3,000.0 ± -"],
    ]
    assert {len(row) for row in rows} == {len(head)}


def test_where_everything_failed_there_is_no_table() -> None:
    assert standings([failed("grace", 0)], ("grace",), Oracle()) == ()


def test_transfer_has_a_table_of_its_own_after_the_first() -> None:
    away = Outcome("Light", True, 10, 1000.0, 1.0, None, 50.0)
    results = [Result("grace", 0, (ended("grace", 0, 2000.0).outcomes[0], away)), ended("bc", 0, 10.0)]
    found = standings(results, ("grace", "bc"), Oracle())
    assert [(each.environment, each.method) for each in found] == [
        (HOPPER, "grace"),
        (HOPPER, "bc"),
        ("Light", "grace"),
    ]
    text = markdown(Settings(Comparison(), Config()), found, ("one thing",))
    assert text.index("## Hopper-v5\n") < text.index("## Light (rewards recovered elsewhere)")
    assert text.rstrip().endswith("- one thing")


def test_components_and_what_is_not_known() -> None:
    results = [ended("grace", 0, 1.0, epic=0.25, components={"reward_forward": 2.0}), ended("bc", 0, 1.0, seconds=None)]
    head, (grace, bc) = rows_of(standings(results, ("grace", "bc"), Oracle()))
    assert dict(zip(head, grace, strict=True))["forward"] == "2.000"
    assert (dict(zip(head, grace, strict=True))["EPIC"], dict(zip(head, bc, strict=True))["EPIC"]) == ("0.250", "-")
    assert dict(zip(head, bc, strict=True))["steps/s"] == "-"


def test_the_csv_file_has_a_row_for_each_run() -> None:
    results = [ended("grace", 1, 1.0, components={"reward_x": 2.5}), failed("gail", 0), ended("grace", 0, math.pi, 0.5)]
    rows = list(csv.DictReader(csv_text(results).splitlines()))
    assert [(row["method"], row["seed"]) for row in rows] == [("gail", "0"), ("grace", "0"), ("grace", "1")]
    assert rows[0]["failure"] == "it broke | badly"
    assert (rows[1]["return"], rows[1]["success"], rows[1]["reward_x"]) == ("3.14159", "0.5", "")
    assert (rows[2]["reward_x"], rows[2]["success"], rows[2]["steps_per_second"]) == ("2.5", "", "500")


def test_texts_of_others_are_only_texts_in_tables() -> None:
    """A name from a data file, and what a program's failure says, begin no line, picture or column of their own."""
    name = "a\n## b | <img src=x> [c](d) \x1b[2J\u202e"
    results = [ended("grace", 0, 1.0, environment=name), Result("bc", 0, failure=name)]
    text = markdown(Settings(Comparison(), Config()), standings(results, ("grace", "bc"), Oracle()), (name,))
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        r"## a ## b | \<img src=x> \[c](d) \x1b\[2J\u202e"
    ]
    assert r"- a ## b | \<img" in text
    for written in (text, csv_text(results), plot(name, [Line(name, ())])):
        assert all(sign.isprintable() or sign == "\n" for sign in written)
    assert len(csv_text(results).splitlines()) == 3
