"""Observations hold the state and the instruction."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("minigrid")

from grace_irl.demos.trajectory import Metadata, Trajectory
from grace_irl.errors import InputError
from grace_irl.rl.environments import FunctionView, make
from grace_irl.rl.observed import observed
from grace_irl.rl.observers import (
    MAX_WORDS,
    GridObserver,
    VectorObserver,
    observe_trajectory,
    observer_for,
    word_numbers,
)


def test_words_of_babyai_have_numbers_of_their_own() -> None:
    from minigrid.core.constants import COLOR_NAMES, OBJECT_TO_IDX

    words = {*COLOR_NAMES, *OBJECT_TO_IDX, "room", "left", "right", "front", "behind", "in", "of", "on", "you", "your"}
    words |= {
        "go",
        "to",
        "the",
        "a",
        "open",
        "pick",
        "up",
        "put",
        "next",
        "then",
        "and",
        "after",
        "matching",
        "between",
    }
    numbers = [number for word in sorted(words) for number in word_numbers(word)]
    assert len(set(numbers)) == len(words) == len(numbers)
    assert min(numbers) > 0
    assert word_numbers("Go to the RED ball!") == word_numbers("go to the red ball")
    assert word_numbers("") == []
    assert len(word_numbers("a " * 100)) == MAX_WORDS


def test_an_observation_of_a_grid_holds_it_and_its_instruction() -> None:
    environment = observed(lambda: make("BabyAI-GoToLocal-v0"))
    observation, info = environment.reset(seed=3)
    assert environment.observation_space.contains(observation)
    for action in (0, 2, 1, 2):
        np.testing.assert_array_equal(observation[: environment.state.size], environment.state.ravel())
        words = observation[environment.state.size :]
        assert words[words > 0].tolist() == word_numbers(info["instruction"])
        observation, *_ = environment.step(action)
    assert info["instruction"] == environment.unwrapped.mission  # type: ignore[attr-defined]


def test_an_episode_is_a_success_at_its_goal_only() -> None:
    from grace_irl.rl.policies import BotPolicy

    environment = observed(lambda: make("BabyAI-GoToObj-v0"))
    bot = BotPolicy("BabyAI-GoToObj-v0")
    environment.reset(seed=0)
    bot.reset(environment.env, 0)
    terminated, info = False, {}
    while not terminated:
        assert not info.get("is_success")
        _, _, terminated, _, info = environment.step(bot.act(environment.state)[0])
    assert info["is_success"] is True


def test_vectors_are_observed_as_they_are() -> None:
    pytest.importorskip("mujoco")
    environment = observed(lambda: make("Hopper-v5"))
    observation, _ = environment.reset(seed=0)
    np.testing.assert_array_equal(observation, environment.state)
    assert environment.observer == VectorObserver(11)
    assert environment.observation_space.contains(observation)
    assert "is_success" not in environment.step(environment.action_space.sample())[4]


def test_trajectories_are_observed_as_the_environment_is() -> None:
    states = np.random.default_rng(0).integers(0, 5, (4, 6, 7, 3), dtype=np.uint8)
    observer = GridObserver((6, 7, 3))
    found = observe_trajectory(observer, Trajectory(states, extra_info="go to the ball"))
    assert found.shape == (4, *observer.space.shape)
    np.testing.assert_array_equal(found[:, : observer.cells].reshape(states.shape), states)


def test_images_are_brought_to_the_size_that_the_network_reads() -> None:
    rng = np.random.default_rng(0)
    small, usual, large = (
        rng.integers(0, 256, (*sides, 3), dtype=np.uint8) for sides in ((10, 7), (40, 90), (200, 301))
    )
    view = FunctionView(Metadata("image"))
    found = [observer_for(view, image).observe(image, "") for image in (small, usual, large)]
    assert [each.shape for each in found] == [(3, 60, 42), (3, 40, 90), (3, 100, 150)]
    np.testing.assert_array_equal(found[0][:, 3::6, 3::6], np.moveaxis(small, -1, 0))
    np.testing.assert_array_equal(found[1], np.moveaxis(usual, -1, 0))
    assert found[2][1, 2, 3] == large[4:6, 6:8, 1].mean() // 1
    for image, each in zip((small, usual, large), found, strict=True):
        assert observer_for(view, image).space.contains(each)


def test_other_states_are_refused() -> None:
    _, view = make("BabyAI-GoToObj-v0")
    with pytest.raises(InputError, match=r"shape \(2, 2\); expected vectors"):
        observer_for(view, np.zeros((2, 2)))
