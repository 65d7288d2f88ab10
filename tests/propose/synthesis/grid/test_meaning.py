"""Filters and plans."""

from __future__ import annotations

import pytest

from grace_irl.propose.synthesis.grid.meaning import SEVERAL, Arrangement, Filter, Plan


@pytest.mark.parametrize(
    ("arrangement", "instruction", "steps"),
    [
        ("whole", "open red then blue", ["open red then blue"]),
        ("then", "open red then blue", ["open red", "blue"]),
        ("after", "open red then blue", ["blue", "open red"]),
        ("both", "open red then blue", ["open red", "blue"]),
        ("beside", "open red then blue", ["open red", "blue"]),
        ("then", "open red", ["open red"]),
        ("then", "then blue", ["", "blue"]),
        ("then", "a then b then c", ["a", "b then c"]),  # the first one counts
    ],
)
def test_steps(arrangement: Arrangement, instruction: str, steps: list[str]) -> None:
    found = Plan(arrangement, "" if arrangement == "whole" else "then").steps(tuple(instruction.split()))
    assert found == tuple(tuple(step.split()) for step in steps)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Filter("event", 0), "faced"),
        (Filter("side", 2), "left"),
        (Filter("channel 1", 7), "channel 1 = 7"),
        (SEVERAL, "count = 1"),
    ],
)
def test_filters_read_as_text(one: Filter, text: str) -> None:
    assert str(one) == text
