"""Conditions on where a thing lies, and on what it shares with other things."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grace_irl.synthesis.grid.lexicon import Lexicon
from grace_irl.synthesis.grid.meaning import Filter, Hypothesis, Plan, summary
from grace_irl.synthesis.grid.reading import COMMON, FRAME, MUTE, GridReading
from grace_irl.synthesis.grid.scene import EVENTS, HALVES
from grace_irl.synthesis.grid.search import view
from grace_irl.synthesis.grid.source import shapings, write_program, write_source
from grace_irl.synthesis.reshaper import recover
from tests.synthesis.grid.programs import (
    BALL,
    CHANGED,
    KEY,
    PERCEPTION,
    SURE_BALL,
    SURE_KEY,
    VOCABULARY,
    checked,
    earned,
)
from tests.synthesis.grid.scenes import marks
from tests.synthesis.grid.test_scene import scene
from tests.synthesis.grid.test_search import labelled
from tests.synthesis.worlds import CLOSED, DOOR, World, rewards, thing

PLACED = Filter("event", EVENTS.index("placed"))
LOW, HIGH = (Filter("half", HALVES.index(name)) for name in ("low rows", "high rows"))
LIKE_A_KEY = Filter("shared 1", KEY.value)


def test_halves_of_a_grid() -> None:
    """The middle row of five is in neither half; six columns have no middle."""
    cells = {(1, 2): {"low rows", "low columns"}, (2, 4): {"high columns"}, (3, 3): {"high rows", "high columns"}}
    found = scene(World((5, 6), (1, 4), 40, dict.fromkeys(cells, thing("red", "ball")))).things
    named = [{half for half, holds in zip(HALVES, row, strict=True) if holds} for row in found.halves]
    assert dict(zip(map(tuple, found.cells.tolist()), named, strict=True)) == cells


def test_a_word_for_a_half() -> None:
    """The ball is put down in the lower half, taken again, and put down in the upper one."""
    world = World((6, 8), (2, 2), 40, {(2, 3): thing("red", "ball")})
    world.act("take", "put", "take", "right", "forward", "put")
    words = (("go", (LOW,)), ("by", (HIGH,)))
    assert earned(Hypothesis(Plan(), (PLACED,), words), "go", world) == [0, 0, 1, 0, 0, 0, 0]
    assert earned(Hypothesis(Plan(), (PLACED,), words), "by", world) == [0, 0, 0, 0, 0, 0, 1]
    assert earned(Hypothesis(Plan(), (PLACED,), (), words), "by", world) == [0, 0, 0.5, 0, 0, 0, 1]


@pytest.mark.parametrize(("colour", "expected"), [("blue", [0, 1]), ("red", [0, 0])])
def test_a_door_of_the_colour_of_the_key(colour: str, expected: list[float]) -> None:
    """The key may be taken away: what lies there at the start counts."""
    door = (DOOR, thing("blue", "key")[1], CLOSED)
    world = World((6, 8), (2, 2), 40, {(2, 3): door, (4, 4): thing(colour, "key"), (4, 6): thing("red", "ball")})
    assert earned(Hypothesis(Plan(), (CHANGED, LIKE_A_KEY)), "", world.act("toggle")) == expected


def test_nothing_shares_its_own_kind() -> None:
    """A blue key is no thing of the colour of a key, though another key is blue."""
    world = World((6, 8), (2, 2), 40, {(2, 3): thing("blue", "key"), (4, 4): thing("blue", "key")}).act("take")
    taken = Filter("event", EVENTS.index("taken"))
    assert earned(Hypothesis(Plan(), (taken, KEY)), "", world) == [0, 1]
    assert earned(Hypothesis(Plan(), (taken, LIKE_A_KEY)), "", world) == [0, 0]


BOX = Filter("channel 0", 8)
THREE = (SURE_BALL, SURE_KEY, ("sul", (BOX,)))
PARTED = Plan((("by", "beside"), ("dol", "beside")))


@pytest.mark.parametrize(
    ("things", "expected"),
    [
        ({(1, 3): "key", (4, 3): "box"}, 1.0),  # far on one side, near on the other
        ({(4, 3): "key", (1, 3): "box"}, 1.0),
        ({(2, 5): "key", (2, 1): "box"}, 1.0),  # behind the agent's back is in the row
        ({(3, 3): "key", (4, 3): "box"}, 0.0),  # both below
        ({(1, 3): "key", (2, 5): "box"}, 0.0),  # one above, one to the right
        ({(1, 4): "key", (4, 3): "box"}, 0.0),  # not in the column
        ({(1, 3): "key", (4, 3): "key"}, 0.0),
    ],
)
def test_between_two_things(things: dict[tuple[int, int], str], expected: float) -> None:
    placed = {cell: thing("blue", kind) for cell, kind in things.items()}
    world = World((6, 8), (2, 2), 40, {(2, 3): thing("red", "ball"), **placed}).act("take", "put")
    hypothesis = Hypothesis(PARTED, (PLACED,), THREE, between=True)
    assert earned(hypothesis, "mip by tro dol sul", world) == [0, 0, expected]
    assert "between the two others" in summary(hypothesis)


def test_only_one_thing_beside_stays_beside() -> None:
    """A program that knows "between" reads "by" alone as before."""
    things = {(2, 3): thing("red", "ball"), (4, 3): thing("blue", "key"), (1, 3): thing("blue", "box")}
    world = World((6, 8), (2, 2), 40, things).act("take", "put")
    hypothesis = Hypothesis(PARTED, (PLACED,), THREE, between=True)
    assert earned(hypothesis, "mip by sul", world) == [0, 0, 1]
    assert earned(hypothesis, "mip by tro", world) == [0, 0, 0]


def put_down(text: str, role: str = "expert"):
    """An agent that takes a ball and puts it down in the lower half."""
    from grace_irl.demos.trajectory import Demonstration, Trajectory

    world = World((6, 8), (2, 2), 40, {(2, 3): thing("red", "ball"), (4, 4): thing("blue", "key")})
    world.act("take", "put", "right", "forward")
    return Demonstration(Trajectory(world.stack(), extra_info=text), role)  # type: ignore[arg-type]


def test_halves_are_said_by_words_in_contrast() -> None:
    """No constant is a half, and a word in every part of every instruction says nothing of halves."""
    seen = view(labelled([put_down("zek mip"), put_down("zek tro")]))
    lexicon = Lexicon(seen.evidence, Plan())
    column = seen.evidence.index[LOW]
    event = {"event": seen.evidence.index[PLACED]}
    prices = [lexicon.price(GridReading(event, {word: column})) for word in ("zek", "mip")]
    # If "mip" speaks, it pays half the price of a gap that "tro" fills in silence; if not, both pay for their silence.
    assert prices[0] - prices[1] == pytest.approx(COMMON + 2 * MUTE - FRAME / 2)


def test_only_halves_that_all_experts_use_are_looked_at() -> None:
    seen = view(labelled([put_down("zek mip"), put_down("zek tro")]))
    assert {f for f in seen.evidence.filters if f.feature == "half"} == {LOW, Filter("half", 2)}
    assert not [f for f in view(labelled([put_down("zek", "negative")])).evidence.filters if f.feature == "half"]


def test_marks_of_between_are_those_of_the_program() -> None:
    """The tables of the search and the text of a program agree."""
    things = {(2, 3): thing("red", "ball"), (4, 3): thing("blue", "key"), (1, 3): thing("green", "box")}
    stack = World((6, 8), (2, 2), 40, things).act("take", "put", "left", "right").stack()
    from grace_irl.synthesis.grid.evidence import GridEvidence
    from grace_irl.synthesis.grid.scene import look

    evidence = GridEvidence([look(stack, (), PERCEPTION)], [marks(len(stack), 2)])
    step = tuple((evidence.index[f],) for f in (PLACED, KEY, BOX))
    assert np.flatnonzero(evidence.fired(0, ((step,),))).tolist() == [2]
    assert not evidence.fired(0, (((step[0], step[1], step[1]),),)).any()
    assert BALL in evidence.filters


@pytest.mark.parametrize(
    ("hypothesis", "instruction"),
    [
        (Hypothesis(PARTED, (PLACED,), THREE, between=True), "mip by tro dol sul"),
        (Hypothesis(Plan(), (PLACED,), (("go", (LOW,)),)), "go"),
        (Hypothesis(Plan(), (PLACED, LIKE_A_KEY)), ""),
    ],
)
def test_versions_that_pay_for_progress_keep_the_goal(hypothesis: Hypothesis, instruction: str) -> None:
    """A ball is put down between a key of its colour and a box, in the lower half."""
    things = {(2, 3): thing("red", "ball"), (1, 3): thing("red", "key"), (4, 3): thing("blue", "box")}
    states = World((6, 8), (2, 2), 40, things).act("take", "put").stack()
    found = recover(write_source(hypothesis, PERCEPTION, VOCABULARY))
    assert found is not None
    for shaping in shapings(headed=True):
        outline = replace(found.outline, perception=PERCEPTION)  # with the heading, which the program does not need
        source = checked(write_program(outline, found.happens, shaping))
        paid = rewards(source, states, instruction).tolist()
        assert paid[-1] == 1.0
        assert max(paid[:-1]) <= shaping.near
        again = recover(source)
        assert again is not None
        assert again.shaping == shaping
