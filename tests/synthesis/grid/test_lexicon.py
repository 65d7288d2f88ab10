"""Demands of a step's words on a thing."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.grid.lexicon import Lexicon
from grace_irl.synthesis.grid.meaning import Filter, Plan
from grace_irl.synthesis.grid.reading import GridReading
from tests.synthesis.grid.scenes import FACED, FIVE, ONE, TAKEN, TINY, reading


@pytest.mark.parametrize(
    ("one", "words", "described", "filters"),
    [
        (reading({"event": FACED}), "go lu", False, {FACED}),
        (reading({"event": FACED, "channel 0": ONE}, lu=FIVE), "go lu", False, {FACED, ONE, FIVE}),
        (reading({"event": FACED, "channel 0": ONE}, lu=TAKEN), "go lu", False, {TAKEN, ONE}),
        (reading({"event": FACED, "channel 0": ONE}, lu=TAKEN), "go", False, {FACED, ONE}),
        (reading({"event": FACED, "channel 0": ONE}, lu=FIVE), "go lu", True, {FIVE}),
        (reading({"event": FACED}, lu=FIVE), "", True, set()),
    ],
)
def test_what_a_step_has_to_meet(one: GridReading, words: str, described: bool, filters: set[Filter]) -> None:
    found = Lexicon(TINY, Plan()).columns(one, words.split(), described=described)
    assert {TINY.filters[column] for column in found} == filters


def test_constants_of_a_pair_are_of_the_thing_alone() -> None:
    lexicon = Lexicon(TINY, Plan((("ka", "beside"),)))
    one = reading({"event": FACED, "channel 1": FIVE}, lu=ONE)
    always = tuple(sorted(TINY.index[f] for f in (FACED, FIVE)))
    assert lexicon.stages(one, 0) == (((always, (TINY.index[ONE],)),),)
    assert lexicon.stages(one, 1) == (((tuple(sorted(TINY.index[f] for f in (FACED, FIVE, ONE))),),),)
