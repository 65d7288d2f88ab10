"""Words of instructions, and the codes of first states and near goals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled, positive_states
from grace_irl.demos.trajectory import Demonstration, LabelRule, Metadata, Role
from grace_irl.propose.views.actor import Actor
from grace_irl.propose.views.grid import GridView
from grace_irl.propose.views.words import Without, associations, near_goals, table
from tests.propose.asked import FLOOR, WALL, walk

RED_BALL, RED_BOX, BLUE_BALL = (14, 11, 5), (8, 11, 5), (14, 17, 5)
FAR = (99, 98, 97)
WITHOUT = Without(Actor(0, 21, ((21, 1, 4),)), (WALL, FLOOR))

Thing = tuple[int, int, int]


def reaching(
    thing: Thing,
    text: str,
    role: Role = "expert",
    rule: LabelRule = "last",
    start: int = 1,
    others: Sequence[Thing] = (),
) -> Labelled:
    """Something walks up to a thing; others lie far from it."""
    things = {(1, 4): thing, **{(3, 1 + place): each for place, each in enumerate((FAR, *others))}}
    path = [(2, start), (1, 1), (1, 2), (1, 3)]
    demonstration = Demonstration(walk(path, things, text), role)
    return Labelled(demonstration, positive_states(demonstration, rule))


ITEMS = [
    *[reaching(RED_BALL, "Take the gax mip", start=n) for n in (1, 2, 3)],
    *[reaching(RED_BOX, "take the gax sul", start=n) for n in (1, 2, 3)],
    *[reaching(BLUE_BALL, "take a wog mip", start=n) for n in (1, 2)],
    reaching(RED_BOX, "take the gax sul", "negative", start=4),
    reaching(BLUE_BALL, "take the odd one"),
]


def test_closed_form() -> None:
    found = associations(ITEMS, WITHOUT)
    assert "take" not in found  # in every instruction
    # Code 11 is in 7 of 10 first states, in all 7 with "gax" and in none without.
    assert found["gax"] == (7, [((1, 11), 0, (7 / 10) ** 7)])
    # 14 in channel 0: in all 5 with "mip", in 1 of the 5 without.
    assert found["mip"] == (5, [((0, 14), 1, (6 / 10) ** 5)])
    assert found["sul"] == (4, [((0, 8), 0, (4 / 10) ** 4)])
    assert found["wog"][1][0] == ((1, 17), 1, (3 / 10) ** 2)
    # "a" comes with "wog" and cannot be told from it.
    assert found["a"] == found["wog"]


def test_a_word_of_one_trajectory_tells_nothing() -> None:
    assert {"odd", "one"}.isdisjoint(associations(ITEMS, WITHOUT))
    assert {"odd", "one"}.isdisjoint(near_goals(ITEMS, WITHOUT))


def test_equal_first_states_with_one_instruction_count_once() -> None:
    again = [*ITEMS, *[reaching(RED_BALL, "Take the gax mip", role) for role in ("expert", "negative")]]  # type: ignore[arg-type]
    assert associations(again, WITHOUT) == associations(ITEMS, WITHOUT)
    assert near_goals(list(reversed(again)), WITHOUT) == near_goals(ITEMS, WITHOUT)


def test_an_instruction_of_another_trajectory_does_not_count() -> None:
    lacking = reaching(BLUE_BALL, "take the gax sul", "negative")
    swapped = replace(lacking, demonstration=replace(lacking.demonstration, swapped=True))
    assert associations([*ITEMS, swapped], WITHOUT) == associations(ITEMS, WITHOUT)
    assert "sul" not in associations([*ITEMS, lacking], WITHOUT)  # a first state with the word and without the code


def test_the_actor_and_the_background_do_not_count() -> None:
    """The number 1 of the actor's second channel is that of a thing, too; floor and wall have 5 like grey things."""
    grey = (30, 1, 5)
    items = [
        *[reaching(grey, "find grey", start=n) for n in (1, 2, 3)],
        *[reaching((31, 2, 6), "find other", start=n) for n in (1, 2, 3)],
    ]
    assert ((1, 1), 0, 1 / 8) in associations(items, WITHOUT)["grey"][1]
    assert ((2, 5), 0, 1 / 8) in associations(items, WITHOUT)["grey"][1]
    assert [thing for thing, _, _ in associations(items)["grey"][1]] == [(0, 30)]
    assert [thing for thing, _, _ in near_goals(items)["grey"][1]] == [(0, 30)]
    assert "grey (3): a=30 (without it 0 of 3), b=1 (without it 0 of 3)" in GridView(items, Metadata("grid")).words(999)


