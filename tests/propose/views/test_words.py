"""Words of instructions and the codes that are near goals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled, positive_states
from grace_irl.demos.trajectory import Demonstration, LabelRule, Metadata, Role
from grace_irl.propose.views.grid import GridView
from grace_irl.propose.views.words import associations, table
from tests.propose.asked import walk

RED_BALL, RED_BOX, BLUE_BALL = (14, 11, 5), (8, 11, 5), (14, 17, 5)


def reaching(thing: tuple[int, int, int], text: str, role: Role = "expert", rule: LabelRule = "last") -> Labelled:
    """Something walks up to a thing; another one lies far from it."""
    demonstration = Demonstration(walk([(1, 1), (1, 2), (1, 3)], {(1, 4): thing, (3, 1): (99, 98, 97)}, text), role)
    return Labelled(demonstration, positive_states(demonstration, rule))


ITEMS = [
    *[reaching(RED_BALL, "Take the gax mip")] * 3,
    *[reaching(RED_BOX, "take the gax sul")] * 3,
    *[reaching(BLUE_BALL, "take a wog mip")] * 2,
    reaching(BLUE_BALL, "take the gax sul", "negative"),
]


def test_closed_form() -> None:
    found = associations(ITEMS)
    assert "take" not in found  # in every instruction
    # Code 11 is near the goal in 6 of 8 trajectories, in all 6 with "gax" and in neither without.
    assert found["gax"] == (6, [((1, 11), 0, (6 / 8) ** 6)])
    # 14 in channel 0: in all 5 with "mip", in none of the 3 without.
    assert found["mip"] == (5, [((0, 14), 0, (5 / 8) ** 5)])
    assert found["sul"] == (3, [((0, 8), 0, (3 / 8) ** 3)])
    assert found["wog"][1][0] == ((1, 17), 0, (2 / 8) ** 2)
    # "a" comes with "wog" and cannot be told from it; "the" is in all with 11, as "gax" is.
    assert found["a"] == found["wog"]


def test_what_lies_elsewhere_does_not_count() -> None:
    codes = {code for _, chosen in associations(ITEMS).values() for (_, code), _, _ in chosen}
    assert codes == {8, 11, 14, 17}


def test_the_table_is_cut_and_says_that_it_is_no_proof() -> None:
    lines = table(ITEMS, 1000).splitlines()
    assert lines[0].endswith("Counts, no proof:")
    assert lines[1] == "sul (3): a=8 (without it 0 of 5)"
    assert len(table(ITEMS, 90).splitlines()) < len(lines)
    assert table(ITEMS, 10) == ""


@pytest.mark.parametrize("items", [[], [reaching(RED_BALL, "")], [reaching(RED_BALL, "one text")] * 2])
def test_nothing_to_tell(items: Sequence[Labelled]) -> None:
    assert associations(items) == {}
    assert table(items, 1000) == ""


def test_no_table_where_every_expert_state_is_positive() -> None:
    some = [reaching(RED_BALL, "a", rule="all"), reaching(RED_BOX, "b", rule="all")]
    assert GridView(some, Metadata("grid")).words(1000) == ""
    assert GridView(ITEMS, Metadata("grid")).words(1000) == table(ITEMS, 1000)


def test_a_goal_without_a_step_before_it() -> None:
    alone = walk([(1, 1)], {}, "gax")
    item = Labelled(Demonstration(alone, "expert"), np.ones(1, dtype=np.bool_))
    assert associations([item, *ITEMS])["sul"][0] == 3
