"""The price of what a reading says, in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.synthesis.grid.evidence import GridEvidence
from grace_irl.synthesis.grid.lexicon import Lexicon
from grace_irl.synthesis.grid.meaning import SEVERAL, Filter, Plan
from grace_irl.synthesis.grid.reading import (
    CLASS,
    CLASS_ELSE,
    COMMON,
    CONSTANT,
    CONSTANT_PLACE,
    FRAME,
    IN_PASSING,
    MEANING,
    MUTE,
    ORDER,
    SYNONYM,
    VAGUE,
    GridReading,
)
from grace_irl.synthesis.grid.scene import Perception, look
from tests.synthesis.grid.scenes import FACED, FIVE, ONE, TAKEN, TINY, TWO, event, marks, reading


@pytest.mark.parametrize(
    ("one", "price"),
    [
        (reading({"event": TAKEN}), CONSTANT + 2 * MUTE),
        (reading({"event": FACED}), CONSTANT + IN_PASSING + 2 * MUTE),
        (reading({"event": TAKEN, "channel 0": ONE}), 2 * CONSTANT + 2 * MUTE),
        (reading({"event": TAKEN, "side": Filter("side", 0)}), CONSTANT + CONSTANT_PLACE + 2 * MUTE),
        (reading({"event": TAKEN}, lu=ONE), CONSTANT + MEANING + CLASS_ELSE + 2 * MUTE),
        (reading({"event": TAKEN}, ka=SEVERAL), CONSTANT + MEANING + CLASS["count"] + FRAME / 2),
        # "lu" is in every instruction.
        (reading({"event": TAKEN}, lu=SEVERAL), CONSTANT + MEANING + CLASS["count"] + COMMON + 2 * MUTE),
        (reading({"event": TAKEN}, lu=TAKEN), CONSTANT + MEANING + CLASS["event"] + 2 * MUTE),
        # "ka" and "mo" fill the same gap: of one feature nothing is due, of two all, silent beside spoken half; if both
        # are silent, as in the rows without them, each has a price.
        (reading({"event": TAKEN}, ka=ONE, mo=TWO), CONSTANT + 2 * MEANING + CLASS_ELSE),
        (reading({"event": TAKEN}, ka=ONE, mo=ONE), CONSTANT + 2 * MEANING + CLASS_ELSE + SYNONYM),
        (reading({"event": TAKEN}, ka=ONE, mo=FIVE), CONSTANT + 2 * MEANING + 2 * CLASS_ELSE + FRAME),
        (reading({"event": TAKEN}, ka=ONE), CONSTANT + MEANING + CLASS_ELSE + FRAME / 2),
        # "go" before "lu" twice, after it once.
        (reading({"event": TAKEN}, go=ONE, lu=FIVE), CONSTANT + 2 * MEANING + 2 * CLASS_ELSE + ORDER + 2 * MUTE),
        (reading({"event": TAKEN}, go=FIVE, lu=ONE), CONSTANT + 2 * MEANING + 2 * CLASS_ELSE + ORDER + 2 * MUTE),
        # Two words for one event are no synonyms: a verb may have several forms.
        (reading({"event": TAKEN}, go=TAKEN, lu=TAKEN), CONSTANT + 2 * MEANING + CLASS["event"] + 2 * MUTE),
    ],
)
def test_price(one: GridReading, price: float) -> None:
    assert Lexicon(TINY, Plan()).price(one) == pytest.approx(price)


def doors(*codes: int) -> GridEvidence:
    """Trajectories in which a door of another colour each time, closed at first (1), gets this code at the goal."""
    scenes = []
    for colour, code in enumerate(codes):
        states = np.zeros((3, 3, 3, 3), np.int64)
        states[:, 1, 1] = (4, colour, 1)
        states[2:, 1, 1, 2] = code
        scenes.append(look(states, ("zek",), Perception(None, ((0, 0, 0),))))
    return GridEvidence(scenes, [marks(3, 2)] * len(codes))


def test_a_change_that_leaves_open_into_what_costs_more_if_experts_agree_on_it() -> None:
    changed, opened = event("changed"), Filter("channel 2", 0)
    agreed, apart = doors(0, 0, 0), doors(0, 2, 0)
    assert [agreed.filters[column] for column in agreed.turns] == [opened]
    assert not apart.turns

    def price(evidence: GridEvidence, *constants: Filter) -> float:
        named = {each.feature: evidence.index[each] for each in constants}
        return Lexicon(evidence, Plan()).price(GridReading(named))

    assert price(agreed, changed) == CONSTANT + VAGUE > price(agreed, changed, opened) == 2 * CONSTANT
    assert price(apart, changed) == CONSTANT
    assert price(agreed, changed, Filter("channel 1", 0)) == 2 * CONSTANT + VAGUE
