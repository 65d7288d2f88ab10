"""A program's story in half a sentence."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.grid.meaning import Hypothesis, Plan, summary
from tests.synthesis.grid.programs import FACED, RED, SURE_BALL, TAKEN


@pytest.mark.parametrize(
    ("hypothesis", "text"),
    [
        (Hypothesis(Plan(), (FACED,)), "the agent faces a thing"),
        (Hypothesis(Plan(), (TAKEN, RED)), "a thing with channel 1 = 11 has just gone from its cell"),
        (Hypothesis(Plan(), (FACED,), (SURE_BALL,)), "the agent faces the thing that the instruction describes"),
        (
            Hypothesis(Plan((("dol", "then"),)), (FACED,), (SURE_BALL,)),
            "the agent faces the thing that the instruction describes, as the last step of the instruction",
        ),
        (
            Hypothesis(Plan((("dol", "beside"),)), (TAKEN,), (SURE_BALL,)),
            "the thing that the instruction describes has just gone from its cell, "
            "beside the other thing that it describes",
        ),
        (
            Hypothesis(Plan(), (FACED,), (("pick", (TAKEN,)),)),
            "what the instruction says has just happened to the thing that the instruction describes",
        ),
    ],
)
def test_summary(hypothesis: Hypothesis, text: str) -> None:
    assert summary(hypothesis) == text
