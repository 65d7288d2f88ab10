"""Unknown words, which name a feature by the words beside them."""

from __future__ import annotations

import pytest

from grace_irl.synthesis.grid.meaning import Feature, Filter, Hypothesis, Plan, WordSlots
from grace_irl.synthesis.reshaper import recover
from tests.synthesis.grid.programs import BALL, BLUE, FACED, KEY, PERCEPTION, RED, VOCABULARY, earned, write_source
from tests.synthesis.worlds import World, thing

NAMED: dict[str, Feature] = {
    **dict.fromkeys(["red", "blue"], "channel 1"),
    **dict.fromkeys(["ball", "key"], "channel 0"),
    "left": "side",
}


@pytest.mark.parametrize(
    ("texts", "before", "after"),
    [
        (["the red ball", "the blue ball"], {"ball": "channel 1"}, {"the": "channel 1"}),
        (["the red ball", "the red key"], {}, {"red": "channel 0"}),  # one word alone shows no slot
        (["the red ball", "the key", "the blue ball"], {"ball": "channel 1"}, {}),  # behind "the" are both
        (
            ["the red ball", "a blue ball", "nice ball"],
            {"ball": "channel 1"},
            {},
        ),  # "nice" has no meaning
        (["on left", "on red", "red on", "blue on"], {"on": "channel 1"}, {}),
        (["ball", "key"], {}, {}),  # an instruction's end is no slot
        ([], {}, {}),
    ],
)
def test_slots(texts: list[str], before: dict[str, str], after: dict[str, str]) -> None:
    found = WordSlots.of([tuple(text.split()) for text in texts], NAMED)
    assert (dict(found.before), dict(found.after)) == (before, after)


def test_known_words_that_stand_in_slots_alone() -> None:
    """ "green" is only where colours are; "the" is also elsewhere, and "grey" in no slot."""
    texts = ["the red ball", "the blue ball", "the green ball", "green ball", "go to the red key", "go to grey"]
    found = WordSlots.of([tuple(text.split()) for text in texts], NAMED)
    assert found.unnamed == (("green", "channel 1"),)


def test_the_slot_behind_a_phrase_is_behind_its_last_word() -> None:
    """A program reads the words of a phrase one by one, if the phrase has no meaning."""
    slots = WordSlots((("go on", "channel 1"), ("mip", "channel 1")), (("go to the", "channel 1"), ("pick up", "side")))
    assert slots.without_phrases(["pick up"]) == WordSlots(
        (("go", "channel 1"), ("mip", "channel 1")), (("pick up", "side"), ("the", "channel 1"))
    )
    world = World((6, 8), (2, 2), 40, {(2, 4): thing("blue", "ball")}).act("forward")
    found = WordSlots((), (("zek to", "channel 1"),))
    hypothesis = Hypothesis(Plan(), (FACED,), (("gax", (RED,)),), novel="require", slots=found)
    assert earned(hypothesis, "zek to qux", world, phrases=("zek to",)) == [0, 1]
    known = Hypothesis(Plan(), (FACED,), (("gax", (RED,)), ("wog", (BLUE,))), novel="require", slots=found)
    assert earned(known, "zek to qux", world, phrases=("zek to",)) == [0, 0]


SLOTS = WordSlots((("mip", "channel 1"), ("tro", "channel 1")), (("gax", "channel 0"),))
WORDS = (("gax", (RED,)), ("mip", (BALL,)), ("tro", (KEY,)))


@pytest.mark.parametrize(
    ("said", "required", "guessed"),
    [
        ("gax mip", 1.0, 1.0),
        ("qux mip", 0.0, 0.5),  # a colour that is not red
        ("qux tro", 0.0, 0.0),  # it is no key either
        ("gax qux", 0.0, 0.5),  # a kind that is neither ball nor key
        ("mip qux", 1.0, 1.0),  # no slot says what it names, and nothing here is new
        ("qux mip gax", 1.0, 1.0),  # its colour is said already
        ("zek mip", 1.0, 1.0),  # a known word
    ],
)
def test_new_words_in_slots(said: str, required: float, guessed: float) -> None:
    """A red ball is faced. Nothing at the start has a colour or kind that no word names."""
    world = World((6, 8), (2, 2), 40, {(2, 4): thing("red", "ball"), (4, 4): thing("red", "key")}).act("forward")
    for novel, paid in (("require", required), ("guess", guessed)):
        hypothesis = Hypothesis(Plan(), (FACED,), WORDS, novel=novel, slots=SLOTS)  # type: ignore[arg-type]
        assert earned(hypothesis, said, world, words="zek") == [0, paid]


def test_a_new_colour_is_one_that_no_word_names() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 4): thing("blue", "ball")}).act("forward")
    assert earned(Hypothesis(Plan(), (FACED,), WORDS, novel="require", slots=SLOTS), "qux mip", world) == [0, 1]
    known = (*WORDS, ("wog", (BLUE,)))
    assert earned(Hypothesis(Plan(), (FACED,), known, novel="require", slots=SLOTS), "qux mip", world) == [0, 0]


def test_a_silent_word_of_a_slot_is_taken_like_a_new_one() -> None:
    world = World((6, 8), (2, 2), 40, {(2, 4): thing("red", "ball")}).act("forward")
    silent = WordSlots(SLOTS.before, SLOTS.after, (("fen", "channel 1"),))
    assert earned(Hypothesis(Plan(), (FACED,), WORDS, novel="require", slots=SLOTS), "fen mip", world, "fen") == [0, 1]
    assert earned(Hypothesis(Plan(), (FACED,), WORDS, novel="require", slots=silent), "fen mip", world, "fen") == [0, 0]


UNSHOWN = WordSlots(SLOTS.before, SLOTS.after, unshown=(("zek", ("channel 1",)), ("fen", ("channel 0", "channel 1"))))


@pytest.mark.parametrize(
    ("said", "paid"),
    [
        ("fen mip", 0.0),  # a colour that is not red
        ("zek mip", 0.0),
        ("gax fen", 0.0),  # a kind that is neither ball nor key
        ("gax zek", 1.0),  # "zek" names no kind
        ("fen mip gax", 1.0),  # its colour is said already
        ("mip fen", 1.0),  # no slot
        ("up mip", 1.0),  # a goal has shown this word
    ],
)
def test_a_word_that_no_goal_shows_is_new_in_slots_of_its_features(said: str, paid: float) -> None:
    """A red ball is faced. A blue box, whose colour and kind no word names, is there: it makes other new words new."""
    start = {(2, 4): thing("red", "ball"), (4, 4): thing("blue", "box")}
    world = World((6, 8), (2, 2), 40, start).act("forward")
    hypothesis = Hypothesis(Plan(), (FACED,), WORDS, novel="require", slots=UNSHOWN)
    assert earned(hypothesis, said, world, words="zek fen up") == [0, paid]


def test_the_words_of_a_phrase_that_no_goal_shows_are_read_one_by_one() -> None:
    slots = WordSlots((("mip", "channel 1"),), unshown=(("zek fen", ("channel 1",)),))
    unshown = slots.without_phrases([]).unshown
    assert unshown == (("zek", ("channel 1",)), ("fen", ("channel 1",)))


@pytest.mark.parametrize("slots", [SLOTS, UNSHOWN])
def test_slots_are_recovered_from_a_program(slots: WordSlots) -> None:
    hypothesis = Hypothesis(Plan(), (FACED, Filter("channel 2", 50)), WORDS, novel="require", slots=slots)
    found = recover(write_source(hypothesis, PERCEPTION, VOCABULARY))
    assert found is not None
    assert found.outline.slots == slots
