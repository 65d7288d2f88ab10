"""The conformance suite of reward runners, which compute the rewards of a program for trajectories and episodes.

The suite is a base class for pytest:

    class TestMyRunner(RewardRunnerSuite):
        def make(self, source, *, terms=False):
            return MyRunner(source, "reward.py", terms=terms)
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grace_irl.demos.trajectory import Trajectory
from grace_irl.errors import GraceError
from grace_irl.rewards.runner import RewardRunner
from grace_irl.sandbox.session import Begin
from grace_irl.testing.executors import raises

REMEMBERS = """
SEEN = []

class Reward:
    def __init__(self, extra_info=None):
        self.length = len(extra_info)

    def reward_fn(self, state):
        SEEN.append(float(state[0]))
        state[:] = -1
        return 1000.0 * self.length + 100.0 * len(SEEN) + sum(SEEN)

    def terms_fn(self, state):
        return {"seen": len(SEEN), "now": float(state[0])}
"""
"""A program that keeps a number of each past state in a global list, and overwrites the array that it receives. If two
episodes shared the list or the array, their rewards would differ from those of each episode alone."""
DRAWS = """
import random
import numpy as np

class Reward:
    def reward_fn(self, state):
        return random.random() + np.random.uniform() + float(state[0])
"""
"""A program that draws random numbers."""
MOVES = """
class Reward:
    def reward_fn(self, state, action, next_state):
        return float(next_state[0] - 10 * state[0] + 100 * action[0])
"""
"""A program with actions, which gives rewards for transitions."""
PROGRAMS = {"remembers": REMEMBERS, "draws": DRAWS, "moves": MOVES}


def episodes(seed: int = 0) -> list[Trajectory]:
    """Trajectories of different lengths, with actions and instructions."""
    generator = np.random.default_rng(seed)
    return [
        Trajectory(generator.normal(size=(length + 1, 2)), generator.normal(size=(length, 1)), "x" * length)
        for length in (3, 1, 5)
    ]


def along(runner: RewardRunner, trajectories: list[Trajectory]) -> list[NDArray[np.float64]]:
    """Rewards `(T,)` of each trajectory, computed step by step. All trajectories run as episodes at the same time."""
    runner.turn((), None, (), [Begin(slot, each.states[0], each.extra_info) for slot, each in enumerate(trajectories)])
    found: list[list[float]] = [[] for _ in trajectories]
    for step in range(max(each.num_steps for each in trajectories)):
        slots = [slot for slot, each in enumerate(trajectories) if step < each.num_steps]
        actions = np.stack([_actions(trajectories[slot])[step] for slot in slots])
        answer = runner.turn(slots, actions, [trajectories[slot].states[step + 1] for slot in slots])
        for slot, value in zip(slots, answer.rewards.tolist(), strict=True):
            found[slot].append(value)
    return [np.array(each) for each in found]


def _actions(trajectory: Trajectory) -> Any:
    assert trajectory.actions is not None
    return trajectory.actions


def _drawn() -> tuple[Any, ...]:
    """The states of the process's global random generators."""
    numbers: Any = np.random.get_state(legacy=False)
    return random.getstate(), numbers["state"]["key"].tolist(), numbers["state"]["pos"]


