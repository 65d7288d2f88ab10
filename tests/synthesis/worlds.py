"""Tiny grid worlds with invented codes, played by hand, at random or to a goal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.labels import Labelled, Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Split, Trajectory

Cell = tuple[int, int]
Code = tuple[int, int, int]

FLOOR: Code = (3, 7, 50)
WALL: Code = (9, 11, 50)  # of the same colour as some things
AGENT = 21
AGENT_COLOUR = 1
NOTHING = 50
HEADINGS: dict[int, Cell] = {40: (0, 1), 41: (1, 0), 42: (0, -1), 43: (-1, 0)}
"""Heading code -> one step ahead; one more is a turn clockwise, seen with rows downwards."""
KINDS = {"ball": 14, "key": 30, "box": 8}
COLOURS = {"red": 11, "green": 4, "blue": 17}
WORDS = {"ball": "mip", "key": "tro", "box": "sul", "red": "gax", "green": "fen", "blue": "wog"}
"""The invented words of the instructions."""
DOOR, CLOSED, OPEN = 25, 60, 61


@dataclass
class World:
    """A room with a border of walls. Every method that acts appends a state.

    Attributes:
        shape: rows and columns, border included.
        here, heading: where the agent is, and its heading code.
        things: cell -> code.
        held: what the agent carries, unseen.
    """

    shape: Cell
    here: Cell
    heading: int = 40
    things: dict[Cell, Code] = field(default_factory=dict)
    held: Code | None = None
    states: list[NDArray[np.int64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._keep()

    @property
    def ahead(self) -> Cell:
        step = HEADINGS[self.heading]
        return self.here[0] + step[0], self.here[1] + step[1]

    def free(self, cell: Cell) -> bool:
        """Whether the agent can go there: floor, or an open door."""
        inside = 0 < cell[0] < self.shape[0] - 1 and 0 < cell[1] < self.shape[1] - 1
        return inside and (cell not in self.things or self.things[cell][2] == OPEN)

    def act(self, *names: str) -> World:
        """forward, left, right, take, put, toggle; what cannot be done leaves all as it is."""
        for name in names:
            if name == "forward" and self.free(self.ahead):
                self.here = self.ahead
            elif name in ("left", "right"):
                self.heading = 40 + (self.heading - 40 + (1 if name == "right" else -1)) % 4
            elif name == "take" and self.held is None and self.things.get(self.ahead, (DOOR,))[0] != DOOR:
                self.held = self.things.pop(self.ahead)
            elif name == "put" and self.held is not None and self.free(self.ahead) and self.ahead not in self.things:
                self.things[self.ahead], self.held = self.held, None
            elif name == "toggle" and self.things.get(self.ahead, (0,))[0] == DOOR:
                kind, colour, state = self.things[self.ahead]
                self.things[self.ahead] = (kind, colour, CLOSED if state == OPEN else OPEN)
            self._keep()
        return self

    def route(self, reached: Callable[[Cell, int], bool]) -> list[str]:
        """The shortest list of moves and turns to where `reached(cell, heading)` holds."""
        start = (self.here, self.heading)
        seen, queue = {start}, deque([(start, [])])
        while queue:
            (cell, heading), path = queue.popleft()
            if reached(cell, heading):
                return path
            step = HEADINGS[heading]
            forward = (cell[0] + step[0], cell[1] + step[1])
            options = [("left", (cell, 40 + (heading - 41) % 4)), ("right", (cell, 40 + (heading - 39) % 4))]
            options += [("forward", (forward, heading))] if self.free(forward) else []
            for name, place in options:
                if place not in seen:
                    seen.add(place)
                    queue.append((place, [*path, name]))
        raise AssertionError("no way there")

    def stack(self) -> NDArray[np.int64]:
        """The states so far, (T+1, h, w, 3)."""
        return np.stack(self.states)

    def _keep(self) -> None:
        state = np.empty((*self.shape, 3), dtype=np.int64)
        state[:] = WALL
        state[1:-1, 1:-1] = FLOOR
        for cell, code in self.things.items():
            state[cell] = code
        state[self.here] = (AGENT, AGENT_COLOUR, self.heading)
        self.states.append(state)


def thing(colour: str, kind: str) -> Code:
    """The code of a thing by its names."""
    return KINDS[kind], COLOURS[colour], NOTHING


def facing(cell: Cell) -> Callable[[Cell, int], bool]:
    """For `World.route`: the agent looks at this cell."""
    return lambda here, heading: (here[0] + HEADINGS[heading][0], here[1] + HEADINGS[heading][1]) == cell


def random_world(rng: np.random.Generator, things: Sequence[Code], shape: Cell = (7, 8)) -> World:
    """These things and the agent at random cells, no two beside each other."""
    cells = [(r, c) for r in range(1, shape[0] - 1) for c in range(1, shape[1] - 1)]
    chosen: list[Cell] = []
    for place in rng.permutation(len(cells)).tolist():
        cell = cells[place]
        if all(abs(cell[0] - r) + abs(cell[1] - c) > 1 for r, c in chosen):
            chosen.append(cell)
    assert len(chosen) > len(things)
    return World(shape, chosen[0], int(rng.integers(40, 44)), dict(zip(chosen[1:], things, strict=False)))


def random_play(rng: np.random.Generator, steps: int) -> World:
    """A world with things, doors and an agent that does whatever comes, mostly what has an effect."""
    shape = (6, 7)
    cells = [(r, c) for r in range(1, 5) for c in range(1, 6)]
    places = [cells[i] for i in rng.permutation(len(cells))[:8].tolist()]
    codes = [thing(str(rng.choice(list(COLOURS))), str(rng.choice(list(KINDS)))) for _ in range(5)]
    codes += [(DOOR, COLOURS["red"], CLOSED), (DOOR, COLOURS["green"], OPEN)]
    world = World(shape, places[0], int(rng.integers(40, 44)), dict(zip(places[1:], codes, strict=True)))
    names = ("forward", "left", "right", "take", "put", "toggle")
    for name in rng.choice(names, size=steps, p=(0.35, 0.12, 0.12, 0.17, 0.12, 0.12)).tolist():
        world.act(name)
    return world


def text(colour: str, kind: str, verb: str = "zek") -> str:
    """The instruction for a thing: "go to the red ball" in invented words."""
    return f"{verb} {WORDS[colour]} {WORDS[kind]}"


def go_to_set(seed: int, experts: int, negatives: int, split: Split = "train") -> list[Demonstration]:
    """Trajectories under "go to COLOUR KIND": the expert's last state is the first in which it faces that thing."""
    rng = np.random.default_rng(seed)
    pairs = [(c, k) for c in COLOURS for k in KINDS]
    items: list[Demonstration] = []
    while len(items) < experts + negatives:
        role = "expert" if len(items) < experts else "negative"
        names = [pairs[i] for i in rng.permutation(len(pairs))[:4].tolist()]
        world = random_world(rng, [thing(*name) for name in names])
        cells = list(world.things)
        if role == "expert":
            for cell in (cells[1], cells[0]):
                world.act(*world.route(facing(cell)))
        else:
            for cell in (cells[1], cells[2], cells[3]):
                world.act(*world.route(facing(cell)))
        stack = world.stack()
        faced = faced_states(stack, cells[0])
        if (faced[:-1].any() or faced[-1] != (role == "expert")) or len(stack) < 3:
            continue
        trajectory = Trajectory(stack.astype(np.uint8), extra_info=text(*names[0]), source=f"{role} {len(items)}")
        items.append(Demonstration(trajectory, role, split=split))
    return items


