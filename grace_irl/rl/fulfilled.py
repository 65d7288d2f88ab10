"""Fulfilment of instructions in stored episodes of BabyAI: whether an episode fulfils a given text, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.states.grid import GRID


@dataclass(frozen=True)
class Fulfilment:
    """The moment at which an episode fulfils an instruction.

    Attributes:
        at: index of the first state at which the instruction is fulfilled; None if the episode never fulfils it.
    """

    at: int | None

    def by(self, state: int) -> bool:
        """Whether the instruction is fulfilled at or before the state with this index."""
        return self.at is not None and self.at <= state


def fulfilments(trajectory: Trajectory, instructions: Sequence[str]) -> list[Fulfilment | None]:
    """Decide for each instruction when the episode fulfils it. The episode is replayed once for all instructions.

    MiniGrid decodes the world from the first state, and `ReplayedLevel` replays the actions. The trajectory's own
    instruction, rewards and source are not used. The environment in which the trajectory was recorded is not created.

    BabyAI's verifiers decide, as in the environment (`Instr.verify`). "open" and "pick up" need an action of the agent
    in this episode. "go to" is fulfilled as soon as the agent faces the object, possibly in the first state. An
    instruction about an object that is not in the world is never fulfilled.

    Args:
        trajectory: an episode with states of the view "minigrid-full", and with its actions.
        instructions: texts of BabyAI, or of our own levels (`grace_irl.rl.levels`).

    Returns:
        One result for each instruction, in order. None means doubtful: `grace_irl.rl.instructions.parse` does not know
        the text, or the text has no clear meaning in this world. All results are None if MiniGrid is not
        installed, if actions are missing, if the states are not whole grids of BabyAI with MiniGrid's codes, or if
        the replayed states differ from the stored states.
    """
    doubtful: list[Fulfilment | None] = [None] * len(instructions)
    if not GRID.recognises(trajectory.states):
        return doubtful
    try:
        from grace_irl.rl.replay import ReplayedLevel, actions_of
    except ImportError:
        return doubtful
    states: Any = trajectory.states
    actions = actions_of(trajectory.actions, trajectory.num_steps)
    if actions is None:
        return doubtful
    try:
        level = ReplayedLevel(states[0])
    except ValueError:
        return doubtful
    found = _verified(level, states, actions, instructions)
    return doubtful if found is None else [found.get(text) for text in instructions]


def fulfilled(trajectory: Trajectory, instruction: str, until: int) -> bool | None:
    """Whether the episode fulfils an instruction by the state with index `until`; None if the answer is doubtful.

    For several instructions, `fulfilments` replays the episode only once.
    """
    (found,) = fulfilments(trajectory, [instruction])
    return None if found is None else found.by(until)


def does_alike(trajectory: Trajectory, instructions: Sequence[str]) -> bool:
    """Decide whether an episode fulfils one of the instructions, perhaps with another thing in place of a named thing.

    For "go to the red ball", it is enough that the agent goes to any ball, box, key or door of the first state
    (`about_other_things`). The answer is False if `fulfilments` finds all results doubtful.
    """
    if not GRID.recognises(trajectory.states):
        return False
    try:
        from grace_irl.rl.instructions import about_other_things, things_in
    except ImportError:
        return False
    states: Any = trajectory.states
    things = things_in(states[0])
    texts = sorted({other for text in instructions for other in about_other_things(text, things)})
    return any(each is not None and each.at is not None for each in fulfilments(trajectory, texts))


def _verified(level: Any, states: Any, actions: Sequence[Any], texts: Sequence[str]) -> dict[str, Fulfilment] | None:
    """Results by text, without doubtful texts; None if the replayed states differ from the stored states."""
    from grace_irl.rl.instructions import parse
    from grace_irl.rl.views import encode_grid

    tasks: dict[str, Any] = {text: task for text in dict.fromkeys(texts) if (task := parse(text, level)) is not None}
    found = dict.fromkeys(tasks, Fulfilment(None))
    cells = list(level.grid.grid)  # the grid from which the tasks last read the places of their objects
    for index, action in enumerate([level.actions.done, *actions]):  # "done" verifies state 0, without a step
        if index:
            level.step(action)
        if not np.array_equal(encode_grid(level), states[index]):
            return None
        if action == level.actions.drop and cells != level.grid.grid:  # only then, the tasks must read the places again
            cells = list(level.grid.grid)
            for task in tasks.values():
                level.update_objs_poss(task)
        for text, task in list(tasks.items()):
            status = task.verify(action)
            if status == "success":
                found[text] = Fulfilment(index)
            if status != "continue":
                del tasks[text]
    return found
