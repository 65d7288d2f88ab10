"""The fixed-horizon form: of environments and of experts' episodes alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from grace_irl.errors import InputError
from grace_irl.rl.actions import value_counts
from grace_irl.rl.horizon import FixedHorizon, absorbed, absorbing, alive

SHAPES: list[tuple[int, ...]] = [(2,), (3, 3, 3)]


class Counter(gymnasium.Env[Any, Any]):
    """Observes the number of its steps, from 1 on, in every component; terminates or is truncated after `length`."""

    def __init__(self, length: int, shape: tuple[int, ...] = (2,), *, truncates: bool = False) -> None:
        self.observation_space = Box(1, 100, shape, np.float32)
        self.action_space = Discrete(2)
        self.length, self.truncates = length, truncates

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.count = 1
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        assert self.count <= self.length, "stepped after its end"
        self.count += 1
        over = self.count > self.length
        return self._seen(), 1.0, over and not self.truncates, over and self.truncates, {"is_success": over}

    def _seen(self) -> Any:
        return np.full(self.observation_space.shape, self.count, np.float32)


def lived(environment: Any) -> tuple[Any, list[float], list[tuple[bool, bool]], list[dict[str, Any]]]:
    """Observations, rewards, ends and infos of one episode."""
    observation, _ = environment.reset()
    observations, rewards, ends, infos = [observation], [], [(False, False)], []
    while ends[-1] == (False, False):
        observation, reward, terminated, truncated, info = environment.step(0)
        observations.append(observation)
        rewards.append(reward)
        ends.append((terminated, truncated))
        infos.append(info)
    return np.stack(observations), rewards, ends[1:], infos


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("length", [1, 3, 6, 9])
def test_every_episode_has_the_same_length_and_the_same_true_return(shape: tuple[int, ...], length: int) -> None:
    environment = FixedHorizon(Counter(length, shape), 6)
    for _ in range(2):  # a second episode starts afresh
        observations, rewards, ends, infos = lived(environment)
        assert ends == [(False, False)] * 5 + [(False, True)]
        assert sum(rewards) == min(length, 6)
        assert [info["absorbed"] for info in infos] == [step >= length for step in range(6)]
        assert all(environment.observation_space.contains(each) for each in observations)
        assert sum(bool(info.get("is_success")) for info in infos) == (length <= 6)


def test_a_vector_says_that_it_is_absorbed_and_an_array_is_0() -> None:
    vectors, *_ = lived(FixedHorizon(Counter(2, (2,)), 5))
    np.testing.assert_array_equal(vectors, [[1, 1, 0], [2, 2, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
    grids, *_ = lived(FixedHorizon(Counter(2, (3, 3, 3)), 5))
    np.testing.assert_array_equal(grids[:, 0, 0, 0], [1, 2, 0, 0, 0, 0])
    assert not grids[2:].any()


@pytest.mark.parametrize("shape", SHAPES)
@given(length=st.integers(1, 8), horizon=st.integers(1, 8))
def test_an_experts_episode_becomes_what_the_environment_would_have_shown(
    shape: tuple[int, ...], length: int, horizon: int
) -> None:
    environment = FixedHorizon(Counter(length, shape), horizon)
    shown, rewards, _, _ = lived(environment)
    raw = np.stack([np.full(shape, 1 + step, np.float32) for step in range(length + 1)])
    actions = np.zeros(length, np.int64)
    observations, taken = absorbed(raw, actions, horizon, True, Discrete(2), np.random.default_rng(0))
    np.testing.assert_array_equal(observations, shown)
    assert observations.dtype == shown.dtype
    assert len(taken) == len(rewards) == horizon
    np.testing.assert_array_equal(taken[:length], actions[:horizon])


def test_an_episode_that_was_cut_off_is_not_absorbed() -> None:
    raw, actions = np.ones((4, 2)), np.zeros((3, 1))
    observations, taken = absorbed(raw, actions, 10, False, Box(-1, 1, (1,)), np.random.default_rng(0))
    np.testing.assert_array_equal(observations, np.hstack([raw, np.zeros((4, 1))]))
    np.testing.assert_array_equal(taken, actions)


def test_actions_in_the_absorbing_state_say_nothing() -> None:
    """Drawn from the whole space, for all experts of a set from one generator."""
    generator = np.random.default_rng(0)
    start = Discrete(3, start=5)
    _, taken = absorbed(np.ones((2, 2)), np.full(1, 5), 200, True, start, generator)
    assert set(taken[1:]) == {5, 6, 7}
    for several in (MultiDiscrete([3, 2], start=[1, 0]), MultiBinary(3)):
        _, pressed = absorbed(np.ones((2, 2)), np.ones((1, *several.shape), np.int64), 200, True, several, generator)
        assert all(several.contains(each) for each in pressed[1:])
        assert (np.ptp(pressed[1:], axis=0) == value_counts(several) - 1).all()
    box = Box(np.array([-2.0, 0.0]), np.array([-1.0, 4.0]), dtype=np.float64)
    _, drawn = absorbed(np.ones((2, 2)), np.zeros((1, 2)), 200, True, box, generator)
    assert all(box.contains(each) for each in drawn[1:])
    assert np.ptp(drawn[1:], axis=0) == pytest.approx([1, 4], rel=0.1)


def test_observations_of_both_states_differ() -> None:
    space = FixedHorizon(Counter(1), 3).observation_space
    zero = alive(np.zeros(2, np.float32))
    assert not np.array_equal(zero, absorbing(space))
    assert zero.dtype == absorbing(space).dtype == np.float32


def test_a_time_limit_below_the_horizon_is_refused_when_it_strikes() -> None:
    environment = FixedHorizon(Counter(3, truncates=True), 5)
    with pytest.raises(InputError, match=r"fixed horizon 5: .* after 3 steps; expected a horizon of at most 3"):
        lived(environment)
    lived(FixedHorizon(Counter(3, truncates=True), 3))


def test_what_has_no_such_form_is_refused() -> None:
    with pytest.raises(InputError, match="fixed horizon 0; expected at least 1 step"):
        FixedHorizon(Counter(3), 0)
    other = Counter(3)
    other.observation_space = Discrete(4)
    with pytest.raises(InputError, match=r"observations of Discrete\(4\); expected a Box"):
        FixedHorizon(other, 5)


def test_a_horizon_above_the_time_limit_is_refused_at_once() -> None:
    limited = gymnasium.make("CartPole-v1", max_episode_steps=30)
    said = "fixed horizon 31: the environment's time limit is 30 steps; expected a horizon of at most 30"
    with pytest.raises(InputError, match=said):
        FixedHorizon(limited, 31)
    FixedHorizon(limited, 30).close()
