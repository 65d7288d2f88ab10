"""Near misses: episodes in which a policy does not do the instructed task, but another task of the same world."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
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
FAILED = 0.25
"""Amount that an episode adds to the count of its deviation (kind of near miss) if the episode is not kept.

`NearMissPolicy` tries the deviation with the lowest count next. An episode that is kept adds 1. Without `FAILED`, a
deviation that always fails would be tried in every episode."""


class NearMissPolicy:
    """A policy that does another task than the instruction says, in the same world.

    The way in which the two tasks differ is called a deviation. For each episode, the policy takes the deviation with
    the lowest count so far (`FAILED`), so that a few episodes show all deviations that the worlds allow. Among equal
    counts, it draws by the seed. In BabyAI's levels, the policy then draws another task, and BabyAI's bot does this
    task (`grace_irl.rl.other_task`). In our own levels, a script acts (`grace_irl.rl.level_deviations`).

    The level keeps its instruction, so the environment verifies and rewards only the right task. The policy is done
    when the verifier of the other task reports success, or when the script ends.

    A world with a single object has no other task. There the level's own task is the other task, and the level gets
    the instruction of another of its worlds, about an object that is not there (`other_task.absent_task`).

    Args:
        environment_id: id of the environment.
        only: name of the only deviation to draw, for example "other order"; "" draws from all that the world allows.
        alarm_s: maximum computing time of the bot per episode, in seconds.

    Attributes:
        deed: name of the running episode's deviation. If the bot acts, the text of the other task follows.
        done: whether `act` has raised PolicyDoneError in the running episode, because the other task is done.
        kept: whether the caller keeps the running episode. The caller sets it at the end of the episode.

    Raises:
        InputError: the environment is not of BabyAI (`BabyAI-…`).
    """

    def __init__(self, environment_id: str, only: str = "", alarm_s: float = 5.0) -> None:
        if not environment_id.startswith("BabyAI-"):
            raise InputError(_no_instruction(environment_id))
        self._id = environment_id
        self._only = only
        self._bot = BotPolicy(environment_id, alarm_s)
        self._made: dict[str, float] = defaultdict(float)
        self._name = ""
        self.done = self.kept = False

    def reset(self, environment: Any, seed: int) -> None:
        """Draw a deviation for the new episode.

        Raises:
            PolicyFailureError: the world does not allow any deviation, or does not allow the deviation `only`.
            InputError: the environment has no instruction of BabyAI, or no deviation of its level has the name `only`.
        """
        from grace_irl.rl.level_deviations import SCRIPTS
        from grace_irl.rl.other_task import ABSENT, DEVIATIONS, absent_task, copy_of, other_tasks

        level = environment.unwrapped
        if getattr(level, "instrs", None) is None:
            raise InputError(_no_instruction(self._id))
        scripts = SCRIPTS.get(type(level))
        known = tuple(scripts or DEVIATIONS)
        if self._only and self._only not in known:
            expected = ", ".join(map(repr, known))
            raise InputError(f"{self._id}: near_miss={self._only!r}; expected True or one of {expected}")
        self._made[self._name] += 1 if self.kept else FAILED
        self._name = ""
        self.done = self.kept = False
        rng = np.random.default_rng(seed)
        if scripts is not None:
            names = [self._only] if self._only else self._rarest_first(known, rng)
            self._actions = self._first_possible({name: scripts[name](level, rng) for name in names})
            return
        tasks = {name: some for name, some in other_tasks(level).items() if self._only in ("", name)}
        task: Any
        if tasks:
            self._name = name = self._rarest_first(tasks, rng)[0]
            task = tasks[name][rng.integers(len(tasks[name]))]
        else:
            found = absent_task(level, rng) if self._only in ("", ABSENT) else None
            if found is None:
                raise PolicyFailureError(NO_OTHER_TASK)
            self._name = name = ABSENT
            task = copy_of(level.instrs)
            level.instrs, level.mission = found
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

    def _rarest_first(self, names: Iterable[str], rng: np.random.Generator) -> list[str]:
        """Sort deviations by their counts (`FAILED`), lowest first. Those with equal counts are in random order."""
        return sorted(rng.permutation(list(names)).tolist(), key=lambda name: self._made[name])

    def _first_possible(self, scripts: dict[str, Iterator[Any]]) -> Iterator[Any]:
        """The actions of the first script that raises no `NoWayError` before its first action."""
        from grace_irl.rl.levels import NoWayError

        for name, actions in scripts.items():
            with suppress(NoWayError):
                self._name = self.deed = name
                return chain([next(actions)], actions)
        raise PolicyFailureError(NO_OTHER_TASK)

    def _bot_actions(self, level: Any, task: Any) -> Iterator[Any]:
        """Yield the bot's actions for `task`. After each action, the caller steps the level."""
        task.reset_verifier(level)
        right, level.instrs = level.instrs, task  # the bot reads the level's instruction only once, in `reset`
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
