"""The price of what a reading says, in closed form."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.grid.lexicon import Lexicon
from grace_irl.synthesis.grid.meaning import SEVERAL, Filter, Plan
from grace_irl.synthesis.grid.reading import (
    CLASS,
    CLASS_ELSE,
    COMMON,
    CONSTANT,
    CONSTANT_PLACE,
    FRAME,
    MEANING,
    ORDER,
    SYNONYM,
    GridReading,
)
from tests.synthesis.grid.scenes import FACED, FIVE, ONE, TAKEN, TINY, TWO, reading


@pytest.mark.parametrize(
    ("one", "price"),
    [
        (reading({"event": FACED}), CONSTANT),
        (reading({"event": FACED, "channel 0": ONE}), 2 * CONSTANT),
        (reading({"event": FACED, "side": Filter("side", 0)}), CONSTANT + CONSTANT_PLACE),
        (reading({"event": FACED}, lu=ONE), CONSTANT + MEANING + CLASS_ELSE),
        (reading({"event": FACED}, ka=SEVERAL), CONSTANT + MEANING + CLASS["count"] + FRAME / 2),
        (reading({"event": FACED}, lu=SEVERAL), CONSTANT + MEANING + CLASS["count"] + COMMON),  # in every instruction
        (reading({"event": FACED}, lu=TAKEN), CONSTANT + MEANING + CLASS["event"]),
        # "ka" and "mo" fill the same gap: of one feature nothing is due, of two all, silent beside spoken half.
        (reading({"event": FACED}, ka=ONE, mo=TWO), CONSTANT + 2 * MEANING + CLASS_ELSE),
        (reading({"event": FACED}, ka=ONE, mo=ONE), CONSTANT + 2 * MEANING + CLASS_ELSE + SYNONYM),
        (reading({"event": FACED}, ka=ONE, mo=FIVE), CONSTANT + 2 * MEANING + 2 * CLASS_ELSE + FRAME),
        (reading({"event": FACED}, ka=ONE), CONSTANT + MEANING + CLASS_ELSE + FRAME / 2),
        # "go" before "lu" twice, after it once.
        (reading({"event": FACED}, go=ONE, lu=FIVE), CONSTANT + 2 * MEANING + 2 * CLASS_ELSE + ORDER),
        (reading({"event": FACED}, go=FIVE, lu=ONE), CONSTANT + 2 * MEANING + 2 * CLASS_ELSE + ORDER),
        # Two words for one event are no synonyms: a verb may have several forms.
        (reading({"event": FACED}, go=TAKEN, lu=TAKEN), CONSTANT + 2 * MEANING + CLASS["event"]),
    ],
)
def test_price(one: GridReading, price: float) -> None:
    assert Lexicon(TINY, Plan()).price(one) == pytest.approx(price)
