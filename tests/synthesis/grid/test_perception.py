"""Perception of actor, headings and background, from grids of invented codes alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grace_irl.synthesis.grid.scene import Agent, Perception, find_agent, perceive, unique_positions
from tests.synthesis.worlds import AGENT, FLOOR, HEADINGS, WALL, World, thing

STEPS = tuple(sorted(HEADINGS.items()))
TOUR = ("forward", "right", "forward", "right", "forward", "right", "forward", "forward")
"""A walk in which every heading moves."""


def tour(*acts: str) -> NDArray[np.int64]:
    return World((6, 7), (2, 2), 40, {(4, 4): thing("red", "ball"), (1, 5): thing("blue", "key")}).act(*acts).stack()


def test_everything_is_found() -> None:
    seen = perceive([tour(*TOUR)])
    assert seen.agent == Agent(0, AGENT, 2, STEPS)
    assert seen.background == (FLOOR, WALL) or seen.background == (WALL, FLOOR)
    counts = {FLOOR: 20 - 3, WALL: 6 * 7 - 20}
    assert list(seen.background) == sorted(counts, key=lambda code: -counts[code])


def test_objects_are_neither_background_nor_agent() -> None:
    stack = tour(*TOUR)
    found = perceive([stack]).objects(stack)
    assert found.shape == stack.shape[:3]
    assert all({tuple(cell) for cell in np.argwhere(one).tolist()} == {(4, 4), (1, 5)} for one in found)


def test_positions_follow_the_agent() -> None:
    stack = tour("forward", "right", "forward")
    assert Agent(0, AGENT, None, ()).positions(stack).tolist() == [[2, 2], [2, 3], [2, 3], [3, 3]]
    assert unique_positions(stack[..., 0] == AGENT).tolist() == [[2, 2], [2, 3], [2, 3], [3, 3]]


@pytest.mark.parametrize("missing", sorted(HEADINGS))
def test_a_heading_that_never_moved_is_completed(missing: int) -> None:
    """Turned through, but never followed by a step."""
    acts = []
    for turn in range(4):
        acts += ["forward", "right"] if 40 + turn != missing else ["right"]
    seen = perceive([tour(*acts)])
    assert seen.agent is not None
    assert seen.agent.headings == STEPS


def test_of_two_headings_that_never_moved_turns_tell_which_is_which() -> None:
    """North and west are turned to but not walked; west is one turn from south, which east is not."""
    seen = perceive([tour("forward", "right", "forward", "right", "right", "right")])
    assert seen.agent is not None
    assert seen.agent.headings == STEPS


def test_an_agent_without_a_heading() -> None:
    stack = tour(*TOUR)
    stack[..., 2] = 50
    assert perceive([stack]).agent == Agent(0, AGENT, None, ())


@pytest.mark.parametrize(
    "stack",
    [
        tour("left", "left"),  # nothing moves
        np.full((3, 4, 4, 3), 5),  # nothing at all
        np.delete(tour(*TOUR), [1, 2], axis=0),  # what moves jumps
    ],
    ids=["still", "empty", "jumps"],
)
def test_no_agent(stack: NDArray[np.int64]) -> None:
    seen = perceive([stack])
    assert seen.agent is None
    assert seen.objects(stack).shape == stack.shape[:3]


def test_what_is_not_in_every_trajectory_is_no_agent() -> None:
    other = tour(*TOUR)
    other[other[..., 0] == AGENT] = FLOOR
    assert find_agent([tour(*TOUR)]) is not None
    assert find_agent([tour(*TOUR), other]) is None


def test_without_an_agent_the_commonest_code_is_the_floor() -> None:
    """As nothing is left behind; the border's code counts whether or not anything moves."""
    assert perceive([World((8, 9), (2, 2), 40).act("left").stack()]).background == (FLOOR, WALL)


@dataclass(frozen=True)
class Map:
    """Codes permuted per channel, then axes swapped, then reversed."""

    tables: tuple[tuple[int, ...], ...]
    transpose: bool
    flip: tuple[bool, bool]

    def code(self, code: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.tables[channel][value] for channel, value in enumerate(code))

    def states(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        mapped = np.stack([np.array(self.tables[c])[states[..., c]] for c in range(3)], axis=-1)
        mapped = mapped.swapaxes(1, 2) if self.transpose else mapped
        return mapped[:, :: -1 if self.flip[0] else 1, :: -1 if self.flip[1] else 1]

    def step(self, step: tuple[int, int]) -> tuple[int, int]:
        row, column = step[::-1] if self.transpose else step
        return (-row if self.flip[0] else row), (-column if self.flip[1] else column)


maps = st.builds(
    Map,
    tables=st.tuples(*[st.permutations(range(70)).map(tuple)] * 3),
    transpose=st.booleans(),
    flip=st.tuples(st.booleans(), st.booleans()),
)


@settings(max_examples=30, derandomize=True)
@given(maps)
def test_a_mapped_world_is_perceived_as_the_mapped_perception(change: Map) -> None:
    stack = tour(*TOUR)
    plain, mapped = perceive([stack]), perceive([change.states(stack)])
    assert plain.agent is not None
    headings = {change.tables[2][code]: change.step(step) for code, step in plain.agent.headings}
    agent = Agent(0, change.tables[0][AGENT], 2, tuple(sorted(headings.items())))
    assert mapped == Perception(agent, tuple(change.code(code) for code in plain.background))
    assert (mapped.objects(change.states(stack)).sum(axis=(1, 2)) == plain.objects(stack).sum(axis=(1, 2))).all()
