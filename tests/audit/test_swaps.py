"""Swaps beside the audit: they hide no fault of the user's own episodes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from grace_irl.demos.trajectory import Demonstrations
from tests.audit.bench import codes, drawn, examined, warned
from tests.audit.test_warnings import GOOD, reach


def with_copies_of_experts(given: Demonstrations, of_each: int = 3) -> Demonstrations:
    """These demonstrations, and swaps: experts' episodes with instructions that they do not fulfil."""
    swapped = [
        replace(item, role="negative", swapped=True, trajectory=replace(item.trajectory, extra_info=f"not {number}"))
        for item in given
        if item.role == "expert"
        for number in range(of_each)
    ]
    return replace(given, items=(*given.items, *swapped))


@pytest.mark.parametrize("held_out", [0.25, 0.0])
def test_swaps_do_not_hide_that_negatives_of_the_user_are_paid(held_out: float) -> None:
    alike = drawn(lambda rng, _: reach(rng, "expert"), count=30)
    told = f"if self.text.startswith('not'):\n    return 0.0\n{GOOD}"
    found = examined(with_copies_of_experts(alike), told, held_out=held_out)
    assert "negative episodes nearly as often as experts: 100% of" in warned(found, "no-difference").found
    side = "held-out" if held_out else "training"
    paid = rf"the reward pays (\d+) of \1 {side} negative episodes that are no swaps"
    assert re.fullmatch(paid, warned(found, "false").found)
    good = examined(with_copies_of_experts(drawn(reach, count=30)), told, held_out=held_out)
    assert codes(good) <= {"nothing-held-out", "one-instruction"}


def test_swaps_are_no_held_out_negatives_of_the_user() -> None:
    given = drawn(reach)
    few = replace(given, items=(*given.items[:24], *given.items[24:28]))
    found = warned(examined(with_copies_of_experts(few), GOOD), "few-episodes")
    assert "only 6 expert and 1 negative episodes are held out" in found.found
    alone = replace(given, items=given.items[:24])
    assert "few-episodes" not in codes(examined(with_copies_of_experts(alone), GOOD))
    marked = [replace(item, goals=(item.trajectory.num_steps,)) for item in alone]  # one of them reaches no goal
    missed = with_copies_of_experts(replace(alone, items=(replace(marked[0], goals=()), *marked[1:])))
    assert "few-episodes" not in codes(examined(missed, GOOD, "goal"))
