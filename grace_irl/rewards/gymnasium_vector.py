"""A Gymnasium vector environment that pays a recovered reward."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.wrappers.vector import NormalizeObservation
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.rewards.gymnasium import INSTRUCTION, state_of
from grace_irl.rewards.scale import Scale
from grace_irl.rewards.scorer import Begin, Scorer

if TYPE_CHECKING:  # a package of its own, which Gymnasium's vector environments do without
    from grace_irl.rewards.sb3 import RewardVecEnv

MASK, FINAL = "reset_mask", "final_obs"
"""Keys of Gymnasium: of the options of `reset`, and of the information about a step."""


class RewardVectorEnv(VectorWrapper):
    """Pays the program's reward in place of the environments', one message to the program per vector step.

    As `RewardEnv`, for each of its environments, in every mode of starting again (`metadata["autoreset_mode"]`):

    - `NEXT_STEP`: the step after an episode's last one shows the first state of the next episode. It takes no action
      and pays 0.
    - `SAME_STEP`: the old episode's object rewards the state that it reached (`infos["final_obs"]`); the observation
      starts a new one.
    - `DISABLED`: whoever steps resets, by `options={"reset_mask": ...}`.

    `infos["original_reward"]` holds what the environments pay, `infos["reward_terms"]` the components by name.

    Args:
        venv: what is wrapped; its observations are states, or dicts that hold them under "state". Instructions come
            from `infos["instruction"]` as an episode begins, else from a `mission` of the environments.
        scorer: runs the program; this wrapper's alone, and closed with it.
        scale: the form of the reward.
        states: reads the states `(n, ...)` out of observations `(n, ...)`, and one out of one, where they are neither.

    Raises:
        InputError: observations are normalised underneath: programs expect them as the environment gives them.
    """

    def __init__(
        self,
        venv: VectorEnv,
        scorer: Scorer,
        scale: Scale = Scale(),
        states: Callable[[Any], NDArray[Any]] = state_of,
    ) -> None:
        inner: Any = venv
        while isinstance(inner, VectorWrapper):
            if isinstance(inner, NormalizeObservation):
                raise InputError(
                    "NormalizeObservation under the recovered reward; expected observations as the environment gives "
                    "them: wrap with the reward first, then normalise"
                )
            inner = inner.env
        super().__init__(venv)
        self._scorer, self._scale, self._states = scale.over(scorer), scale, states
        self._mode = AutoresetMode(venv.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._over = np.zeros(venv.num_envs, bool)
        self._missions: bool | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """New episodes, and a new `Reward` for each: everywhere, or where a mask in the options says so."""
        chosen = np.ones(self.num_envs, bool)
        if options is not None and MASK in options:
            chosen = np.array(options[MASK], bool)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._over &= ~chosen
        self._scorer.turn((), None, (), self._begins(np.flatnonzero(chosen), self._states(observations), infos))
        return observations, infos

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One step everywhere, paid by the program."""
        observations, originals, terminated, truncated, infos = self.env.step(actions)
        states = self._states(observations)
        over = np.asarray(terminated, bool) | np.asarray(truncated, bool)
        stepped = np.arange(self.num_envs)
        reached, starting = states, stepped[:0]
        if self._mode is AutoresetMode.NEXT_STEP:
            stepped, starting = np.flatnonzero(~self._over), np.flatnonzero(self._over)
        elif self._mode is AutoresetMode.SAME_STEP and over.any():
            starting = np.flatnonzero(over)
            reached = self._reached(states, starting, infos)
        self._over = over
        begins = self._begins(starting, states, infos)
        rewards = np.zeros(self.num_envs)
        answer = self._scorer.turn(stepped.tolist(), np.asarray(actions)[stepped], reached[stepped], begins)
        rewards[stepped] = self._scale(answer.rewards)
        infos = {
            **infos,
            "original_reward": np.array(originals, np.float64),
            "_original_reward": np.ones(self.num_envs, bool),
        }
        for slot, terms in zip(stepped.tolist(), answer.terms, strict=False):
            if terms:
                infos = self._add_info(infos, {"reward_terms": terms}, slot)
        return observations, rewards, terminated, truncated, infos

    def close(self, **kwargs: Any) -> None:
        """Ends the program, then the environments."""
        self._scorer.close()
        super().close(**kwargs)

    def _reached(self, states: NDArray[Any], ended: NDArray[np.int64], infos: dict[str, Any]) -> NDArray[Any]:
        """The states that the episodes reached that have started again since."""
        found = infos.get(FINAL)
        if found is None or any(found[slot] is None for slot in ended):
            raise InputError(
                f"an episode ended without infos[{FINAL!r}]; expected the last observation there, as "
                "autoreset_mode=SAME_STEP says"
            )
        reached = np.array(states)
        for slot in ended:
            reached[slot] = self._states(found[slot])
        return reached

    def _begins(self, slots: NDArray[np.int64], states: NDArray[Any], infos: dict[str, Any]) -> list[Begin]:
        """Episodes that begin in these slots."""
        if not len(slots):
            return []
        nobody = np.zeros(self.num_envs, bool)
        said, told = infos.get(INSTRUCTION, nobody), infos.get(f"_{INSTRUCTION}", nobody)
        missions = () if all(told[slots]) else self._mission()
        return [
            Begin(slot, states[slot], str(said[slot] if told[slot] else missions[slot] if missions else ""))
            for slot in slots.tolist()
        ]

    def _mission(self) -> tuple[Any, ...]:
        """The `mission` of each environment, or (); asked so that none of them fails."""
        inner: Any = self.env.unwrapped
        if self._missions is None:
            self._missions = hasattr(inner, "call") and all(inner.call("has_wrapper_attr", "mission"))
        return tuple(inner.get_attr("mission")) if self._missions else ()


def vector_wrapped(venv: Any, scorer: Scorer, scale: Scale) -> RewardVecEnv | RewardVectorEnv:
    """The wrapper that fits a vector environment.

    Raises:
        InputError: neither one of Gymnasium nor one of Stable-Baselines3.
    """
    if isinstance(venv, VectorEnv):
        return RewardVectorEnv(venv, scorer, scale)
    from stable_baselines3.common.vec_env import VecEnv

    from grace_irl.rewards.sb3 import RewardVecEnv

    if not isinstance(venv, VecEnv):
        said = f"wrap_vec of {type(venv).__name__}; expected a VectorEnv of Gymnasium or a VecEnv of Stable-Baselines3"
        raise InputError(f"{said}: wrap takes single environments")
    return RewardVecEnv(venv, scorer, scale)
