"""States, instructions and successes of an environment, as policies and rewards see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import gymnasium
from gymnasium.spaces import Box, Discrete

import grace_irl
from grace_irl.demos.trajectory import Metadata
from grace_irl.rewards.view import INSTRUCTION
from grace_irl.rl.collect import rollout
from grace_irl.rl.environments import FunctionView, made_by
from grace_irl.rl.evaluation import EpisodeSums
from grace_irl.rl.horizon import FixedHorizon
from grace_irl.rl.learning import ProgramPay, learning_venv
from grace_irl.rl.observed import observed
from grace_irl.rl.policies import RandomPolicy

PAYS_THE_THIRD = """
class Reward:
    def __init__(self, extra_info=None):
        self.text = extra_info

    def reward_fn(self, state):
        return float(state[0] == 3 and self.text in ("", "three"))
"""


class Counting(gymnasium.Env[Any, Any]):
    """Three steps, the number of which is the state. The infos are those of subclasses."""

    observation_space = Box(-9.0, 9.0, (1,), np.float64)
    action_space = Discrete(2)

    def begins(self) -> dict[str, Any]:
        return {}

    def goes_on(self) -> dict[str, Any]:
        return {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1), self.begins()

    def step(self, action: Any) -> Any:
        self.count += 1
        return np.full(1, float(self.count)), 1.0, self.count == 3, False, self.goes_on()


class Telling(Counting):
    def begins(self) -> dict[str, Any]:
        return {INSTRUCTION: "three"}


class WithMission(Counting):
    mission = "three"


class WithoutMission(Counting):
    mission = None


class OneInfo(Counting):
    """Returns one and the same dict from all calls."""

    def __init__(self) -> None:
        self.info: dict[str, Any] = {}

    def begins(self) -> dict[str, Any]:
        return self.info

    def goes_on(self) -> dict[str, Any]:
        return self.info


class Silent(WithMission):
    """Says that an episode has no instruction, in spite of the mission."""

    def begins(self) -> dict[str, Any]:
        return {INSTRUCTION: ""}


TEXTS = [(Silent, ""), (Counting, ""), (Telling, "three"), (WithMission, "three"), (WithoutMission, ""), (OneInfo, "")]


@pytest.mark.parametrize(("make", "text"), TEXTS)
def test_instructions_are_the_same_in_training_collecting_and_wrapped_environments(
    make: Callable[[], Any], text: str, tmp_path: Path
) -> None:
    seen = observed(make)
    _, info = seen.reset(seed=0)
    assert (seen.instruction, info[INSTRUCTION]) == (text, text)
    environment, view = made_by(make)
    episode, _ = rollout(environment, view, RandomPolicy(), 0)
    assert episode.extra_info == text
    # Wrapped environments and training pay the terminal state, also if all infos are one dict.
    path = tmp_path / "reward.py"
    path.write_text(PAYS_THE_THIRD)
    reward = grace_irl.load_reward(path, trust=True)
    wrapped = reward.wrap(make())
    wrapped.reset()
    assert [wrapped.step(0)[1] for _ in range(3)] == [0.0, 0.0, 1.0]
    with learning_venv(lambda: observed(make), 2, 0, ProgramPay(reward)) as venv:
        venv.reset()
        paid = [venv.step(np.zeros(2, np.int64))[1].tolist() for _ in range(6)]
    assert paid == [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]] * 2


def test_the_own_dict_of_an_environment_stays_as_it_is() -> None:
    environment = OneInfo()
    seen = observed(lambda: environment)
    seen.reset(seed=0)
    seen.step(0)
    assert environment.info == {}


class Succeeding(Counting):
    def goes_on(self) -> dict[str, Any]:
        return {"success": self.count == 2}


def test_the_own_word_of_an_environment_counts_before_an_end() -> None:
    view = FunctionView(Metadata("vector", (), "counting"), reached=lambda ended, _: ended)
    environment = FixedHorizon(observed(lambda: (Succeeding(), view)), 2)
    environment.reset(seed=0)
    sums = EpisodeSums()
    for _ in range(2):
        sums.add(0.0, environment.step(0)[4])
    assert sums.success is True


@pytest.mark.parametrize(("horizon", "success"), [(2, False), (3, True), (5, True)])
def test_an_episode_that_a_horizon_ends_before_its_goal_is_no_success(horizon: int, success: bool) -> None:
    view = FunctionView(Metadata("vector", (), "counting"), reached=lambda ended, _: ended)
    environment = FixedHorizon(observed(lambda: (Counting(), view)), horizon)
    environment.reset(seed=0)
    told = [environment.step(0)[4].get("is_success") for _ in range(horizon)]
    assert [each for each in told if each is not None][-1] is success
