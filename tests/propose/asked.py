"""Small fixed demonstrations and every prompt that is made of them.

`python -m tests.propose.asked` writes the snapshots anew; read the difference before committing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.evaluate.evaluation import Evaluation
from grace_irl.evaluate.separation import Metrics, Separation
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material
from grace_irl.propose.protocol import Prompt
from grace_irl.propose.rendering import COMMON
from tests.propose import screens

SNAPSHOTS = Path(__file__).parent / "snapshots"

ROLES: tuple[Role, ...] = ("expert", "negative")
FLOOR, WALL = (3, 7, 5), (9, 9, 5)
Cell = tuple[int, int]

SOURCE = """\
class Reward:
    def __init__(self, extra_info=None):
        self.words = (extra_info or "").split()

    def reward_fn(self, state):
        return float((state[:, :, 0] == 14).any())
"""

UI_SOURCE = """\
from lxml import etree

class Reward:
    def __init__(self, extra_info=None):
        self.words = (extra_info or "").split()

    def reward_fn(self, state):
        root = etree.fromstring(state)
        return float(any(node.get("text") in self.words for node in root.iter("node")))
"""


def room(things: dict[Cell, tuple[int, int, int]], size: Cell = (5, 6)) -> np.ndarray:
    """A grid with a frame of walls."""
    grid = np.empty((*size, 3), dtype=np.uint8)
    grid[:] = WALL
    grid[1:-1, 1:-1] = FLOOR
    for cell, code in things.items():
        grid[cell] = code
    return grid


def walk(path: Sequence[Cell], things: dict[Cell, tuple[int, int, int]], text: str) -> Trajectory:
    """Something with code (21, 1, 4) goes along a path."""
    states = np.stack([room({**things, cell: (21, 1, 4)}) for cell in path])
    return Trajectory(states, actions=np.zeros(len(path) - 1, dtype=np.int64), extra_info=text, source=f"walk {text}")


def demonstrations(task: str = "default") -> list[Demonstration]:
    """Two experts that reach what their instruction names, a negative that does not."""
    ball, box = (14, 11, 5), (8, 4, 5)
    one = walk([(1, 1), (1, 2), (1, 3), (2, 3)], {(3, 3): ball, (2, 1): box}, "mip gax")
    two = walk([(3, 4), (3, 3), (3, 3), (3, 2)], {(3, 1): box, (1, 4): ball}, "mip fen")
    lost = walk([(1, 1), (1, 2), *[(1, 1)] * 12, (2, 1)], {(3, 4): ball}, "mip gax")
    held = walk([(1, 1), (1, 2)], {(1, 3): (177, 178, 179)}, "mip heldout")
    roles: list[tuple[Trajectory, Role]] = [(one, "expert"), (two, "expert"), (lost, "negative")]
    return [
        *(Demonstration(trajectory, role, task) for trajectory, role in roles),
        Demonstration(held, "expert", task, "held_out"),
    ]


def grids(rule: LabelRule = "last", tasks: Sequence[str] = ("default",)) -> Problem:
    items = tuple(item for task in tasks for item in demonstrations(task))
    return label(Demonstrations(Metadata("grid"), items), rule)


def vectors(width: int = 4, length: int = 30) -> Problem:
    """Experts move fast in the second field; the last field never changes."""
    rng = np.random.default_rng(0)
    items = []
    for number in range(4):
        role: Role = "expert" if number < 2 else "negative"
        states = rng.normal(0.0, 1.0, (length, width)).round(3)
        states[:, 1] += 3.0 if role == "expert" else 0.0
        states[:, -1] = 0.5
        items.append(Demonstration(Trajectory(states, source=f"v{number}"), role))
    names = tuple(f"name{i}" for i in range(width))
    return label(Demonstrations(Metadata("vector", fields=names), tuple(items)), "all")


def evaluation(problem: Problem) -> Evaluation:
    """Of a program that is far from good."""
    train = Metrics(-0.731, 0.8, 0.75, False, 2, 21)
    held_out = Metrics(-0.9999, 0.1234, 0.4321, False, 1, 1)
    return Separation(
        train,
        held_out,
        tasks={
            task: (replace(train, fitness=-0.5 - number), held_out)
            for number, task in enumerate(dict.fromkeys(item.task for item in problem.train))
        },
        monotonicity=0.25,
    ).evaluation()


def material(problem: Problem, seed: int = 3) -> Material:
    """What a mutation of SOURCE is given."""
    places = {role: [n for n, item in enumerate(problem.train) if item.demonstration.role == role] for role in ROLES}
    # An expert's last state is too low, and two negative states are too high.
    wrong = {places["expert"][0]: np.array([3]), places["negative"][0]: np.array([1, 8])}
    rewards = {
        item.trajectory.digest: np.linspace(0, 1, len(item.trajectory.states)).round(3) for item in problem.train
    }
    debug = {
        (problem.train[place].trajectory.digest, step): f"sees {step}\nand more"
        for place, steps in wrong.items()
        for step in (0, *steps.tolist(), len(problem.train[place].positive) - 1)
    }
    return Material(
        seed=seed,
        source=SOURCE,
        evaluation=evaluation(problem),
        rewards=rewards,
        wrong=wrong,
        debug=debug,
        overall="means 0.2 and 0.1",
    )


def prompts() -> dict[str, Prompt]:
    """Every prompt that has a snapshot, by name."""
    grid, vector, several = grids(), vectors(), grids(tasks=("near", "far"))
    plain = brief(grid, context="Things may be carried.")
    ui = screens.problem()
    outlined, tapped = brief(ui, context="Things are warm."), replace(material(ui), source=UI_SOURCE)
    given = material(grid)
    broken = Evaluation("runtime", "IndexError: index 9", "Traceback:\n  reward.py, line 6, in reward_fn")
    return {
        "initialise-grid": OPERATORS["initialise"](plain, Material(seed=1)),
        "initialise-grid-json": OPERATORS["initialise"](brief(grid, answer_format="json"), Material(seed=1)),
        "initialise-grid-quarter": OPERATORS["initialise"](
            brief(grid, budget=PromptBudget(scale=0.25)), Material(seed=1)
        ),
        "initialise-tasks": OPERATORS["initialise"](brief(several), Material(seed=1)),
        "initialise-vector": OPERATORS["initialise"](brief(vector), Material(seed=1)),
        "mutate-grid": OPERATORS["mutate"](plain, replace(given, include_expert=True)),
        "mutate-grid-only-wrong-experts": OPERATORS["mutate"](
            plain, replace(given, incorrect_only=True, expert_only=True)
        ),
        "mutate-tasks": OPERATORS["mutate"](brief(several), material(several)),
        "mutate-vector": OPERATORS["mutate"](brief(vector), material(vector)),
        "repair-grid": COMMON["repair"](plain, replace(given, evaluation=broken)),
        "reshape-grid": OPERATORS["reshape"](plain, given),
        "initialise-ui": OPERATORS["initialise"](outlined, Material(seed=1)),
        "initialise-ui-quarter": OPERATORS["initialise"](brief(ui, budget=PromptBudget(scale=0.25)), Material(seed=1)),
        "initialise-ui-tasks": OPERATORS["initialise"](brief(screens.problem(tasks=("near", "far"))), Material(seed=1)),
        "mutate-ui": OPERATORS["mutate"](outlined, replace(tapped, include_expert=True)),
        "repair-ui": COMMON["repair"](outlined, replace(tapped, evaluation=broken)),
        "reshape-ui": OPERATORS["reshape"](outlined, tapped),
        "clean-ui": COMMON["clean"](outlined, Material(trajectories=ui.train[:2])),
        "clean-grid": COMMON["clean"](plain, Material(trajectories=grid.train[:2])),
        "clean-grid-json": COMMON["clean"](brief(grid, answer_format="json"), Material(trajectories=grid.train[:2])),
    }


if __name__ == "__main__":
    for old in SNAPSHOTS.glob("*.txt"):
        old.unlink()
    for name, prompt in prompts().items():
        (SNAPSHOTS / f"{name}.txt").write_text(f"{prompt.text}\n")
