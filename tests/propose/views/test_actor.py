"""The actor of grids: found in the data alone, and what prompts tell because of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled
from grace_irl.demos.trajectory import Demonstration, Metadata, Role, Trajectory
from grace_irl.methods.grace_operators import initialise, mutate
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.actor import find_actor
from grace_irl.propose.views.grid import HIDING, GridView
from grace_irl.propose.views.trajectory import Shown, telling, write
from grace_irl.rl.views import MINIGRID
from tests.propose import asked
from tests.propose.asked import room

BOX = (8, 4, 5)
STEPS = {0: (1, 0), 1: (0, 1), 2: (-1, 0), 3: (0, -1)}

Frame = tuple[asked.Cell, int, tuple[asked.Cell, ...]]  # the actor's cell, its third number, and where boxes lie


def frames(listed: Sequence[Frame]) -> NDArray[np.uint8]:
    return np.stack(
        [room({**dict.fromkeys(boxes, BOX), cell: (21, 1, heading)}, (9, 9)) for cell, heading, boxes in listed]
    )


def roaming(length: int, seed: int, taken: Sequence[int] = ()) -> NDArray[np.uint8]:
    """An actor that turns and goes forward at random; a box disappears or comes back at some steps."""
    rng = np.random.default_rng(seed)
    cell, heading, boxes = (4, 4), 0, ((1, 1),)
    listed: list[Frame] = [(cell, heading, boxes)]
    for step in range(1, length):
        if step in taken:
            boxes = () if boxes else ((1, 1),)
        elif rng.random() < 0.5:
            heading = int(rng.integers(4))
        else:
            ahead = cell[0] + STEPS[heading][0], cell[1] + STEPS[heading][1]
            cell = ahead if min(ahead) >= 2 and max(ahead) < 8 else cell
        listed.append((cell, heading, boxes))
    return frames(listed)


def labelled(states: NDArray[np.uint8], role: Role = "expert", goal: bool = True) -> Labelled:
    positive = np.zeros(len(states), dtype=np.bool_)
    positive[-1] = goal and role == "expert"
    return Labelled(Demonstration(Trajectory(states), role), positive)


ITEMS = [labelled(roaming(120, seed), role) for seed, role in enumerate(("expert", "expert", "negative"))]


def test_the_actor_and_its_steps_are_found() -> None:
    actor = find_actor([item.trajectory.states for item in ITEMS])
    assert actor is not None
    assert (actor.channel, actor.number) == (0, 21)
    assert actor.moves == {(21, 1, heading): step for heading, step in STEPS.items()}
    legend = GridView(ITEMS, Metadata("grid")).legend(1000)
    assert "a=21: the actor. Its codes tell its next step: (21,1,0) [+1,0], (21,1,1) [0,+1]," in legend


def test_codes_that_do_not_tell_the_step_are_not_explained() -> None:
    states = np.stack([room({(row, column): (21, 1, 4)}) for row, column in [(1, 1), (1, 2), (2, 2), (2, 1), (1, 1)]])
    actor = find_actor([states])
    assert actor is not None
    assert actor.moves == {}
    assert "next step" not in GridView([labelled(states)], Metadata("grid")).legend(1000)


@pytest.mark.parametrize("moving", [0, 2])
def test_without_one_thing_that_acts_there_is_no_actor(moving: int) -> None:
    """Nothing moves, or two things of one kind do."""
    cells = [((1, 1 + n), (3, 4 - n)) if moving else ((1, 1), (3, 3)) for n in range(3)]
    states = np.stack([room({one: (21, 1, 4), two: (21, 1, 4)}) for one, two in cells])
    assert find_actor([states]) is None
    view = GridView([labelled(states)], Metadata("grid"))
    assert view.events(states) is None
    assert "actor" not in view.legend(1000)


def test_events_are_the_steps_in_which_something_else_changes() -> None:
    taken = (17, 40, 41)
    view = GridView(ITEMS, Metadata("grid"))
    assert view.events(roaming(90, 5, taken)) == set(taken)
    assert view.events(roaming(90, 5)) == set()


def test_a_negative_trajectory_shows_its_events_and_no_other_states() -> None:
    taken = (17, 40, 41)
    view = GridView(ITEMS, Metadata("grid"))
    lines = write(view, Shown(labelled(roaming(90, 5, taken), "negative"), limit=400)).splitlines()
    steps = [int(line.split(":")[0]) for line in lines if line[0].isdigit()]
    assert steps == [1, *(step + 1 for step in taken), 90]
    assert [line for line in lines if line[0] == "…"] == [
        "… 16 moves left out",
        "… 22 moves left out",
        "… 47 moves left out",
    ]
    assert "[1,1] (8,4,5) -> (3,7,5)" in lines[2]


def test_wrong_states_that_are_left_out_are_counted() -> None:
    shown = Shown(labelled(roaming(60, 5), "negative"), rewards=np.ones(60), wrong=range(60), focus=(20,))
    lines = write(GridView(ITEMS, Metadata("grid")), shown).splitlines()
    assert "… 18 moves left out, 18 of them WRONG" in lines


def test_nothing_reads_like_a_step_across_an_omission() -> None:
    view = GridView(ITEMS, Metadata("grid"))
    for seed in range(20):
        text = write(view, Shown(labelled(roaming(200, seed, (50, 51, 90)), "negative"), limit=200))
        parts = text.splitlines()
        after = [line for gap, line in pairwise(parts) if gap[0] == "…"]
        assert after
        assert all("=>" not in line and "no change" not in line for line in after)


def test_the_actors_place_after_an_omission() -> None:
    one, two = frames([((4, 4), 0, ()), ((6, 3), 2, ())])
    view = GridView(ITEMS, Metadata("grid"))
    assert view.change(one, two, apart=True) == "actor at [6,3] (21,1,2)"
    # A box lies where the actor was: the short form would hide it.
    three = frames([((6, 3), 2, ((4, 4),))])[0]
    assert view.change(one, three, apart=True) == "[4,4] (21,1,0) -> (8,4,5); [6,3] (3,7,5) -> (21,1,2)"


def test_long_experts_lose_moves_and_no_events() -> None:
    taken = tuple(range(30, 100, 10))
    view = GridView(ITEMS, Metadata("grid"))
    shown = Shown(labelled(roaming(150, 5, taken)))
    tokens = telling(view, shown)
    assert tokens < estimate(write(view, shown)) / 3
    steps = {int(found) - 1 for found in re.findall(r"^(\d+):", write(view, shown, tokens), re.MULTILINE)}
    assert {0, 148, 149, *taken} <= steps


def test_experts_are_left_out_before_their_events_are() -> None:
    taken = tuple(range(30, 100, 5))
    items = [labelled(roaming(150, seed, taken)) for seed in range(6)]
    problem = replace(asked.grids(), items=tuple(items))
    for total in (2200, 3000, 4000):
        text = initialise(brief(problem, budget=PromptBudget(total=total)), Material(seed=1)).user
        assert estimate(text) <= total
        shown = text.split("# Trajectories")[1].split("Expert ")[1:]
        assert 1 <= len(shown) < 6
        for each in shown:
            steps = {int(found) - 1 for found in re.findall(r"^(\d+):", each, re.MULTILINE)}
            assert set(taken) <= steps


def test_what_the_view_hides_is_known_from_the_view_alone() -> None:
    assert (MINIGRID,) == HIDING
    assert "hides what lies on its cell" in GridView(ITEMS, Metadata("grid", view=MINIGRID)).legend(1000)
    for other in ("", "scrambled"):
        assert "hides" not in GridView(ITEMS, Metadata("grid", view=other)).legend(1000)


def test_mutations_know_moves_too() -> None:
    problem = replace(asked.grids(), items=tuple(ITEMS))
    given = replace(asked.material(problem), wrong={2: np.arange(30, 60)})
    text = mutate(brief(problem), given).user
    assert re.search(r"… \d+ moves left out, \d+ of them WRONG", text)
