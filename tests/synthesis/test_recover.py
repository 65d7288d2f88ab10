"""Programs read from their text, and only from a text that was written here."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.grid.meaning import Filter, Hypothesis, Outline, Plan, summary
from grace_irl.synthesis.grid.scene import SIDES, Perception
from grace_irl.synthesis.grid.source import write_source
from grace_irl.synthesis.reshaper import MOST, recover
from tests.synthesis.grid.programs import (
    BALL,
    BLUE,
    CHANGED,
    FACED,
    GUESS,
    MAYBE_RED,
    PERCEPTION,
    RED,
    STEPS,
    SURE_KEY,
    TAKEN,
    VOCABULARY,
)
from tests.synthesis.worlds import FLOOR, WALL

BEHIND = Filter("side", SIDES.index("behind"))
PHRASES = ("pick up", "and then")
HYPOTHESES = (
    Hypothesis(Plan(), (FACED,)),
    Hypothesis(Plan(), (CHANGED, BALL)),
    Hypothesis(
        Plan((("dol", "after"),)), (TAKEN, BALL, RED, BEHIND), (("go", (FACED,)), SURE_KEY), (MAYBE_RED,), "require"
    ),
    Hypothesis(Plan((("and then", "then"), ("by", "beside"), ("fen", "both"))), (FACED,), STEPS, GUESS, "guess"),
    Hypothesis(Plan(), (FACED,), (("pick up", (TAKEN,)), ("gax", (RED, BLUE)))),
    Hypothesis(Plan(), (FACED,), (), (("mip", (Filter("channel 2", -3),)),), "guess"),
    Hypothesis(Plan(), (CHANGED, Filter("shared 1", 5)), (("mip", (Filter("half", 0),)), ("go", (Filter("half", 3),)))),
    Hypothesis(Plan((("and", "beside"), ("between", "beside"))), (TAKEN,), STEPS, between=True),
)


NOBODY = Perception(None, (FLOOR, WALL))


@pytest.mark.parametrize(
    ("hypothesis", "perception"), [*((one, PERCEPTION) for one in HYPOTHESES), (HYPOTHESES[1], NOBODY)]
)
def test_all_that_a_program_needs_is_in_its_text(hypothesis: Hypothesis, perception: Perception) -> None:
    source = write_source(hypothesis, perception, VOCABULARY, PHRASES)
    found = recover(source)
    assert found is not None
    written = Outline.of(hypothesis, perception, VOCABULARY, PHRASES)
    assert (found.happens, found.shaping) == (summary(hypothesis), None)
    for field in ("plan", "sure", "guessed", "always", "events", "novel", "phrases", "between"):
        assert getattr(found.outline, field) == getattr(written, field), field
    assert found.outline.plain == (written.plain if "PLAIN" in source else ())
    assert found.outline.perception.background == perception.background


SOURCE = write_source(HYPOTHESES[0], PERCEPTION, ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class Reward:\n    def reward_fn(self, state): return 0.0\n",
        SOURCE.replace("return 1.0", "return 2.0"),
        SOURCE.replace("AGENT = (0, 21)", "AGENT = (0, 21, 3)"),
        SOURCE.replace("AGENT = (0, 21)", "AGENT = open('x')"),
        SOURCE.replace("AGENT = (0, 21)", "AGENT = " + "(" * 5000),
        SOURCE.replace("AHEAD = {", "AHEAD, OTHER = {"),
        SOURCE.replace("BACKGROUND", "FOREGROUND"),
        SOURCE.replace('"faced"', '"lost"'),
        SOURCE + "x = 1\n",
        SOURCE + "#" * MOST,
        '"""Reward 1.0 where ; elsewhere',
        '"""Reward 1.0 where it is; 0.0 elsewhere."""\nNEAR = 1\nBACKGROUND = ()\nALWAYS = {3: 4}\n',
        '"""Reward 1.0 where it is; 0.0 elsewhere."""\nBACKGROUND = ()\nWORDS = {**{}, 0: {"a": {[]}}}\n',
    ],
)
def test_what_was_written_otherwise_is_foreign(text: str) -> None:
    assert text != SOURCE
    assert recover(text) is None
