"""Wrappers of Gymnasium environments, single and vectorised, that return a recovered reward."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate
from gymnasium.wrappers import vector
from numpy.typing import NDArray

from grace_irl.errors import InputError
from grace_irl.pages import page
from grace_irl.rewards.hindsight import refuse
from grace_irl.rewards.runner import RewardRunner
from grace_irl.rewards.scale import Payment, Scale
from grace_irl.rewards.view import INSTRUCTION, StateView, Tops, instruction_of, state_of, states_of
from grace_irl.sandbox.session import Begin

if TYPE_CHECKING:  # Gymnasium's vector environments do not need Stable-Baselines3
    from grace_irl.rewards.sb3 import RewardVecEnv

MASK, FINAL = "reset_mask", "final_obs"
"""Keys of Gymnasium. `MASK`, in the options of `reset`, selects the environments to reset. `FINAL`, in the `infos` of
`step`, holds the last observations of ended episodes."""


CHANGES = (
    *(gymnasium.wrappers.NormalizeObservation, vector.NormalizeObservation),
    *(gymnasium.wrappers.RescaleObservation, vector.RescaleObservation),
)
"""Wrappers that change the numbers of observations, but not their form."""
RESIZES = (
    *(gymnasium.wrappers.ResizeObservation, vector.ResizeObservation),
    *(gymnasium.wrappers.ReshapeObservation, vector.ReshapeObservation),
    *(gymnasium.wrappers.GrayscaleObservation, vector.GrayscaleObservation),
)
"""Wrappers that change the shape of observations. The environment of the demonstrations may have had such a wrapper."""


def require_plain(environment: Any, changes: tuple[type, ...] = CHANGES) -> None:
    """Check that no wrapper of an environment changes observations.

    For a vector environment, also check the wrappers of its single environments, if they run in this process.

    Args:
        environment: an environment, or a vector environment of Gymnasium or Stable-Baselines3.
        changes: the wrappers to refuse.

    Raises:
        InputError: a wrapper is one of `changes`.
    """
    inner = getattr(getattr(environment, "unwrapped", None), "envs", ())
    for each in inner if isinstance(inner, list | tuple) else ():  # environments of this process
        require_plain(each, changes)
    while isinstance(environment, gymnasium.Wrapper | VectorWrapper):
        if isinstance(environment, changes):
            raise InputError(
                f"{type(environment).__name__} under the recovered reward; expected observations as the environment "
                "gives them: wrap with the reward first, then change them"
            )
        environment = environment.env


def _require_resets(environment: Any) -> None:
    """Refuse an environment that begins episodes by itself, because their rewards need new `Reward` objects."""
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, gymnasium.wrappers.Autoreset):
            raise InputError(
                "Autoreset under the recovered reward; expected episodes that begin with reset(): wrap with the reward "
                "first, then with Autoreset"
            )
        environment = environment.env


class RewardEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that returns the reward of a program instead of the reward of the wrapped environment.

    The reward of a step is `reward_fn(next_state)`, or `reward_fn(state, action, next_state)` for programs that reward
    transitions. Programs that reward states also receive the first state, at `reset`, so they see every state in order.
    Each episode has its own `Reward` object. `info["original_reward"]` holds the reward of the environment.
    `info["reward_terms"]` holds the components of the reward by name if the program has `terms_fn`.

    Args:
        environment: the environment to wrap.
        runner: the runner of the program. No other object may use this runner, and `close` closes the runner, too.
        scale: conversion of the program's reward to the returned reward.
        view: the conversion of observations to states. None if the observation is the state, or a dict with the state
            under "state". The instruction of an episode is that of the view, or else `info["instruction"]` of `reset`,
            or else the environment's attribute `mission`.
        tops: names of the parts that the reward reads (`rewards.view.Tops`). An observation with all of them is the
            state itself, even if it has an entry "state".

    Raises:
        InputError: `environment` is not a Gymnasium environment, an inner wrapper normalises or rescales observations
            or begins episodes by itself, or `view` is not a `StateView`.
    """

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        runner: RewardRunner,
        scale: Scale = Scale(),
        view: StateView | None = None,
        tops: Tops = frozenset(),
    ) -> None:
        if not isinstance(environment, gymnasium.Env):
            said = f"wrap of {type(environment).__name__}; expected a Gymnasium environment"
            raise InputError(f"{said}: wrap_vec takes vector environments")
        require_plain(environment)
        _require_resets(environment)
        super().__init__(environment)
        self._payment, self._view, self._tops = Payment(runner, scale), view, tops
        if view is not None:
            if not callable(getattr(view, "prepare", None)):
                raise InputError(f"view is a {type(view).__name__}; expected a StateView ({page('training')})")
            view.prepare(environment)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode, with a new `Reward` object."""
        observation, info = self.env.reset(seed=seed, options=options)
        begin = Begin(0, self._state(observation), instruction_of(self.env, info, self._view))
        self._payment.turn((), None, (), (begin,))
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step, with the program's reward."""
        observation, original, terminated, truncated, given = self.env.step(action)
        answer = self._payment.turn((0,), _rows([action]), (self._state(observation),))
        info = {**given, "original_reward": float(original)}
        if answer.terms and answer.terms[0]:
            info["reward_terms"] = answer.terms[0]
        return observation, float(answer.rewards[0]), terminated, truncated, info

    def compute_reward(self, *_: Any, **__: Any) -> NoReturn:
        """See `rewards.hindsight`."""
        refuse()

    def close(self) -> None:
        """Close the program, then the environment."""
        self._payment.close()
        super().close()

    def _state(self, observation: Any) -> Any:
        return state_of(observation, self._tops) if self._view is None else self._view.state(self.env, observation)


