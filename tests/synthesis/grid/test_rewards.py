"""The pay of programs on a world of two things: every part of a hypothesis, one at a time."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.grid.meaning import Arrangement, Filter, Hypothesis, Novel, Plan
from grace_irl.synthesis.grid.scene import EVENTS, SIDES, Perception
from grace_irl.synthesis.grid.source import write_source
from tests.synthesis.grid.programs import (
    BALL,
    BLUE,
    CHANGED,
    FACED,
    GUESS,
    KEY,
    MAYBE_RED,
    PERCEPTION,
    RED,
    STEPS,
    SURE_BALL,
    SURE_KEY,
    TAKEN,
    WALK,
    checked,
    earned,
)
from tests.synthesis.worlds import AGENT, CLOSED, DOOR, FLOOR, OPEN, WALL, World, rewards, thing


@pytest.mark.parametrize(
    ("meanings", "guesses", "instruction", "expected"),
    [
        ((), (), "", [0, 1, 1, 1]),
        ((SURE_BALL,), (), "mip", [0, 1, 0, 1]),
        ((SURE_BALL,), (), "so a MIP, please", [0, 1, 0, 1]),
        ((SURE_BALL, SURE_KEY), (), "tro", [0, 0, 1, 0]),
        ((("mip", (BALL, KEY)),), (), "mip", [0, 1, 1, 1]),  # surely one of the two
        ((), (MAYBE_RED,), "gax", [0, 1, 0.5, 1]),  # whatever does not fit a guess earns half
        ((SURE_KEY,), (MAYBE_RED,), "gax tro", [0, 0, 0.5, 0]),
        ((SURE_BALL,), (MAYBE_RED,), "gax mip", [0, 1, 0, 1]),
        ((("mip", (BALL, KEY)),), (("mip", (KEY,)),), "mip", [0, 0.5, 1, 0.5]),
        ((SURE_BALL,), (MAYBE_RED,), "", [0, 1, 1, 1]),
    ],
)
def test_sure_and_guessed_meanings(
    meanings: tuple[tuple[str, tuple[Filter, ...]], ...],
    guesses: tuple[tuple[str, tuple[Filter, ...]], ...],
    instruction: str,
    expected: list[float],
) -> None:
    assert earned(Hypothesis(Plan(), (FACED,), meanings, guesses), instruction) == expected


@pytest.mark.parametrize(
    ("novel", "instruction", "expected"),
    [
        # The key's colour has no name, the ball's has: an unknown word must mean the key's.
        ("require", "qux", [0, 0, 1, 0]),
        ("guess", "qux", [0, 0.5, 1, 0.5]),
        ("ignore", "qux", [0, 1, 1, 1]),
        # Nothing is left open by a word that is known to say nothing, or where a known word names the feature.
        ("require", "zek", [0, 1, 1, 1]),
        ("require", "gax qux", [0, 1, 0, 1]),
    ],
)
def test_words_never_seen_before(novel: Novel, instruction: str, expected: list[float]) -> None:
    hypothesis = Hypothesis(Plan(), (FACED,), (MAYBE_RED,), novel=novel)
    assert earned(hypothesis, instruction, words="zek gax") == expected


def test_a_new_word_says_nothing_where_everything_has_a_name() -> None:
    hypothesis = Hypothesis(Plan(), (FACED,), (MAYBE_RED, ("wog", (BLUE,))), novel="require")
    assert earned(hypothesis, "qux", words="zek gax wog") == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("arrangement", "instruction", "meanings", "guesses", "expected"),
    [
        ("then", "mip dol tro", STEPS, (), [0, 0, 1, 0]),
        ("then", "tro dol mip", STEPS, (), [0, 0, 0, 1]),
        ("after", "mip dol tro", STEPS, (), [0, 0, 0, 1]),
        ("both", "tro dol mip", STEPS, (), [0, 0, 1, 1]),
        ("then", "tro", STEPS, (), [0, 0, 1, 0]),
        # A step that was done half only is half done from then on; what fits less now earns less now.
        ("then", "gax dol tro", STEPS, GUESS, [0, 0, 1, 0]),
        ("then", "wog dol tro", STEPS, GUESS, [0, 0, 1, 0]),
        ("then", "wog mip dol tro", STEPS, GUESS, [0, 0, 0.5, 0]),
        ("both", "wog mip dol tro", STEPS, GUESS, [0, 0, 0.5, 0.5]),
        ("then", "gax", STEPS, GUESS, [0, 1, 0.5, 1]),
        ("both", "gax dol gax", STEPS, GUESS, [0, 1, 0.5, 1]),
    ],
)
def test_steps(
    arrangement: Arrangement,
    instruction: str,
    meanings: tuple[tuple[str, tuple[Filter, ...]], ...],
    guesses: tuple[tuple[str, tuple[Filter, ...]], ...],
    expected: list[float],
) -> None:
    assert earned(Hypothesis(Plan((("dol", arrangement),)), (FACED,), meanings, guesses), instruction) == expected


def test_the_thing_beside_may_be_guessed() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 3): thing("red", "ball"), (1, 3): thing("blue", "key")}).act("take")
    plan = Plan((("dol", "beside"),))
    assert earned(Hypothesis(plan, (TAKEN,), STEPS), "mip dol tro", world) == [0, 1]
    assert earned(Hypothesis(plan, (TAKEN,), STEPS), "mip dol mip", world) == [0, 0]
    assert earned(Hypothesis(plan, (TAKEN,), STEPS, (("gax", (RED,)),)), "mip dol gax tro", world) == [0, 0.5]
    assert earned(Hypothesis(plan, (TAKEN,)), "anything dol else", world) == [0, 1]
    assert earned(Hypothesis(plan, (TAKEN, RED)), "anything dol else", world) == [0, 1]
    assert earned(Hypothesis(plan, (TAKEN, BLUE)), "anything dol else", world) == [0, 0]


def test_a_verb_replaces_the_usual_event() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 3): thing("red", "ball")}).act("left", "right", "take")
    hypothesis = Hypothesis(Plan(), (FACED,), (("pick", (TAKEN,)),))
    assert earned(hypothesis, "pick mip", world) == [0, 0, 0, 1]
    assert earned(hypothesis, "mip", world) == [0, 0, 1, 0]


def test_constants_hold_whatever_is_said() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 3): (DOOR, 11, CLOSED)}).act("toggle", "toggle")
    assert earned(Hypothesis(Plan(), (CHANGED,)), "", world) == [0, 1, 1]
    assert earned(Hypothesis(Plan(), (CHANGED, Filter("channel 2", OPEN))), "", world) == [0, 1, 0]
    assert earned(Hypothesis(Plan(), (CHANGED, Filter("channel 2", OPEN)), (SURE_KEY,)), "tro", world) == [0, 0, 0]


def test_phrases_are_read_like_in_training() -> None:
    """Only whole words make a phrase: "pick ups" is not "pick up" and a rest."""
    hypothesis = Hypothesis(Plan(), (FACED,), (("pick up", (BALL,)),))
    source = checked(write_source(hypothesis, PERCEPTION, ["pick up"], ["pick up"]))
    for instruction, expected in {
        "Pick  up": [0, 1, 0, 1],
        "so pick up": [0, 1, 0, 1],
        "pick ups": [0, 1, 1, 1],
        "up pick": [0, 1, 1, 1],
        "toothpick up": [0, 1, 1, 1],
    }.items():
        assert rewards(source, WALK.stack(), instruction).tolist() == expected


def test_a_separator_may_be_a_phrase() -> None:
    hypothesis = Hypothesis(Plan((("and then", "then"),)), (FACED,), STEPS)
    source = checked(write_source(hypothesis, PERCEPTION, ["and then", "mip", "tro"], ["and then"]))
    assert rewards(source, WALK.stack(), "mip, and then tro").tolist() == [0, 0, 1, 0]


def test_without_an_agent() -> None:
    """Things change although nobody is seen."""
    hypothesis = Hypothesis(Plan(), (CHANGED,), (SURE_BALL,), novel="guess")
    source = checked(write_source(hypothesis, Perception(None, (FLOOR, WALL)), ["mip"]))
    assert "AGENT" not in source
    states = World((5, 5), (1, 1), 40, {(2, 2): thing("red", "key")}).act("left", "left").stack()
    states[:, 1, 1] = FLOOR
    states[2, 2, 2] = thing("red", "ball")
    assert rewards(source, states, "mip").tolist() == [0, 0, 1]


def test_an_agent_that_goes_out_of_sight() -> None:
    """Never in training; but a program must not fall over it."""
    left = Filter("side", SIDES.index("left"))
    states = WALK.stack()
    for hidden in (slice(0, 1), slice(2, 3), slice(0, 4)):
        unseen = states.copy()
        part = unseen[hidden]
        part[part[..., 0] == AGENT] = FLOOR
        for event in range(len(EVENTS)):
            hypothesis = Hypothesis(Plan(), (Filter("event", event), left), (SURE_BALL,), novel="guess")
            source = checked(write_source(hypothesis, PERCEPTION, ["mip"]))
            assert set(rewards(source, unseen, "mip qux").tolist()) <= {0.0, 0.5, 1.0}


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("mip dol tro dol mip", [0, 0, 0, 1]),  # ball, key, ball again
        ("tro dol mip dol tro", [0, 0, 0, 0]),
        ("mip zan tro", [0, 0, 1, 1]),
        ("tro dol mip zan tro", [0, 0, 0, 1]),  # a state that ends one stage may begin the next
        ("mip dol mip zan tro", [0, 0, 1, 1]),
        ("mip zan tro dol mip", [0, 0, 0, 1]),
        ("mip wen mip zan tro", [0, 0, 0, 1]),  # the last part first
    ],
)
def test_sequences_of_steps(instruction: str, expected: list[float]) -> None:
    plan = Plan((("dol", "then"), ("wen", "after"), ("zan", "both")))
    assert earned(Hypothesis(plan, (FACED,), STEPS), instruction) == expected


def test_pairs_within_steps() -> None:
    things = {(2, 3): thing("red", "ball"), (1, 3): thing("blue", "key")}
    world = World((6, 8), (2, 2), 40, things).act("take", "left", "put", "right", "left")
    plan = Plan((("by", "beside"), ("dol", "then")))
    verbs = (*STEPS, ("get", (TAKEN,)), ("see", (FACED,)))
    assert earned(Hypothesis(plan, (FACED,), verbs), "get mip by tro dol see mip", world) == [0, 0, 0, 1, 0, 1]
    assert earned(Hypothesis(plan, (FACED,), verbs), "get mip by mip dol see mip", world) == [0] * 6
