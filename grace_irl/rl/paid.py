"""Vector environments of a `Problem` that pay a recovered reward, in the fixed-horizon form, too."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from grace_irl.rewards.gymnasium import INSTRUCTION, STATE
from grace_irl.rewards.scale import Scale
from grace_irl.rewards.scorer import Begin, Scorer
from grace_irl.rl.horizon import ABSORBED
from grace_irl.rl.method import Paid, TransitionReward


class StateInfo(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells, in `info["state"]`, the state that programs see.

    The observation does not always hold it: in the fixed-horizon form a terminal state is observed as the absorbing
    one.

    Args:
        environment: one of a `Problem`; an `Observed` is underneath.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, STATE: self.env.get_wrapper_attr("state")}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {**info, STATE: self.env.get_wrapper_attr("state")}


class ProgramVecEnv(VecEnvWrapper):
    """Pays a program's reward in place of the environments'; 0 in the absorbing state, which no program saw.

    Each episode has a `Reward` object of its own, as in `RewardVecEnv`.

    Args:
        venv: of environments that tell their states (`StateInfo`), which start again by themselves.
        scorer: runs the program; this wrapper's alone, and closed with it.
        scale: the form of the reward.
    """

    def __init__(self, venv: VecEnv, scorer: Scorer, scale: Scale) -> None:
        super().__init__(venv)
        self._scorer, self._scale = scale.over(scorer), scale
        self._actions: NDArray[Any] | None = None

    def reset(self) -> Any:
        """New episodes everywhere."""
        observations = self.venv.reset()
        self._scorer.turn((), None, (), [self._begin(slot) for slot in range(self.num_envs)])
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Notes the actions, which some programs reward."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One step everywhere, paid by the program."""
        observations, _, dones, infos = self.venv.step_wait()
        slots = [slot for slot, info in enumerate(infos) if not info.get(ABSORBED, False)]
        begins = [self._begin(int(slot)) for slot in np.flatnonzero(dones)]
        paid = np.zeros(self.num_envs, np.float32)
        if slots or begins:
            actions = None if self._actions is None else self._actions[slots]
            answer = self._scorer.turn(slots, actions, [infos[slot][STATE] for slot in slots], begins)
            paid[slots] = self._scale(answer.rewards)
        return observations, paid, dones, infos

    def close(self) -> None:
        """Ends the program, then the environments."""
        self._scorer.close()
        super().close()

    def _begin(self, slot: int) -> Begin:
        info = self.venv.unwrapped.reset_infos[slot]
        return Begin(slot, info[STATE], str(info.get(INSTRUCTION, "")))


class NetVecEnv(VecEnvWrapper):
    """Pays a reward of transitions.

    Args:
        venv: environments that start again by themselves.
        reward: of transitions between observations.
        form: in which it is paid.
    """

    def __init__(self, venv: VecEnv, reward: TransitionReward, form: Paid = "reward") -> None:
        super().__init__(venv)
        self._reward, self._form = reward, form
        self._statistics = RunningMeanStd(shape=())

    def reset(self) -> Any:
        """New episodes everywhere."""
        self._before: Any = self.venv.reset()
        return self._before

    def step_async(self, actions: NDArray[Any]) -> None:
        """Notes the actions, which the reward is asked about."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """One step everywhere, paid by the reward; the end of an episode counts as it was reached."""
        observations, _, dones, infos = self.venv.step_wait()
        reached = np.array(observations)
        for slot in np.flatnonzero(dones):
            reached[slot] = infos[slot]["terminal_observation"]
        values = np.asarray(self._reward(self._before, self._actions, reached, dones), np.float64)
        if self._form == "positive":
            values = np.logaddexp(0.0, values)
        elif self._form == "centred":
            self._statistics.update(values)
            values = (values - self._statistics.mean) / np.sqrt(self._statistics.var + 1e-8)
        self._before = observations
        return observations, values.astype(np.float32), dones, infos
