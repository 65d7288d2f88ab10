"""Sections of the report about searches."""

from __future__ import annotations

from typing import Any

from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.methods.account import Curves
from grace_irl.methods.map_elites import map_panel
from grace_irl.methods.search_panels import pool_panel, tree_panel
from grace_irl.methods.trained import PolicyAccount, panels
from grace_irl.programs.program import Program
from grace_irl.search.ranks import Scored


def scored(name: str, operator: str, parents: tuple[str, ...], score: float, index: int) -> Scored:
    return Scored(Program(name, "", 1, operator, parents), Evaluation("ok", score=score), index)


FAMILY = [
    scored("a", "initialise", (), 0.1, 0),
    scored("b", "initialise", (), 0.2, 1),
    scored("c", "crossover", ("a", "b"), 0.5, 2),
    scored("d", "weights", ("c",), 0.00004, 3),
]


def test_the_tree_stands_each_program_below_its_first_parent() -> None:
    rows = tree_panel(FAMILY[2], FAMILY).parts[1].rows  # type: ignore[union-attr]
    assert [row[0] for row in rows] == ["a", "· c *", "· · d", "b"]
    assert rows[2] == ("· · d", "weights", "3", "4e-05", "0", "-")
    assert [row[4:] for row in rows] == [("2", "0.5"), ("1", "4e-05"), ("0", "-"), ("0", "-")]


def test_a_large_tree_shows_its_best_programs_and_those_above_them() -> None:
    chain = [
        Scored(Program(f"{n:016x}", "", 1, parents=(f"{n - 1:016x}",) if n else ()), Evaluation("ok", score=n), n)
        for n in range(3_000)
    ]
    leaves = [
        Scored(Program(f"{n:016x}", "", 1, parents=(f"{0:016x}",)), Evaluation("ok", score=-1.0), n)
        for n in range(3_000, 5_000)
    ]
    text, figures = tree_panel(chain[-1], [*chain, *leaves]).parts
    assert "The best 100 of 5,000 programs" in str(text)
    assert len(figures.rows) == 3_000  # type: ignore[union-attr]
    assert figures.rows[0][4:] == ("4999", "2999")  # type: ignore[union-attr]


def test_the_pool_has_its_best_programs_and_all_depths() -> None:
    """The depth of a program is one more than that of its deepest parent."""
    _, members, _, depths = pool_panel(FAMILY, 3).parts
    assert members.rows == (  # type: ignore[union-attr]
        ("c", "1", "0.5", "a, b"),
        ("b", "0", "0.2", "-"),
        ("a", "0", "0.1", "-"),
    )
    assert depths.rows == (("0", "2", "0.2", "0.15"), ("1", "1", "0.5", "0.5"), ("2", "1", "4e-05", "4e-05"))  # type: ignore[union-attr]


def test_a_score_of_zero_but_for_rounding_is_zero() -> None:
    rows = pool_panel([scored("a", "initialise", (), -1.87e-13, 0)], 3).parts[3].rows  # type: ignore[union-attr]
    assert rows == (("0", "1", "0", "0"),)


def curve(*scores: float) -> list[dict[str, float]]:
    return [{"steps": 64 * (k + 1), "score": score, "length": 10.0} for k, score in enumerate(scores)]


def trained_on(policy: dict[str, Any]) -> Scored:
    return Scored(Program("a", "", 1), Evaluation("ok", score=0.5, evidence={"policy": policy}), 0)


def test_each_training_of_a_program_has_a_curve_of_its_own() -> None:
    best = trained_on({"runs": [{"seed": 0, "curve": curve(0.1, 0.5)}, {"seed": 1, "curve": curve(0.2, -0.3)}]})
    ((title, (_, curves, figures)),) = [(each.title, each.parts) for each in panels(best, [best])]
    assert title == "Training"
    assert isinstance(curves, Curves)
    assert curves.lines == (("0", ((64.0, 0.1), (128.0, 0.5))), ("1", ((64.0, 0.2), (128.0, -0.3))))
    assert [row[:3] for row in figures.rows] == [  # type: ignore[union-attr]
        ("0", "64", "0.1"),
        ("0", "128", "0.5"),
        ("1", "64", "0.2"),
        ("1", "128", "-0.3"),
    ]


def test_below_the_floor_the_short_training_has_the_curve() -> None:
    best = trained_on({"runs": [], "short": curve(0.1)})
    (panel,) = panels(best, [best])
    assert panel.parts[1].lines == (("short training", ((64.0, 0.1),)),)  # type: ignore[union-attr]


def test_what_random_actions_score_stands_beside_the_score() -> None:
    runs = [{"seed": 0, "curve": curve(0.4, 0.5)}]
    known = {"task": "pole", "runs": runs, "checkpoint": "best"}
    one, other = (trained_on({**known, "random": chance}).evaluation for chance in (0.25, 0.5))
    account = PolicyAccount()
    said = account.verdict(one)
    assert said.endswith(
        "(best evaluation, one training in the search; random actions: 0.25). Fresh trainings often score less."
    )
    assert account.cautions(one) == []
    assert account.cautions(other) == ["That is no better than random actions, which score 0.5."]
    assert ("random", "random actions score 0.25") in account.facts(one, {})
    (panel,) = panels(trained_on({**known, "random": 0.25}), [])
    assert str(panel.parts[0]).endswith("Random actions score 0.25.")


def test_a_map_without_a_valid_program_has_the_columns_of_its_form() -> None:
    failed = [Scored(Program("e", "", 1), Evaluation("runtime", "no"), 0)]
    text, figures = map_panel(failed, 2, by_parts=True).parts
    assert "number of the reward's components" in str(text)
    assert figures.head == ("size in bits", "1 component", "2 components")  # type: ignore[union-attr]
    assert "tau" in str(map_panel([], 2, by_parts=False).parts[0])