class RewardVectorEnv(VectorWrapper):
    """A wrapper that returns the rewards of a program instead of those of the wrapped vector environment.

    Every sub-environment behaves as in `RewardEnv`. In each step, the program receives all new states in one message.
    All modes of automatic reset are supported (`metadata["autoreset_mode"]`):

    - `NEXT_STEP`: if an episode of a sub-environment has ended, the next call of `step` ignores the action for this
      sub-environment. The call returns the first observation of the next episode and the reward 0.
    - `SAME_STEP`: the `Reward` object of the old episode rewards the last state of that episode (`infos["final_obs"]`).
      A new `Reward` object starts from the returned observation.
    - `DISABLED`: the caller resets environments by `options={"reset_mask": ...}`.

    `infos["original_reward"]` holds the rewards of the environments. `infos["reward_terms"]` holds the components of
    the program's rewards by name.

    Args:
        venv: the vector environment to wrap. Its observations are states, or dicts with the states under "state".
            The instruction of an episode is `infos["instruction"]` at the beginning of the episode, or else the
            attribute `mission` of the sub-environment.
        runner: the runner of the program. No other object may use this runner, and `close` closes the runner, too.
        scale: conversion of the program's reward to the returned reward.
        tops: names of the parts that the reward reads (`rewards.view.Tops`). An observation with all of them is the
            state itself, even if it has an entry "state".

    Raises:
        InputError: an inner wrapper normalises or rescales observations. Programs expect them unchanged.
    """

    def __init__(
        self,
        venv: VectorEnv,
        runner: RewardRunner,
        scale: Scale = Scale(),
        tops: Tops = frozenset(),
    ) -> None:
        require_plain(venv)
        super().__init__(venv)
        self._payment, self._tops = Payment(runner, scale), tops
        self._mode = AutoresetMode(venv.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._over = np.zeros(venv.num_envs, bool)
        self._missions: bool | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, each with a new `Reward` object. `options["reset_mask"]` can select the environments."""
        chosen = np.ones(self.num_envs, bool)
        if options is not None and MASK in options:
            chosen = np.array(options[MASK], bool)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._over &= ~chosen
        self._payment.turn(
            (),
            None,
            (),
            self._begins(np.flatnonzero(chosen), states_of(observations, self.num_envs, self._tops), infos),
        )
        return observations, infos

    def step(
        self, actions: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One step of all environments, with the program's rewards."""
        observations, originals, terminated, truncated, infos = self.env.step(actions)
        states = states_of(observations, self.num_envs, self._tops)
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
        taken = _actions(self.action_space, actions, self.num_envs)
        answer = self._payment.turn(stepped.tolist(), taken[stepped], reached[stepped], begins)
        rewards[stepped] = answer.rewards
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
        """Close the program, then the environments."""
        self._payment.close()
        super().close(**kwargs)

    def _reached(self, states: NDArray[Any], ended: NDArray[np.int64], infos: dict[str, Any]) -> NDArray[Any]:
        """The states that this step reached. For episodes that ended, these are the last states before the reset."""
        found = infos.get(FINAL)
        if found is None or any(found[slot] is None for slot in ended):
            raise InputError(
                f"an episode ended without infos[{FINAL!r}]; expected the last observation there, as "
                "autoreset_mode=SAME_STEP says"
            )
        reached = np.array(states)
        for slot in ended:
            reached[slot] = state_of(found[slot], self._tops)
        return reached

    def _begins(self, slots: NDArray[np.int64], states: NDArray[Any], infos: dict[str, Any]) -> list[Begin]:
        """The episodes that begin in the sub-environments with these indices (`slots`)."""
        if not len(slots):
            return []
        nobody = np.zeros(self.num_envs, bool)
        said, told = infos.get(INSTRUCTION, nobody), infos.get(f"_{INSTRUCTION}", nobody)
        named = {slot: said[slot] for slot in slots.tolist() if told[slot] and said[slot] is not None}
        missions = () if len(named) == len(slots) else self._mission()
        return [
            Begin(slot, states[slot], str(named.get(slot, missions[slot] if missions else "") or ""))
            for slot in slots.tolist()
        ]

    def _mission(self) -> tuple[Any, ...]:
        """The `mission` of each environment; () if one environment has none, because `get_attr` would then fail."""
        inner: Any = self.env.unwrapped
        if self._missions is None:
            self._missions = hasattr(inner, "call") and all(inner.call("has_wrapper_attr", "mission"))
        return tuple(inner.get_attr("mission")) if self._missions else ()


def _actions(space: Any, actions: Any, count: int) -> NDArray[Any]:
    """The actions of all sub-environments, one row for each.

    Gymnasium batches actions of `Dict` and `Tuple` spaces by part, and not by sub-environment.
    """
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple) and isinstance(actions, dict | tuple):
        return _rows(list(itertools.islice(iterate(space, actions), count)))
    return np.asarray(actions)


