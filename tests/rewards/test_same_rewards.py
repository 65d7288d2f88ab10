"""A program pays the same in this process, in a sandbox session and offline, wherever it keeps what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
from stable_baselines3.common.vec_env import DummyVecEnv

import grace_irl
from grace_irl.demos.trajectory import Trajectory
from grace_irl.rewards.file import RewardFile
from tests.fakes.keeping import KEEPING
from tests.rewards.recorders import Numbered

LENGTHS = ((3, 1, 5), (2, 2, 2), (4, 1, 1))
STEPS = 9
PROGRAMS = (
    *("a global list", "a class attribute", "a closure", "random as the module begins", "random and a global"),
    *("random that a program seeds itself", "random where it is asked for words, too"),
)
"""A few places to keep something; `tests/rewards/test_file.py` tries them all."""


class Noted:
    """Episodes as a learner sees them go by."""

    def __init__(self, first: Any, word: str) -> None:
        self.states, self.word, self.paid = [np.array(first)], word, list[float]()

    def add(self, state: Any, paid: float) -> None:
        self.states.append(np.array(state))
        self.paid.append(float(paid))


def alone(reward: RewardFile) -> list[Noted]:
    """Episodes of one environment, the last of which is cut off."""
    environment, episodes = reward.wrap(Numbered(0, LENGTHS[0])), []
    for _ in range(4):
        observation, info = environment.reset()
        episodes.append(Noted(observation, info["instruction"]))
        over = False
        while not over and len(episodes[-1].paid) < 4:
            observation, paid, terminated, truncated, _ = environment.step(0)
            episodes[-1].add(observation, paid)
            over = terminated or truncated
    environment.close()
    return episodes


def side_by_side(reward: RewardFile) -> list[Noted]:
    """Episodes of three environments at once."""
    makes: list[Callable[[], Any]] = [
        lambda number=number, lengths=lengths: Numbered(number, lengths) for number, lengths in enumerate(LENGTHS)
    ]
    venv = reward.wrap_vec(DummyVecEnv(makes))
    running = [Noted(state, "") for state in venv.reset()]
    episodes = [*running]
    count = [0, 0, 0]
    for _ in range(STEPS):
        observations, paid, dones, infos = venv.step(np.zeros(3, np.int64))
        for at, episode in enumerate(running):
            episode.add(infos[at]["terminal_observation"] if dones[at] else observations[at], paid[at])
            if dones[at]:
                count[at] += 1
                running[at] = Noted(observations[at], "x" * (count[at] % 2))
                episodes.append(running[at])
    venv.close()
    return episodes


def batches(reward: RewardFile) -> list[Noted]:
    """Episodes of two rows of a batch, one of which ends in between."""
    function = reward.imitation_reward("go")
    rng = np.random.default_rng(0)
    running = [Noted(state, "go") for state in rng.normal(size=(2, 2))]
    episodes = [*running]
    for step in range(6):
        after, done = rng.normal(size=(2, 2)), np.array([step == 2, False])
        found = function(np.stack([episode.states[-1] for episode in running]), np.zeros(2), after, done)
        for at, episode in enumerate(running):
            episode.add(after[at], found[at])
        if done[0]:
            running[0] = Noted(rng.normal(size=2), "go")
            episodes.append(running[0])
    function.close()
    return episodes


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_everywhere(tmp_path: Path, name: str) -> None:
    path = tmp_path / "reward.py"
    path.write_text(KEEPING[name])
    trusted, sandboxed = (grace_irl.load_reward(path, trust=trust) for trust in (True, False))
    kinds = (alone, side_by_side, batches)
    paid = [(way(trusted), way(sandboxed)) for way in kinds]
    trajectories = [Trajectory(np.stack(each.states), extra_info=each.word) for found, _ in paid for each in found]
    offline = iter(sandboxed.rewards(trajectories, workers=1))
    for way, (here, there) in zip(kinds, paid, strict=True):
        single = np.float64 if way is alone else np.float32
        for one, other in zip(here, there, strict=True):
            expected = next(offline)[1:].astype(single).tolist()
            assert (one.paid, other.paid) == (expected, expected), way.__name__


class Asked(gymnasium.Env[Any, Any]):
    """An environment that gets its mission at its reset, or whose `info` names an instruction, or neither."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, mission: str | None, info: dict[str, Any]) -> None:
        self._words, self._info = mission, info

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        if self._words is not None:
            self.mission = self._words
        return np.zeros(2), dict(self._info)

    def step(self, action: Any) -> Any:
        return np.zeros(2), 0.0, False, False, {}


@pytest.mark.parametrize(
    ("mission", "info", "paid"),
    [("red ball", {}, 8.0), (None, {"instruction": None}, 0.0), (None, {}, 0.0), ("", {}, 0.0)],
)
def test_an_instruction_is_the_same_in_every_wrapper(
    mission: str | None, info: dict[str, Any], paid: float, tmp_path: Path
) -> None:
    path = tmp_path / "reward.py"
    path.write_text(
        "class Reward:\n    def __init__(self, extra_info=None):\n        self.said = extra_info or ''\n\n"
        "    def reward_fn(self, state):\n        return float(len(self.said))\n"
    )
    reward = grace_irl.load_reward(path, trust=True)
    single = reward.wrap(Asked(mission, info))
    single.reset(seed=0)
    assert single.step(0)[1] == paid
    vector = reward.wrap_vec(gymnasium.vector.SyncVectorEnv([lambda: Asked(mission, info)] * 2))
    vector.reset(seed=0)
    assert vector.step(np.zeros(2, np.int64))[1].tolist() == [paid] * 2
    dummy = reward.wrap_vec(DummyVecEnv([lambda: Asked(mission, info)] * 2))
    dummy.reset()
    assert dummy.step(np.zeros(2, np.int64))[1].tolist() == [paid] * 2