def faced_states(stack: NDArray[np.int64], cell: Cell) -> NDArray[np.bool_]:
    """The states in which the agent looks at a cell."""
    marks = []
    for state in stack:
        row, column = np.argwhere(state[..., 0] == AGENT)[0].tolist()
        step = HEADINGS[int(state[row, column, 2])]
        marks.append((row + step[0], column + step[1]) == cell)
    return np.array(marks)


def problem(items: Sequence[Demonstration], rule: LabelRule = "last") -> Problem:
    """The grid demonstrations, labelled."""
    return label(Demonstrations(Metadata("grid"), tuple(items)), rule)


def labelled(items: Sequence[Demonstration]) -> tuple[Labelled, ...]:
    """Labelled by their last states."""
    return problem(items).items


def rewards(source: str, states: NDArray[np.int64], instruction: str = "") -> NDArray[np.float64]:
    """What a program gives for one trajectory, (T+1,)."""
    return rewards_of_all(source, [states], [instruction])[0]


def rewards_of_all(
    source: str, stacks: Sequence[NDArray[np.int64]], instructions: Sequence[str]
) -> list[NDArray[np.float64]]:
    """What a program gives for trajectories, each with a Reward of its own."""
    space: dict[str, object] = {}
    exec(compile(source, "reward.py", "exec"), space)
    found = []
    for states, instruction in zip(stacks, instructions, strict=True):
        reward = space["Reward"](instruction)  # type: ignore[operator]
        values = []
        for state in states:
            values.append(reward.reward_fn(state.copy()))
            assert isinstance(reward.debug_fn(state.copy()), str)
        found.append(np.array(values, dtype=np.float64))
    return found
