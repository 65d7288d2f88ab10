"""An SB3 vector environment that pays a recovered reward."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize, VecTransposeImage

from grace_irl.errors import InputError
from grace_irl.rewards.runner import RewardRunner
from grace_irl.rewards.scale import Payment, Scale
from grace_irl.rewards.view import INSTRUCTION, SHOWN, state_of, states_of
from grace_irl.sandbox.session import Begin


class RewardVecEnv(VecEnvWrapper):
    """Pays the program's reward in place of the environments', one message to the program per vector step.

    As `RewardEnv`, for each of its environments. A vector environment starts a finished sub-environment again within
    the same step: the state that the old episode reached (`info["terminal_observation"]`) is rewarded by the old
    episode's object, and only then does the new observation start a new one. `info["TimeLimit.truncated"]` and
    everything else stays as it is.

    Our own environments put the state into the information of each step (`rewards.view.SHOWN`), because their
    observations are a policy's. A step without it pays 0.

    Args:
        venv: what is wrapped; its observations are states, or dicts that hold them under "state". Instructions come
            from `info["instruction"]` of a sub-environment's `reset`, else from a `mission` of it.
        runner: runs the program; this wrapper's alone, and closed with it.
        scale: the form of the reward.

    Raises:
        InputError: observations are normalised underneath, or images turned: programs expect them as the environment
            gives them.
    """

    def __init__(self, venv: VecEnv, runner: RewardRunner, scale: Scale = Scale()) -> None:
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
        self._payment = Payment(runner, scale)
        self._actions: NDArray[Any] | None = None
        self._has_mission = bool(venv.has_attr("mission"))
        self._shown = False

    def reset(self) -> Any:
        """New episodes everywhere, and a new `Reward` for each."""
        observations = self.venv.reset()
        self._shown = SHOWN in self.venv.unwrapped.reset_infos[0]
        self._payment.turn((), None, (), self._begins(range(self.num_envs), observations))
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Notes the actions, which some programs reward."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One step everywhere, paid by the program."""
        observations, originals, dones, infos = self.venv.step_wait()
        over: list[int] = np.flatnonzero(dones).tolist()
        slots, reached = self._reached(observations, over, infos)
        begins = self._begins(over, observations)
        paid = np.zeros(self.num_envs, np.float32)
        if slots or begins:
            actions = None if self._actions is None else self._actions[slots]
            answer = self._payment.turn(slots, actions, reached, begins)
            paid[slots] = answer.rewards
            for slot, terms in zip(slots, answer.terms, strict=False):
                if terms:
                    infos[slot]["reward_terms"] = terms
        for info, original in zip(infos, originals, strict=True):
            info["original_reward"] = float(original)
        return observations, paid, dones, infos

    def close(self) -> None:
        """Ends the program, then the environments."""
        self._payment.close()
        super().close()

    def _reached(
        self, observations: Any, over: list[int], infos: list[dict[str, Any]]
    ) -> tuple[list[int], list[NDArray[Any]] | NDArray[Any]]:
        """The slots that pay, and the states that their episodes reached."""
        if self._shown:
            slots = [slot for slot, info in enumerate(infos) if SHOWN in info]
            return slots, [infos[slot][SHOWN] for slot in slots]
        states = states_of(observations, self.num_envs)
        if over:
            states = np.array(states)
            for slot in over:
                states[slot] = state_of(infos[slot]["terminal_observation"])
        return list(range(self.num_envs)), states

    def _begins(self, slots: Iterable[int], observations: Any) -> list[Begin]:
        """The episodes that begin in these slots."""
        told = self.venv.unwrapped.reset_infos
        states = None if self._shown else states_of(observations, self.num_envs)
        return [
            Begin(slot, told[slot][SHOWN] if states is None else states[slot], self._instruction(slot, told[slot]))
            for slot in slots
        ]

    def _instruction(self, slot: int, told: dict[str, Any]) -> str:
        instruction = told.get(INSTRUCTION)
        if instruction is None:
            instruction = self.venv.get_attr("mission", slot)[0] if self._has_mission else ""
        return str(instruction)
