"""A program pays the same in this process, in a sandbox session and offline, wherever it keeps what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

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
