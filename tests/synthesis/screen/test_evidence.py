"""Rows and what it costs to be wrong about them."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.synthesis.screen import evidence as evidence_module
from grace_irl.synthesis.screen.evidence import (
    MISSED,
    WRONG,
    WRONG_ELSEWHERE,
    WRONG_OF_EXPERT,
    ScreenEvidence,
)
from tests.synthesis.screen.phone import node, problem_of, screen

A, B, C, D = (screen(node(text=text)) for text in "ABCD")


def rows_of(evidence: ScreenEvidence) -> dict[tuple[str, str], tuple[float, float]]:
    """Text and instruction of each row, and what it costs to miss it and to take it."""
    named = {}
    for (place, said), missed, wrong in zip(evidence.pairs.tolist(), evidence.missed, evidence.wrong, strict=True):
        look = evidence.looks.all[evidence.sights[place].looks[0]]
        named[look.says[0], evidence.said[said].text] = (float(missed), float(wrong))
    return named


def test_what_rows_cost() -> None:
    data = problem_of([("t", ("go", [A, B, A, C])), ("t", ("go", [B, C]))], [("t", ("stay", [A, A, D]))])
    assert rows_of(ScreenEvidence.of(data.items, system=False)) == {
        ("C", "go"): (2 * MISSED, 0.0),
        ("A", "go"): (0.0, WRONG_OF_EXPERT),  # once for each trajectory
        ("B", "go"): (0.0, 2 * WRONG_OF_EXPERT),
        ("A", "stay"): (0.0, WRONG),
        ("D", "stay"): (0.0, WRONG),
    }


def test_a_goal_that_was_reached_before_is_no_mistake() -> None:
    data = problem_of([("t", ("go", [A, C, C]))], [("t", ("go", [C]))])
    rows = rows_of(ScreenEvidence.of(data.items, system=False))
    assert rows["C", "go"] == (MISSED, WRONG)  # another's state is
    assert rows["A", "go"] == (0.0, WRONG_OF_EXPERT)


def test_goals_share_the_weight_of_their_trajectory() -> None:
    data = problem_of([("t", ("go", [A, B, C, A]))], [], "all")
    rows = rows_of(ScreenEvidence.of(data.items, system=False))
    assert rows["A", "go"] == (MISSED / 2, 0.0)
    assert rows["B", "go"] == (MISSED / 4, 0.0)


def test_goals_of_other_instructions_are_doubtful() -> None:
    data = problem_of([("t", (said, [A, screen(node(text=said))])) for said in ("B", "C", "D")], [("t", ("X", [A]))])
    rows = rows_of(ScreenEvidence.of(data.items, system=False))
    assert rows["B", "C"] == (0.0, WRONG_ELSEWHERE / 2)
    assert rows["D", "B"] == (0.0, WRONG_ELSEWHERE / 2)
    assert ("B", "X") not in rows  # nobody shows how X is done


def test_cost_of_hits() -> None:
    data = problem_of([("t", ("go", [A, C]))], [("t", ("go", [B, D]))])
    evidence = ScreenEvidence.of(data.items, system=False)
    nothing = np.zeros(len(evidence.pairs), np.bool_)
    assert evidence.cost(nothing) == MISSED
    assert evidence.cost(~nothing) == WRONG_OF_EXPERT + 2 * WRONG
    hits = evidence.missed > 0
    assert evidence.cost(hits) == 0.0
    assert evidence.cost(hits) == pytest.approx(MISSED + evidence.signed[hits].sum())


def test_many_other_states_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_module, "MAX_WRONG", 10)
    many = [screen(node(text=str(i))) for i in range(40)]
    evidence = ScreenEvidence.of(problem_of([("t", ("go", [C]))], [("t", ("go", many))]).items, system=False)
    assert (evidence.missed > 0).sum() == 1
    assert (evidence.wrong > 0).sum() == 10
    assert len(evidence.sights) == 11


def test_the_status_bar_is_another_screen_only_where_it_is_looked_at() -> None:
    bar = node(node(id="clock", text="8:25"), package="com.android.systemui")
    data = problem_of([("t", ("go", [A, screen(node(text="C"), bar)]))], [])
    for system, count in ((False, 1), (True, 3)):
        evidence = ScreenEvidence.of(data.items, system=system)
        (goal,) = np.flatnonzero(evidence.missed > 0)
        assert len(evidence.sights[evidence.pairs[goal, 0]].looks) == count
