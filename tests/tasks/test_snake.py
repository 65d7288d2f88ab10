"""The game of Snake, step by step."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="grace-irl[rl] is not installed")

from grace_irl.tasks.snake import FIELDS, HUNGER, SIZE, Snake, make

UP, DOWN, LEFT, RIGHT = range(4)


def started(food: tuple[int, int] = (9, 9)) -> Snake:
    game = Snake()
    game.reset(seed=0)
    game._food = food
    return game


def test_it_begins_in_the_middle_and_goes_to_the_right() -> None:
    game = started()
    state, reward, over, cut, info = game.step(RIGHT)
    assert state.tolist() == [6.0, 5.0, 9.0, 9.0, 3.0]
    assert (reward, over, cut, info) == (0.0, False, False, {"apples": 0})
    assert len(FIELDS) == len(state)


def test_food_makes_it_longer_and_is_counted() -> None:
    game = started((6, 5))
    state, reward, over, _, info = game.step(RIGHT)
    assert (reward, over, info["apples"], state[4]) == (1.0, False, 1, 4.0)
    assert tuple(state[2:4]) != (6.0, 5.0)


def test_the_move_back_into_its_neck_has_no_effect() -> None:
    game = started()
    state, *_ = game.step(LEFT)
    assert state[0] == 6.0


def test_a_wall_is_its_end() -> None:
    game = started((0, 0))
    for _ in range(SIZE - 6):
        assert not game.step(RIGHT)[2]
    _, reward, over, cut, _ = game.step(RIGHT)
    assert (reward, over, cut) == (-1.0, True, False)


def test_its_own_body_is_its_end() -> None:
    game = started((6, 5))
    game.step(RIGHT)
    game._food = (7, 5)
    game.step(RIGHT)
    game._food = (0, 0)
    game.step(DOWN)
    game.step(LEFT)
    _, reward, over, *_ = game.step(UP)
    assert (reward, over) == (-1.0, True)


def test_the_cell_that_its_tail_leaves_is_free() -> None:
    game = started((6, 5))
    game.step(RIGHT)
    game._food = (0, 0)
    for action in (DOWN, LEFT, UP):
        assert not game.step(action)[2]


def test_hunger_cuts_an_episode_off() -> None:
    game = started((0, 0))
    turns = [UP, LEFT, DOWN, RIGHT]
    ends = [game.step(turns[step % 4]) for step in range(HUNGER)]
    assert [each[3] for each in ends] == [False] * (HUNGER - 1) + [True]
    assert not ends[-1][2]


def test_a_seed_gives_the_same_game() -> None:
    def played(seed: int) -> list[list[float]]:
        game, _ = make()
        actions = np.random.default_rng(1)
        states = [game.reset(seed=seed)[0]]
        for _ in range(30):
            state, _, over, cut, _ = game.step(int(actions.integers(4)))
            states.append(game.reset()[0] if over or cut else state)
        return [each.tolist() for each in states]

    assert played(3) == played(3) != played(4)
