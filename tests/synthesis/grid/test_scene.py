"""Happenings of things, row by row, on trajectories of a few states."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.synthesis.grid.scene import EVENTS, SIDES, Agent, Perception, Scene, ThingRows, look
from tests.synthesis.worlds import AGENT, CLOSED, DOOR, FLOOR, HEADINGS, OPEN, WALL, Code, World, thing

PERCEPTION = Perception(Agent(0, AGENT, 2, tuple(sorted(HEADINGS.items()))), (FLOOR, WALL))
BALL, KEY = thing("red", "ball"), thing("blue", "key")
SHUT, AJAR = (DOOR, 11, CLOSED), (DOOR, 11, OPEN)


def rows(table: ThingRows) -> list[tuple[int, str, tuple[int, int], Code]]:
    """(state, event, cell, code) of each row, sorted."""
    found = []
    for state, event, cell, code in zip(table.state, table.event, table.cells, table.codes, strict=True):
        name = EVENTS[event] if event >= 0 else ""
        found.append((int(state), name, (int(cell[0]), int(cell[1])), tuple(map(int, code))))
    return sorted(found)


def scene(world: World) -> Scene:
    return look(world.stack(), ("zek", "gax"), PERCEPTION)


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        (
            World((5, 6), (2, 2), 41, {(2, 4): BALL}).act("left", "forward", "forward"),
            [(2, "faced", (2, 4), BALL), (3, "faced", (2, 4), BALL)],
        ),
        (
            World((5, 6), (2, 2), 40, {(2, 3): BALL}).act("take", "left", "put", "right"),
            [(1, "taken", (2, 3), BALL), (3, "faced", (1, 2), BALL), (3, "placed", (1, 2), BALL)],
        ),
        (
            World((5, 6), (2, 2), 40, {(2, 3): BALL}).act("take", "forward", "forward"),
            [(1, "taken", (2, 3), BALL), (2, "entered", (2, 3), BALL)],
        ),
        (
            World((5, 6), (2, 2), 40, {(2, 3): SHUT}).act("toggle", "toggle"),
            [
                *[(1, "changed", (2, 3), AJAR), (1, "faced", (2, 3), AJAR)],
                *[(2, "changed", (2, 3), SHUT), (2, "faced", (2, 3), SHUT)],
            ],
        ),
    ],
    ids=["faced", "taken and placed", "taken and entered", "changed"],
)
def test_events(world: World, expected: list[tuple[int, str, tuple[int, int], Code]]) -> None:
    assert rows(scene(world).happenings) == expected


def test_the_first_state_has_things_but_no_happenings() -> None:
    found = scene(World((5, 6), (2, 2), 40, {(2, 3): BALL, (1, 1): KEY}))
    assert rows(found.things) == [(0, "", (1, 1), KEY), (0, "", (2, 3), BALL)]
    assert len(found.happenings) == 0
    assert (found.length, found.words) == (1, ("zek", "gax"))


def test_nothing_is_said_of_what_is_under_the_agent() -> None:
    """Walking through an open door hides it and shows it again: that is no change, no taking and no placing."""
    world = World((5, 6), (2, 2), 40, {(2, 3): AJAR}).act("forward", "forward")
    found = scene(world)
    assert rows(found.happenings) == [(1, "entered", (2, 3), AJAR)]
    assert [[tuple(map(int, c)) for c in np.argwhere(mask)] for mask in found.objects] == [[(2, 3)], [], [(2, 3)]]


def test_a_thing_that_comes_to_where_the_agent_was_is_not_seen_coming() -> None:
    """In one state the cell shows the agent, in the next a thing: what was there before cannot be known."""
    states = np.repeat(World((5, 6), (2, 2), 40).stack(), 2, axis=0)
    states[1, 2, 2], states[1, 2, 3] = BALL, states[0, 2, 2]
    assert rows(look(states, (), PERCEPTION).happenings) == []


@pytest.mark.parametrize(
    ("heading", "sides"),
    [
        (40, {(1, 2): {"right"}, (3, 2): {"left"}, (2, 4): {"ahead"}, (2, 1): {"behind"}, (1, 4): {"ahead", "right"}}),
        (41, {(1, 2): {"behind"}, (3, 2): {"ahead"}, (2, 4): {"right"}, (2, 1): {"left"}, (1, 4): {"behind", "right"}}),
        (42, {(1, 2): {"left"}, (3, 2): {"right"}, (2, 4): {"behind"}, (2, 1): {"ahead"}, (1, 4): {"behind", "left"}}),
    ],
)
def test_sides(heading: int, sides: dict[tuple[int, int], set[str]]) -> None:
    """Seen from the first cell and heading. Left and right are those of x downwards, as in MiniGrid's own arrays."""
    world = World((5, 6), (2, 2), heading, dict.fromkeys(sides, BALL))
    before = scene(world).things
    found = {
        (int(cell[0]), int(cell[1])): {side for side, holds in zip(SIDES, row, strict=True) if holds}
        for cell, row in zip(before.cells, before.sides, strict=True)
    }
    assert found == sides
    after = scene(world.act("left", "left", "forward")).things
    assert (after.sides == before.sides).all()


@pytest.mark.parametrize(
    "perception",
    [
        Perception(None, (FLOOR, WALL)),
        Perception(Agent(0, AGENT, None, ()), (FLOOR, WALL)),
        Perception(Agent(0, AGENT, 2, ((41, (1, 0)),)), (FLOOR, WALL)),
    ],
    ids=["no agent", "no heading", "a heading that was never learnt"],
)
def test_without_a_known_heading_nothing_is_faced_and_nothing_has_a_side(perception: Perception) -> None:
    world = World((5, 6), (2, 2), 40, {(2, 3): BALL}).act("take")
    found = look(world.stack(), (), perception)
    assert [row for row in rows(found.happenings) if row[3] == BALL] == [(1, "taken", (2, 3), BALL)]
    assert not found.happenings.sides.any()
    assert not found.things.sides.any()


def test_the_edge_of_the_grid_is_faced_by_nobody() -> None:
    world = World((3, 3), (1, 1), 40).act("left")
    states = world.stack()[:, 1:2, 1:2]
    assert len(look(states, (), PERCEPTION).happenings) == 0
