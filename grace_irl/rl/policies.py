"""Policies for the collection of demonstrations: BabyAI's bot, random actions, or a trained policy.

Policies act on states, which a view makes from the environment's observations (`grace_irl.rewards.view.StateView`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import numpy as np

from grace_irl.errors import GraceError, InputError
from grace_irl.rl.actions import uniform_log_prob


class PolicyFailureError(GraceError):
    """The policy could not continue this episode. Another episode may succeed."""


class PolicyDoneError(GraceError):
    """The policy has completed its task in this episode, but the environment has not ended the episode."""


class ActingPolicy(Protocol):
    """A policy that acts in one environment."""

    def reset(self, environment: Any, seed: int) -> None:
        """Prepare for a new episode. The caller has just reset the environment."""
        ...

    def act(self, state: Any) -> tuple[Any, float | None]:
        """Choose an action in a state. Return the action and its log-probability (None if unknown).

        Raises:
            PolicyFailureError: the policy is stuck in this episode.
            PolicyDoneError: the policy has completed its task, so the caller should end the episode.
        """
        ...


class RandomPolicy:
    """A policy that draws actions uniformly from the action space."""

    def reset(self, environment: Any, seed: int) -> None:
        """Seed the action space."""
        space = environment.action_space
        space.seed(seed)
        self._space = space
        self._log_prob = uniform_log_prob(space)

    def act(self, state: Any) -> tuple[Any, float | None]:  # noqa: ARG002
        """See `ActingPolicy.act`."""
        return self._space.sample(), self._log_prob


class Planner:
    """A bot with the interface of `BabyAIBot`, for levels that have a planner (`grace_irl.rl.levels`)."""

    def __init__(self, environment: Any) -> None:
        self._level = environment.unwrapped

    def replan(self, last: Any) -> Any:  # noqa: ARG002
        """The next action."""
        return self._level.plan()


class BotPolicy:
    """The policy of MiniGrid's `BabyAIBot`, which plans with full knowledge of the level.

    The bot hangs on some levels (GoToImpUnlock, UnlockToUnlock), and raises an error on others. An alarm stops the
    bot after `alarm_s` seconds of computation in one episode.

    Raises:
        InputError: the environment is not a BabyAI level, or the caller is outside the main thread. Alarms work in the
            main thread only.
    """

    def __init__(self, environment_id: str, alarm_s: float = 5.0) -> None:
        if not environment_id.startswith("BabyAI-"):
            raise InputError(
                f"{environment_id}: the bot plays BabyAI levels only; expected --policy random or a checkpoint"
            )
        if threading.current_thread() is not threading.main_thread():
            raise InputError("the bot needs the main thread for its alarm; collect in a process of its own")
        self._alarm_s = alarm_s

    def reset(self, environment: Any, seed: int) -> None:  # noqa: ARG002
        """Create a bot for the new episode: a `Planner` if the level has a planner, else a `BabyAIBot`."""
        from minigrid.utils import baby_ai_bot

        self._left_s = self._alarm_s
        self._last: Any = None
        bot: Any = Planner if hasattr(environment.unwrapped, "plan") else baby_ai_bot.BabyAIBot
        with self._thinking():
            self._bot: Any = bot(environment)

    def act(self, state: Any) -> tuple[Any, float | None]:  # noqa: ARG002
        """See `ActingPolicy.act`. The bot's log-probabilities are unknown."""
        with self._thinking():
            self._last = self._bot.replan(self._last)
        return np.int64(self._last), None

    @contextmanager
    def _thinking(self) -> Iterator[None]:
        """A context that stops the bot when its time is used up, and converts its errors to `PolicyFailureError`."""

        def ring(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            raise PolicyFailureError(f"hung for {self._alarm_s:g} s")

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, max(self._left_s, 1e-3))
        try:
            yield
        except (PolicyFailureError, KeyboardInterrupt):
            raise
        except Exception as error:
            # Depending on the level, the bot fails with AssertionError, KeyError or ValueError.
            raise PolicyFailureError(f"{type(error).__name__}") from error
        finally:
            self._left_s = signal.setitimer(signal.ITIMER_REAL, 0.0)[0]
            signal.signal(signal.SIGALRM, before)


def make_policy(name: str, environment_id: str, *, alarm_s: float = 5.0) -> ActingPolicy:
    """Create a policy from its name in `--policy`.

    Args:
        name: "bot", "random", or the path of a Stable-Baselines3 checkpoint (.zip).
        environment_id: id of the environment.
        alarm_s: maximum computing time of the bot per episode, in seconds.

    Raises:
        InputError: an unknown name, or a checkpoint that cannot be used.
    """
    if name == "random":
        return RandomPolicy()
    if name == "bot":
        return BotPolicy(environment_id, alarm_s)
    if name.endswith(".zip"):
        from grace_irl.rl.checkpoint import CheckpointPolicy

        return CheckpointPolicy(Path(name))
    raise InputError(f"--policy {name}; expected bot, random or the path of a Stable-Baselines3 checkpoint (.zip)")
