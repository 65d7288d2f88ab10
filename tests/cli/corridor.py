"""A corridor whose end is to be reached, demonstrations that turn back there, and a model that cleans and writes.

`--env tests/cli/corridor.py:ends` ends an episode at the goal, `:goes_on` does not. `:records` is `ends` with records
in place of grids: the place, and a small picture. `:images` shows the picture alone, and has no view. Neither the last
states of experts are goal states nor all of them: only who is asked knows.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from grace_irl.demos import save
from grace_irl.demos.goals import with_goals
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.rl.environments import FunctionView
from grace_irl.states import KINDS

WIDTH, HORIZON = 7, 12
AGENT, FLOOR, WALL = 10, 1, 2
CLEANING = "say in which states the task is done"
RESHAPING = "Write a version whose reward rises steadily"

PROGRAM = '''class Reward:
    """Pays at an end of the corridor."""

    def __init__(self, extra_info=None):
        self.right = "right" in str(extra_info)

    def at(self, state):
        if isinstance(state, dict):
            return int(state["place"])
        if len(state) > 3:
            return next(x for x in range({width}) if state[5][4 * x][0] == 20 * {agent})
        return next(x for x in range({width}) if state[1][x][0] == {agent})

    def reward_fn(self, state):
        return float({body})

    def debug_fn(self, state):
        return f"at column {{self.at(state)}}"


def debug(expert_states, negative_states):
    return f"{{len(expert_states)}} positive states"
'''
ANY_END = "self.at(state) in (0, 6)"
OWN_END = "self.at(state) == (6 if self.right else 0)"


def program(body: str) -> str:
    """A reward of the corridor."""
    return PROGRAM.format(width=WIDTH, agent=AGENT, body=body)


def picture(place: int) -> NDArray[np.uint8]:
    """The state with the agent there, `(3, WIDTH, 3)`."""
    state = np.zeros((3, WIDTH, 3), np.uint8)
    state[..., 0] = WALL
    state[1, :, 0] = FLOOR
    state[1, place, 0] = AGENT
    return state


def image(place: int) -> NDArray[np.uint8]:
    """A small picture, `(12, 4 WIDTH, 3)`."""
    return np.kron(20 * picture(place), np.ones((4, 4, 1), np.uint8))


def record(place: int) -> dict[str, Any]:
    """The place as a number, and the picture."""
    return {"place": np.int64(place), "camera": image(place)}


PICTURES = gymnasium.spaces.Box(0, 255, (12, 4 * WIDTH, 3), np.uint8)
FORMS: dict[str, Callable[[int], Any]] = {"grid": picture, "image": image, "record": record}
SPACES: dict[str, gymnasium.Space[Any]] = {
    "grid": gymnasium.spaces.Box(0, 10, (3, WIDTH, 3), np.uint8),
    "image": PICTURES,
    "record": gymnasium.spaces.Dict(
        {
            "place": gymnasium.spaces.Discrete(WIDTH),
            "camera": PICTURES,
        }
    ),
}


class Corridor(gymnasium.Env[Any, int]):
    """From near the middle to the left or the right end, as the mission says.

    Args:
        ends: whether the episode ends at the goal.
        form: kind of the observations.
    """

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, *, ends: bool, form: str = "grid") -> None:
        self._ends = ends
        self._seen, self.observation_space = FORMS[form], SPACES[form]
        self.mission = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.mission = ("go left", "go right")[int(self.np_random.integers(2))]
        self._place, self._steps = int(self.np_random.integers(2, 5)), 0
        return self._seen(self._place), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._place = min(max(self._place + (1 if action else -1), 0), WIDTH - 1)
        self._steps += 1
        there = self._place == (WIDTH - 1 if self.mission == "go right" else 0)
        return self._seen(self._place), float(there), there and self._ends, self._steps >= HORIZON, {}


def _made(*, ends: bool, form: str = "grid") -> tuple[Any, FunctionView]:
    view = FunctionView(Metadata(form, (), "Corridor-v0", form), reached=lambda _, reward: reward > 0)
    return Corridor(ends=ends, form=form), view


def ends() -> tuple[Any, FunctionView]:
    """Episodes end at the goal."""
    return _made(ends=True)


def goes_on() -> tuple[Any, FunctionView]:
    """They do not."""
    return _made(ends=False)


def records() -> tuple[Any, FunctionView]:
    """They end at the goal, and states are records."""
    return _made(ends=True, form="record")


def images() -> Any:
    """They end at the goal, and states are images: the environment has the form of one of grids."""
    return Corridor(ends=True, form="image")


def walk(right: bool, start: int, steps: list[int], role: Role, form: str = "grid") -> Demonstration:
    """A trajectory by its actions."""
    places = [start]
    for action in steps:
        places.append(min(max(places[-1] + (1 if action else -1), 0), WIDTH - 1))
    mission = "go right" if right else "go left"
    trajectory = Trajectory(
        KINDS[form].online([FORMS[form](place) for place in places]),
        np.array(steps),
        mission,
        kind=form,
        source=f"{role} {mission} {start}",
    )
    return Demonstration(trajectory, role, mission.removeprefix("go "))


def demonstrations(label: LabelRule | None = None, form: str = "grid") -> Demonstrations:
    """Six experts, three of each task, who turn back at the end; negatives stay clear of both ends."""
    items = []
    for right in (False, True):
        for start in (2, 3, 4):
            way = (WIDTH - 1 - start) if right else start
            items.append(walk(right, start, [int(right)] * way + [int(not right)], "expert", form))
        for start in (2, 4):
            items.append(walk(right, start, [1, 0, 0, 1] if start == 2 else [0, 1, 1, 0], "negative", form))
    return Demonstrations(Metadata(form, (), "Corridor-v0", form, label=label or ""), tuple(items))


def goal_of(item: Demonstration) -> int:
    """The goal state of an expert, 1-based: the one before the last."""
    return item.trajectory.num_steps


def saved(folder: Path, label: LabelRule | None = None, *, marked: bool = False, form: str = "grid") -> str:
    """The demonstrations as a file, with or without the marks of goal states."""
    found = demonstrations(label, form)
    if marked:
        experts = [item for item in found if item.role == "expert"]
        found = with_goals(found, {item.trajectory.digest: (goal_of(item),) for item in experts})
    path = folder / f"corridor{'-marked' * marked}.parquet"
    save(found, path)
    return str(path)


def right_goal(length: int) -> str:
    """The right answer to a cleaning prompt."""
    return f"It turns back there.\n\ntrajectory 1: {length - 1}"


class Model:
    """Names goal states; its first program pays at either end, later ones at the end that the mission names.

    Args:
        say: answers a cleaning prompt about a trajectory of so many states.
        wrong: number of programs that pay at either end.
    """

    def __init__(self, say: Callable[[int], str] = right_goal, wrong: int = 1) -> None:
        self.say, self.wrong = say, wrong
        self.cleaning: list[str] = []
        self.writing: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self._lock:
            if CLEANING in prompt:
                self.cleaning.append(prompt)
                found = re.search(r"Trajectory 1: .*; (\d+) states", prompt)
                assert found is not None
                return self.say(int(found[1]))
            self.writing.append(prompt)
            number = len(self.writing)
        body = f"{number} * ({ANY_END if number <= self.wrong else OWN_END})"
        if RESHAPING in prompt:
            body = f"{body} + 0.1 * {number} * (self.at(state) if self.right else 6 - self.at(state))"
        return f"An end.\n\n```python\n{program(body)}```\n"
