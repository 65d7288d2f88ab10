"""Near misses: episodes in which a policy does another task than the instruction says, in the same world."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from grace_irl.errors import InputError
from grace_irl.rl.policies import BotPolicy, PolicyDoneError, PolicyFailureError

NO_OTHER_TASK = "no other task in the world"
RIGHT_TASK_DONE = "the right task done on the way"
OUT_OF_TIME = "time limit before the other task was done"
GIVEN_UP = "the bot gave the other task up"


class NearMissPolicy:
    """A policy that does another task of the same world: by BabyAI's bot, or by a script for a level of our own.

    Each episode draws a deviation by its seed: first a name, then a task or the details of the script
    (`grace_irl.rl.other_task`, `grace_irl.rl.level_deviations`). The level and its instruction stay as they are, so the
    environment verifies the right task at every step and gives its rewards. The policy is done when the verifier of the
    other task reports success.

    Args:
        environment_id: id of the environment.
        only: name of the only deviation to draw, for example "other order"; "" draws from all that the world allows.
        alarm_s: maximum computing time of the bot per episode, in seconds.

    Attributes:
        deed: name of the running episode's deviation, and the text of its task if it has one.
        done: whether the policy has done its task in the running episode.

    Raises:
        InputError: the environment is not of BabyAI.
    """

    def __init__(self, environment_id: str, only: str = "", alarm_s: float = 5.0) -> None:
        if not environment_id.startswith("BabyAI-"):
            raise InputError(_no_instruction(environment_id))
        self._id = environment_id
        self._only = only
        self._bot = BotPolicy(environment_id, alarm_s)

    def reset(self, environment: Any, seed: int) -> None:
        """Draw a deviation for the new episode.

        Raises:
            PolicyFailureError: the world allows no deviation, or not the deviation `only`.
            InputError: the environment has no instruction of BabyAI, or no deviation of its level has the name `only`.
        """
        from grace_irl.rl.level_deviations import SCRIPTS
        from grace_irl.rl.other_task import DEVIATIONS, other_tasks

        level = environment.unwrapped
        if getattr(level, "instrs", None) is None:
            raise InputError(_no_instruction(self._id))
        scripts = SCRIPTS.get(type(level))
        known = tuple(scripts or DEVIATIONS)
        if self._only and self._only not in known:
            expected = ", ".join(map(repr, known))
            raise InputError(f"{self._id}: near_miss={self._only!r}; expected True or one of {expected}")
        self.done = False
        rng = np.random.default_rng(seed)
        if scripts is not None:
            names = [self._only] if self._only else rng.permutation(known).tolist()
            self._actions = self._first_possible({name: scripts[name](level, rng) for name in names})
            return
        tasks = {name: some for name, some in other_tasks(level).items() if self._only in ("", name)}
        if not tasks:
            raise PolicyFailureError(NO_OTHER_TASK)
        name = list(tasks)[rng.integers(len(tasks))]
        task: Any = tasks[name][rng.integers(len(tasks[name]))]
        self.deed = f"{name}: {task.surface(level)}"
        self._actions = self._bot_actions(level, task)

    def act(self, state: Any) -> tuple[Any, float | None]:  # noqa: ARG002
        """See `ActingPolicy.act`. Log-probabilities are unknown.

        Raises:
            PolicyDoneError: the other task is done.
            PolicyFailureError: the bot is stuck or gives up, or the world does not allow the deviation.
        """
        from grace_irl.rl.levels import NoWayError

        try:
            action = next(self._actions, None)
        except NoWayError:
            raise PolicyFailureError(NO_OTHER_TASK) from None
        if action is None:
            self.done = True
            raise PolicyDoneError
        return np.int64(action), None

    def _first_possible(self, scripts: dict[str, Iterator[Any]]) -> Iterator[Any]:
        """The actions of the first script that raises no `NoWayError` before its first action."""
        from grace_irl.rl.levels import NoWayError

        for self.deed, actions in scripts.items():
            with suppress(NoWayError):
                return chain([next(actions)], actions)
        raise PolicyFailureError(NO_OTHER_TASK)

    def _bot_actions(self, level: Any, task: Any) -> Iterator[Any]:
        """The actions with which the bot does `task`. The caller takes a step of the level after each of them."""
        task.reset_verifier(level)
        right, level.instrs = level.instrs, task  # a bot reads its instruction once, when it is made
        try:
            self._bot.reset(level, 0)
        finally:
            level.instrs = right
        while True:
            action, _ = self._bot.act(None)
            if action == level.actions.done:
                raise PolicyFailureError(GIVEN_UP)
            yield action
            if action == level.actions.drop:
                level.update_objs_poss(task)
            if task.verify(action) == "success":
                return


def _no_instruction(environment_id: str) -> str:
    return (
        f"{environment_id}: no instruction of BabyAI, which --near-miss needs; expected a level of BabyAI such as "
        "BabyAI-GoToLocal-v0"
    )
