"""Filters and plans."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.grid.meaning import SEVERAL, Arrangement, Filter, Plan

THEN, AFTER, BOTH, BESIDE = ("then", "then"), ("afterwards", "after"), ("and", "both"), ("by", "beside")


@pytest.mark.parametrize(
    ("separators", "instruction", "stages"),
    [
        ((), "open red then blue", [[["open red then blue"]]]),
        ((THEN,), "open red then blue", [[["open red"]], [["blue"]]]),
        ((THEN,), "open red", [[["open red"]]]),
        ((THEN,), "then blue", [[[""]], [["blue"]]]),
        ((THEN,), "a then b then c", [[["a"]], [["b"]], [["c"]]]),
        ((AFTER,), "a afterwards b", [[["b"]], [["a"]]]),
        ((AFTER,), "a afterwards b afterwards c", [[["c"]], [["b"]], [["a"]]]),
        ((BOTH,), "a and b and c", [[["a"], ["b"], ["c"]]]),
        ((BESIDE,), "a by b", [[["a", "b"]]]),
        ((BOTH, THEN), "a and b then c and d", [[["a"], ["b"]], [["c"], ["d"]]]),
        ((AFTER, BOTH), "a and b afterwards c", [[["c"]], [["a"], ["b"]]]),
        ((AFTER, BESIDE, BOTH, THEN), "a by b and c then d by e", [[["a", "b"], ["c"]], [["d", "e"]]]),
        ((AFTER, THEN), "a then b afterwards c", [[["a"]], [["c"]], [["b"]]]),
    ],
)
def test_stages(
    separators: tuple[tuple[str, Arrangement], ...], instruction: str, stages: list[list[list[str]]]
) -> None:
    plan = Plan()
    for separator in reversed(separators):
        plan = plan.and_at(*separator)
    assert plan == Plan(tuple(sorted(separators)))
    found = plan.stages(tuple(instruction.split()))
    assert [[[" ".join(part) for part in step] for step in stage] for stage in found] == stages


def test_what_a_plan_does() -> None:
    assert (Plan().steps, Plan().beside) == (False, False)
    assert (Plan((BESIDE,)).steps, Plan((BESIDE,)).beside) == (False, True)
    assert all(Plan((one,)).steps for one in (THEN, AFTER, BOTH))
    assert Plan((AFTER, BOTH, THEN)).of("then", "after") == ("afterwards", "then")


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
