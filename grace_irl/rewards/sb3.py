"""A wrapper of Stable-Baselines3 vector environments that returns a recovered reward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize, VecTransposeImage

from grace_irl.errors import InputError
from grace_irl.rewards.hindsight import METHOD, refuse
from grace_irl.rewards.runner import RewardRunner
from grace_irl.rewards.scale import Payment, Scale
from grace_irl.rewards.view import INSTRUCTION, SHOWN, Tops, state_of, states_of
from grace_irl.sandbox.session import Begin


class Settled(NamedTuple):
    """The rewards of several steps of all sub-environments.

    Attributes:
        rewards: rewards of n steps, `(n, sub-environments)` float32.
        terms: for each reward, a dict of its components by name; {} if it has none.
    """

    rewards: NDArray[np.float32]
    terms: list[dict[str, float]]


class RewardVecEnv(VecEnvWrapper):
    """A wrapper that returns the rewards of a program instead of those of the wrapped vector environment.

    Every sub-environment behaves as in `grace_irl.rewards.gymnasium.RewardEnv`. In each step, the program receives all
    new states in one message.

    The step that ends an episode also resets the sub-environment. The `Reward` object of the old episode first rewards
    the last state (`info["terminal_observation"]`). Then a new `Reward` object starts from the new observation. Entries
    of `info` such as `"TimeLimit.truncated"` stay unchanged.

    A learner that needs rewards only at the end of a rollout may call `defer`. The program then computes the rewards
    while the environments go on. This saves time if the program runs in the sandbox.

    The observations of this package's environments are for the policy, and are not states. These environments put the
    state into `info`, under the key `rewards.view.SHOWN`. In these environments, a step whose `info` lacks this key has
    reward 0.

    Args:
        venv: the vector environment to wrap. Its observations are states, or dicts with the states under "state".
            The instruction of an episode is `info["instruction"]` of `reset`, or else the attribute `mission` of the
            sub-environment.
        runner: the runner of the program. No other object may use this runner, and `close` closes the runner, too.
        scale: conversion of the program's reward to the returned reward.
        tops: names of the parts that the reward reads (`rewards.view.Tops`). An observation with all of them is the
            state itself, even if it has an entry "state".

    Raises:
        InputError: an inner wrapper normalises observations or transposes images. Programs expect observations as the
            environment returns them.
    """

    def __init__(self, venv: VecEnv, runner: RewardRunner, scale: Scale = Scale(), tops: Tops = frozenset()) -> None:
        inner: Any = venv
        while isinstance(inner, VecEnvWrapper):
            if isinstance(inner, VecNormalize) and inner.norm_obs:
                raise InputError(
                    "VecNormalize under the recovered reward; expected observations as the environment gives them: "
                    "wrap with the reward first, then normalise"
                )
            if isinstance(inner, VecTransposeImage):
                raise InputError(
                    "VecTransposeImage under the recovered reward; expected images as the environment gives them: wrap "
                    "with the reward first (policies of images put the channels in front by themselves)"
                )
            inner = inner.venv
        super().__init__(venv)
        self._payment, self._tops = Payment(runner, scale), tops
        self._actions: NDArray[Any] | None = None
        self._has_mission = False
        self._shown = False
        self._deferred = False

    def defer(self) -> None:
        """Make all later steps return the reward 0, and keep the program's rewards for `settle`."""
        self._deferred = True

    def settle(self) -> Settled:
        """The rewards of all deferred steps since the last call of `settle` or `reset`, in order.

        Raises:
            GraceError: the program fails or returns a value that is not a finite number.
        """
        turns = self._payment.settle()
        rewards = np.zeros((len(turns), self.num_envs), np.float32)
        for row, (slots, answer) in zip(rewards, turns, strict=True):
            row[list(slots)] = answer.rewards
        return Settled(rewards, [terms for _, answer in turns for terms in answer.terms])

    def reset(self) -> Any:
        """Start all episodes, each with a new `Reward` object."""
        observations = self.venv.reset()
        self._shown = SHOWN in self.venv.unwrapped.reset_infos[0]
        self._has_mission = bool(self.venv.has_attr("mission"))  # some environments set `mission` at their reset
        self._payment.settle()
        self._payment.turn((), None, (), self._begins(range(self.num_envs), observations))
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Store the actions, because some programs use them, and start the step."""
        self._actions = np.asarray(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One step of all environments, with the program's rewards."""
        observations, originals, dones, infos = self.venv.step_wait()
        over: list[int] = np.flatnonzero(dones).tolist()
        slots, reached = self._reached(observations, over, infos)
        begins = self._begins(over, observations)
        paid = np.zeros(self.num_envs, np.float32)
        actions = None if self._actions is None else self._actions[slots]
        if self._deferred:
            self._payment.post(slots, actions, reached, begins)
        elif slots or begins:
            answer = self._payment.turn(slots, actions, reached, begins)
            paid[slots] = answer.rewards
            for slot, terms in zip(slots, answer.terms, strict=False):
                if terms:
                    infos[slot]["reward_terms"] = terms
        for info, original in zip(infos, originals, strict=True):
            info["original_reward"] = float(original)
        return observations, paid, dones, infos

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **more: Any) -> list[Any]:
        """Call a method of the sub-environments.

        Raises:
            InputError: the method is `rewards.hindsight.METHOD`.
        """
        if method_name == METHOD:
            refuse()
        return self.venv.env_method(method_name, *arguments, indices=indices, **more)

    def close(self) -> None:
        """Close the program, then the environments."""
        self._payment.close()
        super().close()

    def _reached(
        self, observations: Any, over: list[int], infos: list[dict[str, Any]]
    ) -> tuple[list[int], list[NDArray[Any]] | NDArray[Any]]:
        """The indices (`slots`) of sub-environments with a reward for this step, and their next states."""
        if self._shown:
            slots = [slot for slot, info in enumerate(infos) if SHOWN in info]
            return slots, [infos[slot][SHOWN] for slot in slots]
        states = states_of(observations, self.num_envs, self._tops)
        if over:
            states = np.array(states)
            for slot in over:
                states[slot] = state_of(infos[slot]["terminal_observation"], self._tops)
        return list(range(self.num_envs)), states

    def _begins(self, slots: Iterable[int], observations: Any) -> list[Begin]:
        """The episodes that begin in the sub-environments with these indices (`slots`)."""
        told = self.venv.unwrapped.reset_infos
        states = None if self._shown else states_of(observations, self.num_envs, self._tops)
        return [
            Begin(slot, told[slot][SHOWN] if states is None else states[slot], self._instruction(slot, told[slot]))
            for slot in slots
        ]

    def _instruction(self, slot: int, told: dict[str, Any]) -> str:
        instruction = told.get(INSTRUCTION)
        if instruction is None:
            instruction = self.venv.get_attr("mission", slot)[0] if self._has_mission else ""
        return str(instruction or "")
