"""Counts over the training screens: backgrounds, what tells, words of instructions."""

from __future__ import annotations

import numpy as np

from grace_irl.demos.labels import Labelled, positive_states
from grace_irl.demos.trajectory import Demonstration, LabelRule, Role, Trajectory
from grace_irl.propose.views.outline import ScreenOutline
from grace_irl.propose.views.screen_words import (
    MAX_SCREENS,
    Counted,
    Telling,
    background,
    reached,
    sampled,
    shares,
    sharing,
    telling,
    telling_by_task,
    telling_names,
    telling_table,
    words_table,
)
from grace_irl.states.texts import pack
from tests.propose.screens import APP, node, screen


def item(
    states: list[str], text: str = "", role: Role = "expert", rule: LabelRule = "last", task: str = "default"
) -> Labelled:
    demonstration = Demonstration(Trajectory(pack(states), extra_info=text), role, task)
    return Labelled(demonstration, positive_states(demonstration, rule))


def table(screens: list[Counted], tokens: int) -> str:
    return telling_table(screens, telling_by_task(screens), tokens)


def said(items: list[Labelled], tokens: int) -> str:
    found = reached(items, ScreenOutline.of)
    return words_table(found, sharing(found), tokens)


def alarm(time: str, on: bool, *more: str) -> str:
    return screen(
        node("TextView", time, name="clock"),
        node("Switch", name="onoff", checkable=True, checked=on),
        *[node("TextView", text) for text in more],
    )


START = screen(node("TextView", "Alarm", name="title"), node("Button", "Add", clickable=True))
ITEMS = [
    item([START, alarm("8:25", True, "Sunday")], "set an alarm at 08:25 on sunday"),
    item([START, alarm("9:30", True, "Monday")], "set an alarm at 9:30 on monday"),
    item([START, alarm("7:15", True, "Monday")], "set an alarm at 7:15 on monday"),
    item([START, alarm("5:00", False)], "set an alarm at 9:30 on sunday", "negative"),
]


def test_telling_closed_form() -> None:
    screens = sampled(ITEMS, ScreenOutline.of)
    assert telling(screens, "default") == [
        Telling("Switch #onoff checked", APP, 3, 0),
        Telling("TextView #clock with any text", APP, 3, 1),
        Telling("TextView 'Monday'", APP, 2, 0),
    ]
    assert telling(screens, "another") == []
    names = telling_names(screens, telling_by_task(screens))
    assert names == {f"{APP}\nSwitch #onoff", f"{APP}\nTextView #clock", f"{APP}\nTextView 'Monday'"}


def test_telling_by_task_counts_the_others_once() -> None:
    items = [
        *[item([START, alarm("8:25", True)], task="alarm")] * 2,
        *[item([START, screen(node("TextView", "Paused"))], task="pause")] * 2,
    ]
    text = table(sampled(items, ScreenOutline.of), 500)
    assert text.splitlines() == [
        "Nodes that positive screens have and few of the 4 others (training data; counts, no proof):",
        "task alarm, 2 screens:",
        "  2 and 0 others: Switch #onoff checked",
        "  2 and 0 others: TextView '8:25' #clock",
        "task pause, 2 screens:",
        "  2 and 0 others: TextView 'Paused'",
    ]
    assert table(sampled(items, ScreenOutline.of), 45).splitlines() == text.splitlines()[:3]
    assert table(sampled(items, ScreenOutline.of), 10) == ""


def test_nothing_tells_where_all_are_alike() -> None:
    assert telling(sampled([item([START, START])], ScreenOutline.of), "default") == []
    assert table(sampled([item([START, START], rule="all")], ScreenOutline.of), 500) == ""


def test_the_background_is_what_nine_of_ten_have_once() -> None:
    states = [screen(node("TextView", "Every"), node("View", "Twice"), node("View", "Twice"))] * 9
    screens = sampled([item([*states, screen(node("TextView", "Other"))])], ScreenOutline.of)
    assert [each.line for each in background(screens, shares(screens)).values()] == ["TextView 'Every'"]
    fewer = sampled([item([*states[:8], *[screen(node("TextView", "Other"))] * 2])], ScreenOutline.of)
    assert background(fewer, shares(fewer)) == {}
    assert background(screens[:4], shares(screens[:4])) == {}


def test_what_is_twice_on_a_screen_takes_no_room_of_the_background() -> None:
    long = [node("TextView", f"AAAA {n} {'word ' * 30}") for n in range(12)]
    once, twice = (screen(*long * times, node("TextView", "Every")) for times in (1, 2))
    screens = sampled([item([twice, *[once] * 5])], ScreenOutline.of)
    assert [each.line for each in background(screens, shares(screens)).values()] == ["TextView 'Every'"]


def test_many_screens_are_drawn_evenly_with_the_positive_ones() -> None:
    states = [START] * 400
    items = [item(states, role="negative")] * 10 + [item(states[:3])] * 30
    looked_at = sampled(items, ScreenOutline.of)
    assert MAX_SCREENS / 3 < len(looked_at) <= MAX_SCREENS
    assert sum(bool(each.positive[step]) for each, step, _ in looked_at) == 30


def test_sharing_closed_form() -> None:
    (clock, day) = sharing(reached(ITEMS, ScreenOutline.of))
    assert (clock.place, clock.own, clock.name) == ("TextView #clock text", 3, f"{APP}\nTextView #clock")
    # Only 9 and 30, 7 and 15, 8 and 25: none of them is in another instruction.
    assert clock.other == 0.0
    assert clock.example == ("8:25", ("25", "8"), "set an alarm at 08:25 on sunday")
    # Two of the six pairs of an instruction and another one's screen are about monday.
    assert (day.place, day.own, day.other) == ("TextView text", 3, 2 / 6)


def test_words_that_all_instructions_have_do_not_count() -> None:
    found = reached(ITEMS, ScreenOutline.of)
    assert [sorted(each.words) for each in found] == [
        ["25", "8", "sunday"],
        ["30", "9", "monday"],
        ["15", "7", "monday"],
    ]
    (alone,) = reached(ITEMS[:1], ScreenOutline.of)
    assert {"alarm", "8", "25", "sunday"} <= alone.words


def test_states_go_with_words() -> None:
    items = [
        item([START, alarm("1", on), alarm("1", on)], f"turn it {'on' if on else 'off'} again") for on in (True, False)
    ] * 4
    text = said(items, 500)
    assert "'on' (4): Switch #onoff checked (without it 0 of 4)" in text
    assert "'off' (4): Switch #onoff unchecked (without it 0 of 4)" in text
    for tokens in (0, 20, 40, 60, 80):
        assert said(items, tokens) in (
            text,
            *("\n".join(text.splitlines()[:n]) for n in range(9)),
        )


def test_without_instructions_or_goals_there_is_nothing_to_say() -> None:
    for items in ([item([START])], [item([START], "go", "negative")], []):
        assert said(items, 500) == ""


def test_positive_first_screens_count_whole() -> None:
    (one,) = reached([item([alarm("8:25", True)], "alarm at 8:25")], ScreenOutline.of)
    assert len(one.items) == 2
    assert np.all(one.words >= {"8", "25"})