def test_in_crowded_grids_codes_near_goals_tell_more() -> None:
    every = (RED_BALL, RED_BOX, BLUE_BALL)
    items = [replace_others(item, every) for item in ITEMS]
    assert associations(items, WITHOUT) == {}
    assert near_goals(items, WITHOUT)["gax"] == (6, [((1, 11), 0, (6 / 9) ** 6)])
    assert near_goals(items, WITHOUT)["sul"] == (3, [((0, 8), 0, (3 / 9) ** 3)])
    text = table(items, 1000, WITHOUT)
    assert text.startswith("Words and codes: codes of channel a, b or c near the goal")
    # A first state with the word and without the code says that the word means something else.
    gone = reaching(BLUE_BALL, "take the gax sul", "negative")
    assert {"gax", "sul"}.isdisjoint(near_goals([*items, gone], WITHOUT))


def replace_others(item: Labelled, others: Sequence[Thing]) -> Labelled:
    """The same trajectory in a grid with more things, far from the goal."""
    states = item.trajectory.states.copy()
    for place, thing in enumerate(others):
        states[:, 3, 2 + place] = thing
    trajectory = replace(item.trajectory, states=states)
    return replace(item, demonstration=replace(item.demonstration, trajectory=trajectory))


def test_what_lies_far_from_all_goals_tells_nothing() -> None:
    for found in (associations(ITEMS, WITHOUT), near_goals(ITEMS, WITHOUT)):
        codes = {code for _, chosen in found.values() for (_, code), _, _ in chosen}
        assert codes == {8, 11, 14, 17}


def test_the_table_is_cut_and_says_that_it_is_no_proof() -> None:
    lines = table(ITEMS, 1000, WITHOUT).splitlines()
    assert lines[0].endswith("Counts, no proof:")
    assert lines[1] == "sul (4): a=8 (without it 0 of 6)"
    assert len(table(ITEMS, 90, WITHOUT).splitlines()) < len(lines)
    assert table(ITEMS, 10, WITHOUT) == ""


@pytest.mark.parametrize("items", [[], [reaching(RED_BALL, "")], [reaching(RED_BALL, "one text")] * 2])
def test_nothing_to_tell(items: Sequence[Labelled]) -> None:
    assert associations(items) == {}
    assert table(items, 1000) == ""


def test_where_every_expert_state_is_positive_no_step_leads_to_a_goal() -> None:
    items = [replace_others(item, (RED_BALL, RED_BOX, BLUE_BALL)) for item in ITEMS]
    every = [replace(item, positive=np.ones_like(item.positive)) for item in items]
    assert GridView(items, Metadata("grid")).words(1000) == table(items, 1000, WITHOUT) != ""
    assert GridView(every, Metadata("grid")).words(1000) == ""
    assert GridView(ITEMS, Metadata("grid")).words(1000) == table(ITEMS, 1000, WITHOUT)


def test_unlabelled_trajectories_have_first_states_alone() -> None:
    silent = [replace(item, positive=np.zeros_like(item.positive)) for item in ITEMS]
    assert near_goals(silent, WITHOUT) == {}
    assert associations(silent, WITHOUT) == associations(ITEMS, WITHOUT)


def test_a_goal_without_a_step_before_it() -> None:
    alone = walk([(1, 1)], {}, "gax")
    item = Labelled(Demonstration(alone, "expert"), np.ones(1, dtype=np.bool_))
    assert near_goals([item, *ITEMS], WITHOUT)["sul"][0] == 3
