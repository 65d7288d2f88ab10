"""Episodes of our own levels that nearly do what the mission says, and end there without success."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Trajectory
from grace_irl.errors import GraceError
from grace_irl.rewards.view import StateView
from grace_irl.rl.environments import make, quiet
from grace_irl.rl.levels import Cell, NoWayError, between, cell_of, step_towards

Script = Callable[[Any, np.random.Generator], Iterator[Any]]
"""From a level (unwrapped, reset) and a generator to the actions of one episode; NoWayError where this room has no such
miss."""
TRIES = 100
"""Rooms that are tried for each episode."""


def dropped_beside(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """The object is dropped next to one of the two others, and not between them."""
    instruction = level.instrs
    start, ends = cell_of(instruction.moved.cur_pos), [cell_of(end.cur_pos) for end in instruction.ends]
    yield from _acted(level, start, level.actions.pickup)
    near = {cell for x, y in ends for cell in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1))}
    cells = [cell for cell in _free(level) if cell in near.difference(instruction.cells(), [start])]
    yield from _acted(level, _one(cells, rng), level.actions.drop)


def anchor_moved(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """One of the two others is dropped where the object lies between them."""
    instruction = level.instrs
    moved, stays = (instruction.ends[i] for i in rng.permutation(2))
    yield from _acted(level, cell_of(moved.cur_pos), level.actions.pickup)
    there, other = cell_of(instruction.moved.cur_pos), cell_of(stays.cur_pos)
    cells = [cell for cell in _free(level) if there in between(cell, other)]
    yield from _acted(level, _one(cells, rng), level.actions.drop)


def wrong_door_opened(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """A door of another colour is opened, which ends the episode."""
    (right,) = level.instrs.desc.obj_set
    doors = [cell_of(door.cur_pos) for door in level.get_room(1, 1).doors if door is not right]
    yield from _acted(level, _one(doors, rng), level.actions.toggle)


def one_ball_sorted(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """One ball is dropped in its room, and the other one stays where it is."""
    ball = list(level.balls)[rng.integers(2)]
    yield from _acted(level, cell_of(ball.cur_pos), level.actions.pickup)
    while level.carrying is not None:
        yield level.plan()


def balls_moved_about(level: Any, rng: np.random.Generator) -> Iterator[Any]:
    """Both balls are dropped, in the order of the mission, each in the room where it was."""
    for ball in level.balls:
        start = cell_of(ball.cur_pos)
        yield from _acted(level, start, level.actions.pickup)
        room = level.room_from_pos(*start)
        cells = [cell for cell in _free(level) if room.pos_inside(*cell) and cell != start]
        yield from _acted(level, _one(cells, rng), level.actions.drop)


MISSES: dict[str, dict[str, Script]] = {
    "PlaceBetween": {"beside": dropped_beside, "anchor": anchor_moved},
    "OpenMatchingDoor": {"wrong door": wrong_door_opened},
    "SortColors": {"one ball": one_ball_sorted, "same rooms": balls_moved_about},
}
"""Level -> kind of near miss -> its script."""


def near_misses(level: str, kind: str, episodes: int, seed: int) -> Demonstrations:
    """Negative demonstrations that are near misses of one kind; the same seed gives the same set.

    Raises:
        GraceError: one of them reached the goal, or too few rooms have such a miss.
    """
    name = f"BabyAI-{level}-v0"
    environment, view = make(name)
    seeds = np.random.default_rng(seed)
    kept: list[Demonstration] = []
    for _ in range(TRIES * episodes):
        try:
            trajectory = _episode(environment, view, MISSES[level][kind], int(seeds.integers(2**31 - 1)))
        except NoWayError:
            continue
        kept.append(Demonstration(trajectory, "negative", name))
        if len(kept) == episodes:
            return Demonstrations(view.metadata, tuple(kept))
    raise GraceError(f"{name}: {len(kept)} near misses ({kind}) in {TRIES * episodes} rooms; expected {episodes}")


def _episode(environment: Any, view: StateView, script: Script, seed: int) -> Trajectory:
    with quiet():
        observation, _ = environment.reset(seed=seed)
    states, actions, rewards, terminated = [view.state(environment, observation)], [], [], False
    for action in script(environment.unwrapped, np.random.default_rng(seed)):
        observation, reward, terminated, truncated, _ = environment.step(action)
        states.append(view.state(environment, observation))
        actions.append(np.int64(action))
        rewards.append(float(reward))
        if terminated or truncated:
            break
    source = f"{view.metadata.environment} seed {seed}"
    if view.success(terminated, rewards[-1]):
        raise GraceError(f"{source}: a near miss reached the goal; expected none to: this is a defect of the level")
    return Trajectory(
        np.stack(states),
        np.stack(actions),
        view.instruction(environment),
        rewards=np.array(rewards),
        terminated=bool(terminated),
        truncated=not terminated,
        source=source,
    )


def _acted(level: Any, target: Cell, action: Any) -> Iterator[Any]:
    """The actions with which the agent faces a cell, and one on it."""
    while (step := step_towards(level, target)) is not None:
        yield step
    yield action


def _free(level: Any) -> list[Cell]:
    """Cells where something can be dropped, but for the one under the agent."""
    cells = [(x, y) for x in range(level.grid.width) for y in range(level.grid.height)]
    return [cell for cell in cells if level.grid.get(*cell) is None and cell != cell_of(level.agent_pos)]


def _one(cells: list[Cell], rng: np.random.Generator) -> Cell:
    if not cells:
        raise NoWayError("no such cell")
    return cells[int(rng.integers(len(cells)))]
