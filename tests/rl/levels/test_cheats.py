"""Our own levels: no other way to success than the one that the mission asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("minigrid")

from grace_irl.rl.environments import make, quiet
from grace_irl.rl.levels import Cell, NoWayError, between, cell_of, step_towards
from grace_irl.rl.views import encode_grid

WALL, DOOR, KEY, BALL, BOX, AGENT = 2, 4, 5, 6, 7, 10
KINDS = {"key": KEY, "ball": BALL, "box": BOX}
COLORS = {"red": 0, "green": 1, "blue": 2, "purple": 3, "yellow": 4, "grey": 5}
OPEN = 0
SEEDS = range(100)
PLAYED = 40
CHANCES = (0.4, 0.4, 0.2)


def way(board: Any, target: Cell, action: Any) -> Iterator[Any]:
    """The actions with which the agent faces a cell, and one on it."""
    while (step := step_towards(board, target)) is not None:
        yield step
    yield action


class Play:
    """An episode that adversaries act in.

    Attributes:
        board: the level.
        won: whether it has ended with a reward.
        over: whether it has ended.
    """

    def __init__(self, name: str, seed: int) -> None:
        with quiet():
            self._environment, _ = make(name)
            self._environment.reset(seed=seed)
        self.board: Any = self._environment.unwrapped
        self.won = self.over = False

    def act(self, action: Any) -> None:
        assert not self.over
        _, reward, terminated, truncated, _ = self._environment.step(action)
        self.won = terminated and reward > 0
        self.over = terminated or truncated

    def at(self, target: Cell, action: Any) -> None:
        """Goes to face a cell and acts on it."""
        for step in way(self.board, target, action):
            self.act(step)

    def pick_up(self, thing: Any) -> None:
        self.at(cell_of(thing.cur_pos), self.board.actions.pickup)
        assert self.board.carrying is thing

    def drop(self, target: Cell) -> None:
        thing = self.board.carrying
        self.at(target, self.board.actions.drop)
        assert cell_of(thing.cur_pos) == target


def free(board: Any) -> list[Cell]:
    """Cells where something can be dropped."""
    agent = cell_of(board.agent_pos)
    cells = [(x, y) for x in range(board.grid.width) for y in range(board.grid.height)]
    return [cell for cell in cells if board.grid.get(*cell) is None and cell != agent]


def plays(name: str) -> Iterator[Play]:
    return (Play(name, seed) for seed in SEEDS)


def other_end(play: Play, end: Any) -> Any:
    (other,) = (one for one in play.board.instrs.ends if one is not end)
    return other


def around(play: Play, end: Any) -> list[Cell]:
    """Where an end that is carried has the object between itself and the other end."""
    there, other = cell_of(play.board.instrs.moved.cur_pos), cell_of(other_end(play, end).cur_pos)
    return [cell for cell in free(play.board) if there in between(cell, other)]


def moved_around(which: int) -> Iterator[Play]:
    """Plays in which an end has been moved so that the object lies between the two."""
    for play in plays("BabyAI-PlaceBetween-v0"):
        end = play.board.instrs.ends[which]
        try:
            play.pick_up(end)
            for cell in around(play, end):
                play.drop(cell)
                yield play
                break
        except NoWayError:
            continue


@pytest.mark.parametrize("which", [0, 1])
def test_moving_an_end_does_not_place_the_object(which: int) -> None:
    done = list(moved_around(which))
    assert len(done) > 5
    assert not any(play.over for play in done)


def test_the_object_may_still_be_put_between_ends_that_were_moved() -> None:
    done = 0
    for play in moved_around(0):
        instruction = play.board.instrs
        play.pick_up(instruction.moved)
        cells = [cell for cell in instruction.cells() if cell in free(play.board)]
        assert cells
        play.drop(cells[0])
        assert play.won
        done += 1
    assert done > 5


def test_nothing_lies_between_an_object_and_a_box_that_was_opened() -> None:
    done = 0
    for play in plays("BabyAI-PlaceBetween-v0"):
        instruction = play.board.instrs
        boxes = [end for end in instruction.ends if end.type == "box"]
        if not boxes:
            continue
        cells = instruction.cells()
        play.at(cell_of(boxes[0].cur_pos), play.board.actions.toggle)
        assert boxes[0] not in play.board.grid.grid
        play.pick_up(instruction.moved)
        with pytest.raises(NoWayError):
            play.board.plan()
        play.drop(next(cell for cell in cells if cell in free(play.board)))
        assert not play.over
        done += 1
    assert done > 5


def test_a_box_that_was_opened_is_not_placed() -> None:
    done = 0
    for play in plays("BabyAI-PlaceBetween-v0"):
        instruction = play.board.instrs
        if instruction.moved.type != "box":
            continue
        play.at(cell_of(instruction.moved.cur_pos), play.board.actions.toggle)
        end = instruction.ends[0]
        play.pick_up(end)
        cells = around(play, end)
        if cells:
            play.drop(cells[0])
            assert not play.over
            done += 1
    assert done > 2


def test_dropping_into_a_wall_places_nothing() -> None:
    play = Play("BabyAI-PlaceBetween-v0", 3)
    play.pick_up(play.board.instrs.moved)
    play.at((0, 1), play.board.actions.drop)
    assert play.board.carrying is play.board.instrs.moved
    assert not play.over


@pytest.mark.parametrize("seed", range(10))
def test_a_room_is_not_sorted_by_one_ball_nor_twice_over(seed: int) -> None:
    play = Play("BabyAI-SortColors-v0", seed)
    red, blue = play.board.balls
    for ball in (red, blue):  # the red ball to its room and back, and the blue one likewise
        start = cell_of(ball.cur_pos)
        play.pick_up(ball)
        while play.board.carrying is not None:
            play.act(play.board.plan())
        assert play.board.in_its_room(ball)
        assert not play.over
        play.pick_up(ball)
        play.drop(start)
        assert not play.over


def named(board: Any, what: str) -> tuple[int, int]:
    color, kind = what.removeprefix("the ").split()
    return KINDS[kind], COLORS[color]


def cells_of(grid: Any, kind: int, color: int) -> list[Cell]:
    return [cell_of(cell) for cell in np.argwhere((grid[..., 0] == kind) & (grid[..., 1] == color))]


def placed_between(board: Any, grids: list[Any]) -> bool:
    moved, _, ends = board.mission.removeprefix("put ").partition(" between ")
    where = [cells_of(grids[-1], *named(board, what)) for what in (moved, *ends.split(" and "))]
    if not all(where) or cells_of(grids[-2], *named(board, moved)):
        return False
    (there,), (one,), (other,) = where
    return there in between(one, other)


def matching_door_open(board: Any, grids: list[Any]) -> bool:
    ((x, y),) = np.argwhere(grids[0][..., 0] == KEY)
    doors = grids[-1][grids[-1][..., 0] == DOOR]
    return [int(color) for _, color, state in doors if state == OPEN] == [grids[0][x, y, 1]]


def colors_sorted(board: Any, grids: list[Any]) -> bool:
    middle = int(board.door.cur_pos[0])
    red, blue = (cells_of(grids[-1], BALL, COLORS[color]) for color in ("red", "blue"))
    return bool(red and blue and red[0][0] > middle > blue[0][0])


JUDGES = {
    "BabyAI-PlaceBetween-v0": placed_between,
    "BabyAI-OpenMatchingDoor-v0": matching_door_open,
    "BabyAI-SortColors-v0": colors_sorted,
}


def meddling(board: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Picks anything up, drops it in line with anything, opens and shuts anything, without end."""
    actions = board.actions
    while True:
        deed = rng.choice([actions.pickup, actions.drop, actions.toggle], p=CHANCES)
        things = [cell_of(one.cur_pos) for one in board.grid.grid if one is not None and one.type != "wall"]
        lines = [(x, y) for x, y in free(board) for u, v in things if x == u or y == v]
        cells = lines if deed == actions.drop else things
        try:
            yield from way(board, cells[rng.integers(len(cells))], deed) if cells else [actions.left]
        except NoWayError:
            yield actions.left


@pytest.mark.parametrize("name", sorted(JUDGES))
def test_success_is_what_the_grids_show_and_the_mission_says(name: str) -> None:
    rng = np.random.default_rng(5)
    wins = 0
    for seed in range(PLAYED):
        play = Play(name, seed)
        grids = [encode_grid(play.board)]
        for action in meddling(play.board, rng):
            play.act(action)
            grids.append(encode_grid(play.board))
            assert play.won == JUDGES[name](play.board, grids)
            if play.over:
                break
        wins += play.won
    assert wins > 1
