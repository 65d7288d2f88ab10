"""Trajectories in prompts: changes, marks, and what is left out first."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from grace_irl.demos.labels import Labelled, positive_states
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Trajectory
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.trajectory import Shown, head, least, write
from grace_irl.propose.views.vector import VectorView


def item(length: int, role: Role = "expert", rule: str = "last", text: str = "") -> Labelled:
    demonstration = Demonstration(
        Trajectory(np.arange(length, dtype=np.float64).reshape(-1, 1), extra_info=text), role, goals=(0, 2)
    )
    return Labelled(demonstration, positive_states(demonstration, rule))  # type: ignore[arg-type]


def lines(shown: Shown, tokens: int | None = None) -> list[str]:
    view = VectorView([item(50), item(50, "negative")], Metadata("vector"))
    return write(view, shown, tokens).splitlines()


def steps(shown: Shown, tokens: int | None = None) -> list[int]:
    """The states that are written, counted from 1."""
    return [int(line.split(":")[0]) for line in lines(shown, tokens) if line[0].isdigit()]


def test_everything_is_written_where_there_is_room() -> None:
    assert lines(Shown(item(3))) == ["1: [0]", "2: [1]", "3: GOAL [2]"]
    assert lines(Shown(item(3), marks=False))[-1] == "3: [2]"
    assert lines(Shown(item(3, rule="all")))[-1] == "3: [2]"  # said above, in the head


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (item(3, text="go"), "extra_info 'go'; 3 states; positive: the last state"),
        (item(3, rule="all"), "3 states; every state positive"),
        (item(3, rule="goal"), "3 states; positive: those marked GOAL"),
        (item(3, "negative"), "3 states; no state positive"),
    ],
)
def test_heads(each: Labelled, expected: str) -> None:
    assert head(Shown(each)) == expected


def test_rewards_failures_and_debug_are_beside_their_states() -> None:
    shown = Shown(item(3), np.array([np.nan, 0.25, 1e-7]), {1: "a\n b" + "c" * 999}, wrong=(2,))
    told = lines(shown)
    assert told[0] == "1: {reward none} [0]"
    assert told[1] == "2: {reward 0.25} [1]"
    assert told[2] == "  debug: a b" + "c" * 297 + "…"  # 300 characters of it, as docs/prompts.md says
    assert told[3] == "3: GOAL {reward 1e-07 WRONG} [2]"


def test_states_in_a_row_that_do_not_change_are_one_line() -> None:
    states = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0]).reshape(-1, 1)
    still = Labelled(Demonstration(Trajectory(states), "negative"), np.zeros(6, dtype=np.bool_))
    assert lines(Shown(still)) == ["1: [0]", "2..3: no change", "4: [1]", "5: no change", "6: [2]"]
    with_rewards = lines(Shown(still, rewards=np.zeros(6)))
    assert with_rewards[1] == "2..3: {reward 0} no change"
    differing = lines(Shown(still, rewards=np.array([0.0, 0, 1, 1, 1, 1]), wrong=(2,)))
    assert differing[1:4] == ["2: {reward 0} no change", "3: {reward 1 WRONG} no change", "4: {reward 1} [1]"]
    assert len(lines(Shown(still, debug={1: "a", 2: "b"}))) == 8
    assert lines(Shown(still, debug=dict.fromkeys(range(3), "a")))[:3] == ["1: [0]", "  debug: a", "2..3: no change"]


@pytest.mark.parametrize("tokens", [30, 60, 120, 200])
def test_a_budget_is_kept_and_gaps_are_counted(tokens: int) -> None:
    shown = Shown(item(50))
    told = lines(shown, tokens)
    assert estimate("\n".join(told)) <= tokens
    shown_steps = steps(shown, tokens)
    assert {1, 50} <= set(shown_steps)
    left = sum(int(found[1]) for line in told if (found := re.fullmatch(r"… (\d+) left out", line)))
    assert left + len(shown_steps) == 50


def test_the_ends_the_failures_and_what_is_beside_them_stay_longest() -> None:
    shown = Shown(item(50), focus=(20,))
    order = [set(steps(shown, tokens)) for tokens in range(20, 120, 4)]
    assert order[0] >= {1, 50}
    assert all(small <= large for small, large in pairwise(order))
    first = next(each for each in order if len(each) >= 6)
    assert {1, 50, 21, 20, 22, 49} <= first


def test_goal_states_are_written_in_full_beside_the_change() -> None:
    """The first of a row of goal states, unless the change says it all."""
    states = np.array([[0.0, 1, 1, 5], [1, 1, 1, 6], [2, 1, 1, 6], [2, 2, 1, 7], [2, 2, 3, 7], [2, 2, 3, 7]])
    items = [
        Labelled(Demonstration(Trajectory(states), role), positive)
        for role, positive in (("expert", np.arange(6) >= 4), ("negative", np.zeros(6, dtype=np.bool_)))
    ]
    view = VectorView(items, Metadata("vector"))
    assert write(view, Shown(items[0])).splitlines()[-2:] == [
        "5: GOAL [2]=3; in full: [2 2 3 7]",
        "6: GOAL no change",
    ]
    second = replace(items[0], positive=np.arange(6) == 1)
    assert write(view, Shown(second)).splitlines()[1] == "2: GOAL [1 1 1 6]"


def test_a_state_after_an_omission_that_is_as_before_names_the_state() -> None:
    states = np.zeros((50, 1))
    states[20:30] = 1.0
    back = Labelled(Demonstration(Trajectory(states), "negative"), np.zeros(50, dtype=np.bool_))
    told = lines(Shown(back, focus=(40,), only_focus=True))
    assert told == ["1: [0]", "… 38 left out", "40: as 1", "41: no change", "… 9 left out"]


def test_only_what_is_wrong() -> None:
    shown = Shown(item(50), focus=(20, 40), only_focus=True)
    assert steps(shown) == [1, 20, 21, 40, 41]
    assert lines(shown)[-1] == "… 9 left out"


def test_steps_in_between_are_spread_evenly() -> None:
    chosen = steps(Shown(item(50, "negative")), 90)
    gaps = np.diff(chosen)
    assert len(chosen) >= 6
    assert gaps.max() <= 2 * np.sort(gaps)[len(gaps) // 2] + 1


def test_a_limit_of_its_own() -> None:
    assert len(steps(Shown(item(50), limit=60))) < len(steps(Shown(item(50))))
    assert steps(Shown(item(50), limit=60), 30) == steps(Shown(item(50)), 30)


def test_the_shortest_form_is_never_longer_than_the_whole() -> None:
    view = VectorView([item(50), item(50, "negative")], Metadata("vector"))
    for length in (1, 2, 3, 4, 5, 50):
        assert least(view, Shown(item(length))) <= estimate(write(view, Shown(item(length))))
