"""Our own levels: what their rooms hold, what their plans do, and what ends an episode."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("minigrid")

from grace_irl.rl.collect import EpisodeTally, collect
from grace_irl.rl.environments import make, quiet
from grace_irl.rl.levels import LEVELS, NoWayError, between, step_towards

NAMES = sorted(LEVELS)
EPISODES = 40


def level(name: str, seed: int) -> tuple[Any, Any]:
    with quiet():
        environment, _ = make(name)
        environment.reset(seed=seed)
    return environment, environment.unwrapped


def colors(board: Any, kind: str) -> list[str]:
    return [cell.color for cell in board.grid.grid if cell is not None and cell.type == kind]


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_solves_every_episode_and_the_last_state_is_the_goal(name: str) -> None:
    tally = EpisodeTally()
    experts = collect(name, "bot", EPISODES, "expert", seed=7, tally=tally)
    assert len(experts) == EPISODES
    assert list(tally.lines()) == []  # no episode was given up
    assert all(item.trajectory.terminated for item in experts)
    assert (experts.metadata.label, experts.metadata.view) == ("last", "minigrid-full")
    assert len({item.trajectory.digest for item in experts}) > EPISODES / 2


@pytest.mark.parametrize("name", NAMES)
def test_random_play_seldom_gets_there(name: str) -> None:
    negatives = collect(name, "random", 10, "negative", seed=0, max_steps=50)
    assert not any(item.trajectory.terminated and item.trajectory.rewards.sum() > 0 for item in negatives)


@pytest.mark.parametrize(
    ("one", "other", "cells"),
    [
        ((1, 1), (1, 4), [(1, 2), (1, 3)]),
        ((5, 2), (2, 2), [(3, 2), (4, 2)]),
        ((1, 1), (1, 2), []),
        ((1, 1), (2, 3), []),
        ((1, 1), (3, 3), []),  # on a diagonal
    ],
)
def test_between_is_strict_and_straight(one: Any, other: Any, cells: Any) -> None:
    assert between(one, other) == cells
    assert between(other, one) == cells


@pytest.mark.parametrize("seed", range(20))
def test_place_between_can_be_done_and_is_not_done_yet(seed: int) -> None:
    _, board = level("BabyAI-PlaceBetween-v0", seed)
    one, other = (tuple(map(int, end.cur_pos)) for end in board.instrs.ends)
    cells = between(one, other)
    assert any(board.grid.get(*cell) is None for cell in cells)
    assert tuple(map(int, board.instrs.moved.cur_pos)) not in cells
    said = {f"{each.color} {each.type}" for each in (board.instrs.moved, *board.instrs.ends)}
    assert len(said) == 3
    assert all(f"the {each}" in board.mission for each in said)


def test_dropping_elsewhere_or_another_object_does_not_place_between() -> None:
    environment, board = level("BabyAI-PlaceBetween-v0", 3)
    while board.carrying is None:
        environment.step(board.plan())
    cells = between(*(tuple(map(int, end.cur_pos)) for end in board.instrs.ends))
    turns = 0
    while tuple(map(int, board.front_pos)) in cells or board.grid.get(*board.front_pos) is not None:
        environment.step(board.actions.left)
        turns += 1
        assert turns < 4
    _, reward, terminated, _, _ = environment.step(board.actions.drop)
    assert board.carrying is None
    assert (reward, terminated) == (0, False)


@pytest.mark.parametrize("seed", range(10))
def test_matching_doors_differ_and_the_mission_names_no_colour(seed: int) -> None:
    _, board = level("BabyAI-OpenMatchingDoor-v0", seed)
    assert board.mission == "open the door matching the key"
    doors = colors(board, "door")
    assert len(doors) == len(set(doors)) == 4
    assert set(colors(board, "key")) < set(doors)


def test_another_door_ends_the_episode_without_a_reward() -> None:
    environment, board = level("BabyAI-OpenMatchingDoor-v0", 0)
    (right,) = board.instrs.desc.obj_set
    wrong = next(door for door in board.get_room(1, 1).doors if door is not right)
    while (step := step_towards(board, tuple(map(int, wrong.cur_pos)))) is not None:
        environment.step(step)
    _, reward, terminated, _, _ = environment.step(board.actions.toggle)
    assert (reward, terminated) == (0, True)


@pytest.mark.parametrize("seed", range(10))
def test_sorted_balls_change_rooms(seed: int) -> None:
    environment, board = level("BabyAI-SortColors-v0", seed)
    middle = int(board.door.cur_pos[0])
    assert {ball.color: ball.cur_pos[0] < middle for ball in board.balls} == {"red": True, "blue": False}
    reward, terminated, in_place = 0.0, False, []
    while not terminated:
        in_place.append(sum(map(board.in_its_room, board.balls)))
        _, reward, terminated, truncated, _ = environment.step(board.plan())
        assert not truncated
    assert reward > 0
    assert in_place == sorted(in_place)  # one after the other, and none taken back
    assert set(in_place) == {0, 1}
    assert {ball.color: ball.cur_pos[0] < middle for ball in board.balls} == {"red": False, "blue": True}


def test_what_is_walled_in_cannot_be_faced() -> None:
    _, board = level("BabyAI-PlaceBetween-v0", 0)
    with pytest.raises(NoWayError):
        step_towards(board, (-5, -5))
