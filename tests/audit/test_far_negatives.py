"""Negatives that never do what another instruction asks for (`negatives-far`)."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from tests.audit.bench import codes, drawn, examined, warned
from tests.audit.test_instructions import COLOURS, READS, lit, visit


def test_negatives_that_never_come_near() -> None:
    found = examined(drawn(visit), READS)
    assert "negatives-far" in codes(found)

    def wrong(rng: np.random.Generator, role: Role) -> Trajectory:
        made = visit(rng, "expert")
        if role == "expert":
            return made
        others = [colour for colour in COLOURS if colour not in made.extra_info]
        return Trajectory(made.states, made.actions, extra_info=f"switch on the {others[0]} lamp")

    assert "negatives-far" not in codes(examined(drawn(wrong), READS))


@pytest.mark.parametrize("first", ["far", "near"])
def test_the_order_of_files_does_not_choose_the_negatives_that_are_tried(first: str) -> None:
    """Forty long negatives light nothing, and have more states than are tried. Forty others light a wrong lamp."""
    items = drawn(visit).items
    experts = [item for item in items if item.role == "expert"]
    rng = np.random.default_rng(5)
    far, near = [], []
    for _ in range(40):
        made = visit(rng, "negative")
        states = np.column_stack([np.zeros((200, 4)), rng.normal(size=200)])
        far.append(Demonstration(Trajectory(states, np.zeros(199), extra_info=made.extra_info), "negative"))
        lit_lamp = visit(rng, "expert")
        other = next(colour for colour in COLOURS if colour not in lit_lamp.extra_info)
        wrong = Trajectory(lit_lamp.states, lit_lamp.actions, extra_info=f"switch on the {other} lamp")
        near.append(Demonstration(wrong, "negative"))
    for rest, expected in (([], True), (near, False)):
        negatives = [*far, *rest] if first == "far" else [*rest, *far]
        found = examined(Demonstrations(Metadata("vector"), (*experts, *negatives)), READS)
        assert ("negatives-far" in codes(found)) == expected
        if expected:
            assert " negatives (of 40) would be paid" in warned(found, "negatives-far").found


def test_a_contrast_of_few_experts_does_not_make_up_for_far_negatives() -> None:
    few, many = (examined(drawn(visit, count=count), READS, judge=lit) for count in (24, 80))
    assert few.contrast is not None
    assert few.contrast.unpaid is not None
    assert few.contrast.unpaid.value == 1.0
    assert "none would be paid" in warned(few, "negatives-far").found
    assert "negatives-far" not in codes(many)


def test_negatives_that_do_it_with_other_things_come_near(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def does_alike(trajectory: Trajectory, texts: list[str]) -> bool:
        asked.extend(texts)
        return True

    monkeypatch.setattr("grace_irl.runs.auditing.does_alike", does_alike)
    assert "negatives-far" not in codes(examined(drawn(visit), READS))
    assert "switch on the red lamp" in asked


def test_negatives_that_do_a_task_of_no_expert_come_near() -> None:
    """The experts light three of the lamps. Each negative's text names one of four, and a third of them light the
    fourth. So it takes an expert's text with another word to see what they do."""

    def wrong(rng: np.random.Generator, role: Role) -> Trajectory:
        made = visit(rng, role)
        while role == "expert" and COLOURS[3] in made.extra_info:
            made = visit(rng, role)
        if role == "negative" and rng.integers(3) == 0:
            made.states[-1, 3] = COLOURS[3] not in made.extra_info
        return made

    assert "negatives-far" not in codes(examined(drawn(wrong), READS))
    nobody = drawn(lambda rng, role: visit(rng, role) if role == "negative" else wrong(rng, role))
    assert "negatives-far" in codes(examined(nobody, READS))


def test_a_single_negative_that_comes_near_is_hardly_any() -> None:
    items = drawn(visit).items
    wrong = next(item.trajectory for item in items if item.trajectory.states[-1, 0])
    near = Trajectory(wrong.states, wrong.actions, extra_info="switch on the blue lamp")
    found = examined(Demonstrations(Metadata("vector"), (*items, Demonstration(near, "negative"))), READS)
    assert "only 1 of 25 negatives do" in warned(found, "negatives-far").found
