"""Both runners of rewards, by their suite, and that they agree."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError, InputError
from grace_irl.programs.parts import Reads
from grace_irl.rewards import InProcessRunner, RewardRunner, SandboxedRunner
from grace_irl.sandbox.protocol import Limits
from grace_irl.sandbox.session import Begin
from grace_irl.testing.rewards import MOVES, PROGRAMS, RewardRunnerSuite, episodes


class TestInProcessRunner(RewardRunnerSuite):
    def make(self, source: str, *, terms: bool = False) -> RewardRunner:
        return InProcessRunner(source, "reward.py", terms=terms)


class TestSandboxedRunner(RewardRunnerSuite):
    def make(self, source: str, *, terms: bool = False) -> RewardRunner:
        return SandboxedRunner(source, "reward.py", terms=terms, workers=1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_give_the_same_rewards(name: str) -> None:
    here, there = InProcessRunner(PROGRAMS[name], "r"), SandboxedRunner(PROGRAMS[name], "r", workers=1)
    for one, other in zip(here.rewards(episodes()), there.rewards(episodes()), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_a_turn_in_the_sandbox_has_the_limits_of_a_run() -> None:
    endless = "class Reward:\n    def reward_fn(self, state):\n        while True:\n            pass\n"
    made = SandboxedRunner(endless, "r", limits=Limits(wall_s=0.3))
    with made, pytest.raises(GraceError, match=r"no answer within 0\.3 s"):
        made.turn((), None, (), [Begin(0, np.zeros(1), "")])


def test_transitions_need_actions() -> None:
    with pytest.raises(InputError, match="rewards transitions, and a trajectory has no actions"):
        InProcessRunner(MOVES, "r").rewards([Trajectory(np.zeros((3, 1)))])


SQUARES = "class Reward:\n    def reward_fn(self, state, action, next_state):\n        return 1.0 - {action} ** 2\n"


@pytest.mark.parametrize("runner", [InProcessRunner, SandboxedRunner])
@pytest.mark.parametrize(("shape", "action"), [((), "action"), ((1,), "action[0]")])
def test_actions_come_in_the_shape_of_those_that_the_program_was_fitted_to(
    runner: type[InProcessRunner | SandboxedRunner], shape: tuple[int, ...], action: str
) -> None:
    states, taken = np.zeros((3, 1)), np.array([0.5, 1.0])
    with runner(SQUARES.format(action=action), "r", reads=Reads(actions=shape)) as made:
        for actions in (taken, taken[:, None]):
            (rewards,) = made.rewards([Trajectory(states, actions)])
            assert rewards[1:].tolist() == [0.75, 0.0]
            made.turn((), None, (), [Begin(0, states[0], "")])
            assert made.turn((0,), actions[:1], [states[1]]).rewards.tolist() == [0.75]
            made.post((0,), actions[1:], [states[2]])
            assert made.settle()[0].rewards.tolist() == [0.0]
        with pytest.raises(
            InputError, match=rf"actions of shape \(2,\); expected {re.escape(str(shape))}, as the reward"
        ):
            made.rewards([Trajectory(states, np.zeros((2, 2)))])


@pytest.mark.parametrize("runner", [InProcessRunner, SandboxedRunner])
@pytest.mark.parametrize("first", [np.array([0]), np.array([False]), np.array([0], np.float32), [0]])
def test_later_states_keep_their_precision_whatever_the_first_one_is(
    runner: type[InProcessRunner | SandboxedRunner], first: Any
) -> None:
    with runner("class Reward:\n    def reward_fn(self, state):\n        return float(state[0])\n", "r") as made:
        made.turn((), None, (), [Begin(0, first, "")])
        assert made.turn((0,), None, [np.array([0.1])]).rewards.tolist() == [0.1]


@pytest.mark.parametrize("runner", [InProcessRunner, SandboxedRunner])
@pytest.mark.parametrize("later", [np.array([7, 2]), [7, 2], np.array([7.0, 2.0])])
def test_states_that_begin_as_bytes_may_go_on_as_other_numbers(
    runner: type[InProcessRunner | SandboxedRunner], later: Any
) -> None:
    with runner("class Reward:\n    def reward_fn(self, state):\n        return float(state[0])\n", "r") as made:
        made.turn((), None, (), [Begin(0, np.array([1, 2], np.uint8), "")])
        assert made.turn((0,), None, [later]).rewards.tolist() == [7.0]


@pytest.mark.parametrize("runner", [InProcessRunner, SandboxedRunner])
@pytest.mark.parametrize("begins", [False, True], ids=["the next step", "the next episode"])
@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        (np.zeros(2), np.zeros(3), r"a state of shape \(3,\); expected \(2,\), as the first one"),
        ({"a": 0.0}, {"b": 0.0}, "a state of parts 'b'; expected parts 'a'"),
        ({"a": "x"}, {"a": 0.0}, "part 'a' of a state is ndarray; expected a text"),
    ],
)
def test_later_states_have_the_form_of_the_first_one(
    runner: type[InProcessRunner | SandboxedRunner], begins: bool, first: Any, later: Any, said: str
) -> None:
    with runner("class Reward:\n    def reward_fn(self, state):\n        return 1.0\n", "r") as made:
        made.turn((), None, (), [Begin(0, first, "")])
        with pytest.raises(InputError, match=said):
            made.turn((), None, (), [Begin(0, later, "")]) if begins else made.turn((0,), None, [later])


@pytest.mark.parametrize("kind", [np.int64, np.uint8], ids=["grids", "images"])
def test_episodes_of_a_trusted_reward_may_have_rooms_of_different_sizes(kind: type) -> None:
    room, larger = np.zeros((5, 5, 3), kind), np.zeros((6, 6, 3), kind)
    with InProcessRunner("class Reward:\n    def reward_fn(self, state):\n        return state.size\n", "r") as made:
        made.turn((), None, (), [Begin(0, room, ""), Begin(1, larger, "")])
        assert made.turn((1, 0), None, [larger, room], [Begin(0, larger, "")]).rewards.tolist() == [108.0, 75.0]
        assert made.turn((0,), None, [larger]).rewards.tolist() == [108.0]
        with pytest.raises(InputError, match=r"a state of shape \(5, 5, 3\); expected \(6, 6, 3\)"):
            made.turn((0,), None, [room])


def test_states_that_bytes_do_not_hold_are_refused_in_the_sandbox() -> None:
    with SandboxedRunner(
        "class Reward:\n    def reward_fn(self, state):\n        return float(state[0])\n", "r"
    ) as made:
        made.turn((), None, (), [Begin(0, np.array([1, 2], np.uint8), "")])
        with pytest.raises(InputError, match="uint16; expected uint8"):
            made.turn((0,), None, [np.array([300, 2], np.uint16)])


@pytest.mark.parametrize("runner", [InProcessRunner, SandboxedRunner])
@pytest.mark.parametrize("state", [{"a": np.uint64(2**63 + 5)}, np.full((1, 1, 3), 2**63 + 5, np.uint64)])
def test_live_states_beyond_int64_are_refused(runner: type[InProcessRunner | SandboxedRunner], state: Any) -> None:
    made = runner("class Reward:\n    def reward_fn(self, state):\n        return 1.0\n", "r")
    with made, pytest.raises(InputError, match="expected whole numbers below 2\\*\\*63"):
        made.turn((), None, (), [Begin(0, state, "")])
