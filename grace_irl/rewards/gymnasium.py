"""A Gymnasium environment that pays a recovered reward."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.rewards.scale import Scale
from grace_irl.rewards.scorer import Begin, Scorer
from grace_irl.rl.views import StateView

STATE, INSTRUCTION = "state", "instruction"
"""Keys of an observation, and of the information that `reset` gives, where they hold what a program is shown."""


class RewardEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays the program's reward in place of the environment's.

    The reward of a step is `reward_fn(state reached)`, or `reward_fn(state, action, state reached)`. Programs that
    reward states are shown the first state at `reset`, as they see every state in order. Each episode has a `Reward`
    object of its own. `info["original_reward"]` holds what the environment pays, `info["reward_terms"]` the
    components by name where the program has `terms_fn`.

    Args:
        environment: what is wrapped.
        scorer: runs the program; this wrapper's alone, and closed with it.
        scale: the form of the reward.
        view: makes states of observations; None where the observation is the state, or a dict that holds it under
            "state". Instructions come from the view, else from `info["instruction"]` of `reset`, else from a
            `mission` of the environment.

    Raises:
        InputError: not an environment.
    """

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        scorer: Scorer,
        scale: Scale = Scale(),
        view: StateView | None = None,
    ) -> None:
        if not isinstance(environment, gymnasium.Env):
            said = f"wrap of {type(environment).__name__}; expected a Gymnasium environment"
            raise InputError(f"{said}: wrap_vec takes vector environments")
        super().__init__(environment)
        self._scorer, self._scale, self._view = scale.over(scorer), scale, view
        if view is not None:
            view.prepare(environment)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode, and a new `Reward` for it."""
        observation, info = self.env.reset(seed=seed, options=options)
        begin = Begin(0, self._state(observation), self._instruction(info))
        self._scorer.turn((), None, (), (begin,))
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step, paid by the program."""
        observation, original, terminated, truncated, info = self.env.step(action)
        answer = self._scorer.turn((0,), np.asarray(action)[None], (self._state(observation),))
        info["original_reward"] = float(original)
        if answer.terms and answer.terms[0]:
            info["reward_terms"] = answer.terms[0]
        return observation, float(self._scale(answer.rewards)[0]), terminated, truncated, info

    def close(self) -> None:
        """Ends the program, then the environment."""
        self._scorer.close()
        super().close()

    def _state(self, observation: Any) -> NDArray[Any]:
        return state_of(observation) if self._view is None else self._view.state(self.env, observation)

    def _instruction(self, info: dict[str, Any]) -> str:
        if self._view is not None:
            return self._view.instruction(self.env)
        return str(info.get(INSTRUCTION, getattr(self.env.unwrapped, "mission", "")))


def state_of(observation: Any) -> NDArray[Any]:
    """The state in an observation: the array itself, or what a dict holds under "state".

    Raises:
        InputError: neither.
    """
    if isinstance(observation, dict):
        if STATE not in observation:
            raise InputError(
                f"observations with keys {', '.join(map(str, observation))}; expected an array, a dict with "
                f"{STATE!r}, or a view that makes states of them"
            )
        observation = observation[STATE]
    return np.asarray(observation)
