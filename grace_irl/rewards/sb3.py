"""An SB3 vector environment that pays a recovered reward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from grace_irl.errors import InputError
from grace_irl.rewards.gymnasium import INSTRUCTION, state_of
from grace_irl.rewards.scale import Scale
from grace_irl.rewards.scorer import Begin, Scorer


class RewardVecEnv(VecEnvWrapper):
    """Pays the program's reward in place of the environments', one message to the program per vector step.

    As `RewardEnv`, for each of its environments. A vector environment starts a finished sub-environment again within
    the same step: the state that the old episode reached (`info["terminal_observation"]`) is rewarded by the old
    episode's object, and only then does the new observation start a new one. `info["TimeLimit.truncated"]` and
    everything else stays as it is.

    Args:
        venv: what is wrapped; its observations are states, or dicts that hold them under "state". Instructions come
            from `info["instruction"]` of a sub-environment's `reset`, else from a `mission` of it.
        scorer: runs the program; this wrapper's alone, and closed with it.
        scale: the form of the reward.
        states: reads the states `(n, ...)` out of observations `(n, ...)`, and one out of one, where they are neither.

    Raises:
        InputError: observations are normalised underneath: programs expect them as the environment gives them.
    """

    def __init__(
        self,
        venv: VecEnv,
        scorer: Scorer,
        scale: Scale = Scale(),
        states: Callable[[Any], NDArray[Any]] = state_of,
    ) -> None:
        inner: Any = venv
        while isinstance(inner, VecEnvWrapper):
            if isinstance(inner, VecNormalize) and inner.norm_obs:
                raise InputError(
                    "VecNormalize under the recovered reward; expected observations as the environment gives them: "
                    "wrap with the reward first, then normalise"
                )
            inner = inner.venv
        super().__init__(venv)
        self._scorer, self._scale, self._states = scale.over(scorer), scale, states
        self._slots = range(venv.num_envs)
        self._actions: NDArray[Any] | None = None
        self._has_mission = bool(venv.has_attr("mission"))

    def reset(self) -> Any:
        """New episodes everywhere, and a new `Reward` for each."""
        observations = self.venv.reset()
        states = self._states(observations)
        self._scorer.turn((), None, (), [self._begin(index, states[index]) for index in self._slots])
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Notes the actions, which some programs reward."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One step everywhere, paid by the program."""
        observations, originals, dones, infos = self.venv.step_wait()
        states = self._states(observations)
        reached, begins = states, []
        if dones.any():
            reached = np.array(states)
            for index in np.flatnonzero(dones).tolist():
                reached[index] = self._states(infos[index]["terminal_observation"])
                begins.append(self._begin(index, states[index]))
        answer = self._scorer.turn(self._slots, self._actions, reached, begins)
        for info, original in zip(infos, originals, strict=True):
            info["original_reward"] = float(original)
        for info, terms in zip(infos, answer.terms, strict=False):
            if terms:
                info["reward_terms"] = terms
        return observations, self._scale(answer.rewards).astype(np.float32), dones, infos

    def close(self) -> None:
        """Ends the program, then the environments."""
        self._scorer.close()
        super().close()

    def _begin(self, index: int, state: NDArray[Any]) -> Begin:
        instruction = self.venv.unwrapped.reset_infos[index].get(INSTRUCTION)
        if instruction is None:
            instruction = self.venv.get_attr("mission", index)[0] if self._has_mission else ""
        return Begin(index, state, str(instruction))
