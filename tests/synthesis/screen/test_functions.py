"""The functions that programs are made of: spellings of times and numbers, and parts of screens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grace_irl.synthesis.screen import functions as f
from tests.synthesis.screen.phone import node, screen


def at(hour: int, minute: int = 0, second: int = 0) -> float:
    return 3600.0 * hour + 60 * minute + second


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8:25 AM", {at(8, 25)}),
        ("8:25\u200aAM", {at(8, 25)}),
        ("8:25 a.m.", {at(8, 25)}),
        ("8:25pm", {at(20, 25)}),
        ("12:05 AM", {at(0, 5)}),
        ("12:05 pm", {at(12, 5)}),
        ("20:25", {at(20, 25), 20 * 60.0 + 25}),
        ("08:25", {at(8, 25), 8 * 60.0 + 25}),
        ("8:25", {at(8, 25), at(20, 25), 8 * 60.0 + 25}),
        ("8.25", {at(8, 25), at(20, 25)}),
        ("8 am", {at(8)}),
        ("at 8am.", {at(8)}),
        ("10 o'clock", {at(10), at(22)}),
        ("00:05:00", {at(0, 5)}),
        ("1:05:30", {at(1, 5, 30)}),
        ("90:00", {at(1, 30)}),
        ("8h 25m", {at(8, 25)}),
        ("8h25m", {at(8, 25)}),
        ("1 hr 5 min", {at(1, 5)}),
        ("1 hour and 30 minutes", {at(1, 30)}),
        ("5 minutes", {at(0, 5)}),
        ("10-minute timer", {at(0, 10)}),
        ("5 min, 10 sec", {at(0, 5, 10)}),
        ("1.5 hours", {at(1, 30)}),
        ("45s", {45.0}),
        ("from 8 am to 9:30 am", {at(8), at(9, 30)}),
        ("25:70", {25 * 60.0 + 70}),  # on a clock it is nothing
        ("", set()),
        ("12.05.2024", set()),
        ("version 8.25.1", set()),
        ("192.168.0.1", set()),
        ("30 Sat", set()),
        ("3 mm", set()),
        ("Room 12", set()),
    ],
)
def test_times(text: str, expected: set[float]) -> None:
    assert f.times(f.plain(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", {5.0}),
        ("-3 and \u22123.5", {-3.0, -3.5}),
        ("0,5", {0.5}),
        ("1,234.5", {1234.5}),
        ("1.234,5", {1234.5}),
        ("1 234", {1234.0}),
        ("1,234,567 views", {1234567.0}),
        ("8:25", {8.0, 25.0}),
        ("100%", {100.0}),
        ("(3)", {3.0}),
        ("5min", {5.0}),
        ("10-15", {10.0, 15.0}),
        ("12.05.2024", set()),
        ("192.168.0.1", set()),
        ("v8", set()),
        ("9" * 40, set()),
        ("\u0663", set()),
        ("none", set()),
    ],
)
def test_numbers(text: str, expected: set[float]) -> None:
    assert f.numbers(text) == expected


@given(st.text(alphabet=st.sampled_from("0123456789:.,- apmhinsourc'\u0663\u2009and"), max_size=40))
def test_what_cannot_be_read_is_nothing(text: str) -> None:
    """No text raises, and what is found is finite."""
    for found in (*f.times(text), *f.numbers(text), *f.times(f.plain(text))):
        assert abs(found) < 1e16


@given(st.integers(0, 23), st.integers(0, 59))
def test_spellings_of_one_time_share_a_reading(hour: int, minute: int) -> None:
    half = "AM" if hour < 12 else "PM"
    spelt = [f"{hour:02}:{minute:02}", f"{hour % 12 or 12}:{minute:02} {half}", f"{hour % 12 or 12}.{minute:02}{half}"]
    assert all(at(hour, minute) in f.times(text) for text in spelt)
    durations = [f"{hour} hours {minute} minutes", f"{hour}h {minute}m", f"{hour:02}:{minute:02}:00"]
    assert all(f.times(text) == {at(hour, minute)} for text in durations)


@pytest.mark.parametrize("text", ["9" * 100_000, "5" + " " * 100_000, "1:" * 50_000, "5 h and" * 20_000, '"' * 100_000])
def test_long_texts_are_read_in_linear_time(text: str) -> None:
    """With quadratic patterns this takes minutes."""
    f.times(text)
    f.numbers(text)
    f.quotes(text)


@pytest.mark.parametrize(
    ("instruction", "texts", "mentioned", "echoed"),
    [
        ("turn on wi fi", ("", "Wi-Fi"), True, False),
        ("set a weekend alarm", ("Alarm", ""), True, True),
        ("ringtone beebeep", ("BeeBeep Alarm",), False, True),
        ("set an alarm for saturday", ("Sat",), False, False),
        ("alarms", ("Alarm",), False, False),
        ("choose am", ("AM",), True, False),
        ("a b c", ("a",), False, False),  # a single letter is said by chance
        ("", ("Alarm",), False, False),
        ("anything", ("", ""), False, False),
    ],
)
def test_words_of_the_instruction(instruction: str, texts: tuple[str, ...], mentioned: bool, echoed: bool) -> None:
    assert f.mentions(instruction, texts) is mentioned
    assert f.echoes(instruction, texts) is echoed


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ('Add "Buy Milk" to "my list"', {"buy milk", "my list"}),
        ("Add \u201cBuy milk\u201d now", {"buy milk"}),
        ("Add 'buy milk' now", {"buy milk"}),
        ("Ann's list isn't Bob's", set()),
        ('An empty "" one', set()),
        ("none", set()),
    ],
)
def test_quotes(instruction: str, expected: set[str]) -> None:
    assert f.quotes(f.plain(instruction)) == expected


def row(text: str, *, on: bool) -> tuple[dict[str, object], list[object]]:
    switch = node(cls="Switch", id="onoff", checkable=True, checked=on)
    return node(node(id="title", text=text), node(switch, cls="FrameLayout"), cls="LinearLayout")


def test_an_item_is_the_largest_part_with_one_anchor() -> None:
    state = screen(node(node(row("Wi-Fi", on=True), row("NFC", on=False), id="list"), node(text="below"), id="root"))
    screen_ = f.nodes(state)
    found = [[f.name(n) or f.kind(n) for n in item] for item in f.items(screen_, "title")]
    assert found == [["LinearLayout", "title", "FrameLayout", "onoff"]] * 2
    assert [len(item) for item in f.items(screen_, "root")] == [len(screen_)]  # alone, it has the whole screen
    assert list(f.items(screen_, "nothing")) == []


def test_an_anchor_in_another_one() -> None:
    state = screen(node(node(node(id="a", text="1"), id="a"), node(id="b"), cls="FrameLayout"))
    assert [[f.name(n) for n in item] for item in f.items(f.nodes(state), "a")] == [["a", "a"], ["a"]]


def test_what_stands_beside_a_node() -> None:
    state = screen(node(row("Wi-Fi", on=True), row("NFC", on=False)))
    switches = [n for n in f.nodes(state) if f.name(n) == "onoff"]
    assert [f.beside(n) for n in switches] == [["Wi-Fi"], ["NFC"]]
    assert f.beside(f.nodes(screen(node()))[0]) == []


def test_chosen_children() -> None:
    chips = [node(text=t, desc=d, checkable=True, checked=c) for t, d, c in (("S", "Sunday", True), ("M", "", False))]
    group = f.nodes(screen(node(*chips, node(text="All", selected=True))))[0]
    assert f.chosen(group) == {"Sunday", "All"}


def test_the_status_bar_is_not_looked_at() -> None:
    bar = node(node(id="clock", text="8:25"), package="com.android.systemui")
    state = screen(bar, node(id="main"))
    assert [f.name(n) for n in f.nodes(state)] == ["main"]
    assert [f.name(n) for n in f.all_nodes(state)] == ["", "clock", "main"]


@pytest.mark.parametrize(
    ("tests", "expected"), [([True], 1.0), ([True, True], 1.0), ([False], 0.0), ([True, False], 0.25)]
)
def test_the_grade_rises_with_what_holds(tests: list[bool], expected: float) -> None:
    assert f.graded(tests) == expected


def test_the_best_item_counts() -> None:
    things = [["a"], ["a", "b"], []]
    assert f.best(things, lambda item: ["a" in item, "b" in item]) == [True, True]
    assert f.best([], lambda item: ["a" in item, "b" in item]) == [False]