class RewardRunnerSuite(ABC):
    """The tests of the conformance suite for reward runners."""

    @abstractmethod
    def make(self, source: str, *, terms: bool = False) -> RewardRunner:
        """Return a runner of a program. The suite closes the runner.

        Args:
            source: text of the program.
            terms: whether the runner also returns the components of rewards.
        """

    def test_running_episodes_get_the_rewards_of_trajectories(self) -> None:
        trajectories = episodes()
        for name, source in PROGRAMS.items():
            with closing(self.make(source)) as runner:
                whole = runner.rewards(trajectories)
                steps = along(runner, trajectories)
            assert [each.shape for each in whole] == [(each.num_steps + 1,) for each in trajectories], name
            assert all(np.array_equal(one[1:], other) for one, other in zip(whole, steps, strict=True)), name

    def test_posted_turns_get_the_rewards_of_turns(self) -> None:
        trajectories = episodes()
        begins = [Begin(slot, each.states[0], each.extra_info) for slot, each in enumerate(trajectories)]
        for name, source in PROGRAMS.items():
            with closing(self.make(source, terms=True)) as one, closing(self.make(source, terms=True)) as other:
                assert one.settle() == []
                waited = [one.turn((), None, (), begins)]
                other.post((), None, (), begins)
                for step in range(3):
                    slots = [slot for slot, each in enumerate(trajectories) if step < each.num_steps]
                    actions = np.stack([_actions(trajectories[slot])[step] for slot in slots])
                    states = [trajectories[slot].states[step + 1] for slot in slots]
                    again = begins[:1] if step == 1 else []
                    waited.append(one.turn(slots, actions, states, again))
                    other.post(slots, actions, states, again)
                settled = other.settle()
                assert other.settle() == []
                assert [each.terms for each in settled] == [each.terms for each in waited], name
                pairs = zip(settled, waited, strict=True)
                assert all(np.array_equal(found.rewards, expected.rewards) for found, expected in pairs), name
                slots, states = [0], [trajectories[0].states[3]]
                actions = _actions(trajectories[0])[2:3]
                last = [runner.turn(slots, actions, states).rewards.tolist() for runner in (one, other)]
                assert last[0] == last[1], name

    def test_a_trajectory_gets_the_same_rewards_whatever_stands_beside_it(self) -> None:
        first, second, third = episodes()
        for name, source in PROGRAMS.items():
            with closing(self.make(source)) as runner:
                alone, beside = runner.rewards([second])[0], runner.rewards([third, second, first])[1]
            assert np.array_equal(alone, beside, equal_nan=True), name

    def test_a_transition_has_a_reward_and_the_first_state_none(self) -> None:
        trajectory = Trajectory(np.array([[1.0], [2.0], [4.0]]), np.array([[3.0], [5.0]]))
        with closing(self.make(MOVES)) as runner:
            (found,) = runner.rewards([trajectory])
        assert np.isnan(found[0])
        assert found[1:].tolist() == [292.0, 484.0]

    def test_an_episode_that_begins_ends_the_one_in_its_slot(self) -> None:
        one, other = episodes()[0], episodes(1)[0]
        with closing(self.make(REMEMBERS)) as runner:
            runner.turn((), None, (), [Begin(0, one.states[0], "go")])
            last = runner.turn((0,), None, [one.states[1]], [Begin(0, other.states[0], "")])
            first = runner.turn((0,), None, [other.states[1]])
        assert last.rewards[0] == 2000 + 200 + one.states[0][0] + one.states[1][0]
        assert first.rewards[0] == 200 + other.states[0][0] + other.states[1][0]

    def test_components_come_if_they_are_wanted(self) -> None:
        for terms, expected in ((True, ({"seen": 2.0, "now": 7.0},)), (False, ())):
            with closing(self.make(REMEMBERS, terms=terms)) as runner:
                runner.turn((), None, (), [Begin(0, np.array([3.0]), "")])
                assert runner.turn((0,), None, [np.array([7.0])]).terms == expected

    def test_the_process_keeps_its_own_random_numbers(self) -> None:
        random.seed(1)
        np.random.seed(1)
        before = _drawn()
        with closing(self.make(DRAWS)) as runner:
            runner.rewards(episodes())
            along(runner, episodes())
        assert _drawn() == before

    def test_a_program_that_fails_is_one_line(self) -> None:
        for value, said in (("1 / 0", "runtime: "), ("float('nan')", "nonfinite: "), ("'text'", "type: ")):
            source = (
                f"class Reward:\n    def reward_fn(self, state):\n        return {value} if state[0] > 5 else 0.0\n"
            )
            for way in (self._whole, self._turn, self._post):
                with closing(self.make(source)) as runner, raises(GraceError, said) as failure:
                    way(runner)
                assert "\n" not in str(failure[0])

    def test_a_trajectory_needs_a_finite_reward_for_its_first_state(self) -> None:
        source = (
            "class Reward:\n    def reward_fn(self, state):\n        return float('nan') if state[0] > 5 else 0.0\n"
        )
        with closing(self.make(source)) as runner, raises(GraceError, "nonfinite: reward nan"):
            runner.rewards([Trajectory(np.array([[9.0], [1.0]]))])

    def test_it_may_be_closed_twice(self) -> None:
        runner = self.make(REMEMBERS)
        runner.turn((), None, (), [Begin(0, np.array([3.0]), "")])
        runner.close()
        runner.close()

    def _whole(self, runner: RewardRunner) -> None:
        runner.rewards([Trajectory(np.array([[1.0], [9.0]]))])

    def _turn(self, runner: RewardRunner) -> None:
        runner.turn((), None, (), [Begin(0, np.array([1.0]), "")])
        runner.turn((0,), None, [np.array([9.0])])

    def _post(self, runner: RewardRunner) -> None:
        runner.post((), None, (), [Begin(0, np.array([1.0]), "")])
        for _ in range(3):
            runner.post((0,), None, [np.array([9.0])])
        runner.settle()