def _rows(actions: Sequence[Any]) -> NDArray[Any]:
    """Actions as one array with one row for each. The array is of dtype object if they are not all of one shape."""
    try:
        return np.array(actions)
    except ValueError:  # arrays of different shapes in an action of a `Tuple` space
        found = np.empty(len(actions), object)
        for row, action in enumerate(actions):
            found[row] = action
        return found


def vector_wrapped(
    venv: Any, runner: RewardRunner, scale: Scale, tops: Tops = frozenset()
) -> RewardVecEnv | RewardVectorEnv:
    """Wrap a vector environment of Gymnasium or Stable-Baselines3, so that it returns the program's rewards.

    Raises:
        InputError: `venv` is neither a `VectorEnv` of Gymnasium nor a `VecEnv` of Stable-Baselines3.
    """
    if isinstance(venv, VectorEnv):
        return RewardVectorEnv(venv, runner, scale, tops)
    from stable_baselines3.common.vec_env import VecEnv

    from grace_irl.rewards.sb3 import RewardVecEnv

    require_plain(venv)
    if not isinstance(venv, VecEnv):
        said = f"wrap_vec of {type(venv).__name__}; expected a VectorEnv of Gymnasium or a VecEnv of Stable-Baselines3"
        raise InputError(f"{said}: wrap takes single environments")
    return RewardVecEnv(venv, runner, scale, tops)
