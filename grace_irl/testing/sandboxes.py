"""The conformance suite of sandboxes, which run untrusted programs. The suite is a base class for pytest:

    class TestMySandbox(SandboxSuite):
        def make(self):
            return MySandbox()

The suite tests that rewards depend only on a trajectory's data, and that a failing program gives an `Outcome` instead
of an exception. Attacks on the sandbox are part of `grace-irl doctor`, not of this suite (docs/sandbox.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isnan

import numpy as np

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.protocol import Mode, Sandbox

MODES: tuple[Mode, ...] = ("batch", "strict")

COUNTS = """
class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info
        self.n = 0

    def reward_fn(self, state):
        self.n += 1
        found = 100 * len(self.extra_info) + self.n + float(state[0])
        state[0] = -1
        return found
"""
"""A program that counts the calls of `reward_fn` per `Reward` object, and overwrites the states that it receives. If
trajectories shared objects or states, the rewards would differ from the result of the function `expected`."""
MOVES = """
class Reward:
    def reward_fn(self, state, action, next_state):
        return float(next_state[0] - state[0]) + 10 * float(action)
"""
"""A program with actions, which gives rewards for transitions."""
TALKS = """
def debug(expert_states, negative_states):
    return f"{len(expert_states)} and {len(negative_states)}"


class Reward:
    def reward_fn(self, state):
        return 1.0
"""
"""A program whose function `debug` returns a text with the sizes of two sets of states."""


def vectors(count: int = 3, length: int = 4) -> list[Trajectory]:
    """Trajectories of vectors, with different lengths, instructions and values."""
    made = []
    for number in range(count):
        states = np.arange(2.0 * (length + number)).reshape(-1, 2) + 1000 * number
        made.append(Trajectory(states, np.arange(len(states) - 1), "x" * number))
    return made


def expected(trajectories: Sequence[Trajectory]) -> list[list[float]]:
    """The correct rewards of the program `COUNTS`."""
    return [
        [100 * len(each.extra_info) + step + 1 + float(state[0]) for step, state in enumerate(each.states)]
        for each in trajectories
    ]


class SandboxSuite(ABC):
    """The tests of the conformance suite for sandboxes."""

    @abstractmethod
    def make(self) -> Sandbox:
        """Return a sandbox. The suite closes it."""

    def test_rewards_come_in_the_order_of_the_call_with_an_object_for_each_trajectory(self) -> None:
        made = vectors()
        with self.make() as sandbox:
            handle = sandbox.put(made)
            for mode in MODES:
                for order in ([0, 1, 2], [2, 0], [1]):
                    outcome = sandbox.run(COUNTS, handle, order, mode=mode)
                    assert outcome.status == "ok", outcome
                    assert (outcome.message, outcome.traceback) == ("", "")
                    assert [each.tolist() for each in outcome.rewards] == expected([made[at] for at in order])
                    assert all(each.dtype == np.float64 for each in outcome.rewards)

    def test_transitions_have_rewards_and_the_first_state_none(self) -> None:
        (made,) = vectors(1)
        with self.make() as sandbox:
            assert sandbox.inspect(MOVES).takes_action
            (found,) = sandbox.run(MOVES, sandbox.put([made]), [0]).rewards
        assert isnan(found[0])
        assert found[1:].tolist() == [2.0 + 10 * step for step in range(made.num_steps)]

    def test_handles_are_independent(self) -> None:
        few, many = vectors(1), vectors(3)
        with self.make() as sandbox:
            one, other = sandbox.put(few), sandbox.put(many)
            sandbox.drop(one)
            third = sandbox.put(few)
            (found,) = sandbox.run(COUNTS, other, [2]).rewards
            (again,) = sandbox.run(COUNTS, third, [0]).rewards
        assert [found.tolist(), again.tolist()] == expected([many[2], few[0]])

    def test_a_source_has_an_identity_and_problems(self) -> None:
        with self.make() as sandbox:
            one, other = sandbox.inspect(COUNTS), sandbox.inspect(f"# a comment\n{COUNTS}")
            assert (one.id, one.size, one.problems) == (other.id, other.size, ())
            assert [each.name for each in one.functions] == ["Reward", "Reward.__init__", "Reward.reward_fn"]
            assert not one.takes_action
            assert sandbox.inspect(MOVES).id != one.id
            assert sandbox.inspect("class Reward(:\n").problems

    def test_failures_are_outcomes_with_one_line_and_the_next_run_is_well(self) -> None:
        with self.make() as sandbox:
            handle = sandbox.put(vectors())
            for body, status in (("1 / 0", "runtime"), ("state[99]", "runtime"), ("float('nan')", "nonfinite")):
                source = f"class Reward:\n    def reward_fn(self, state):\n        return {body}\n"
                for mode in MODES:
                    outcome = sandbox.run(source, handle, [0, 1], mode=mode)
                    assert outcome.status == status, outcome
                    assert outcome.rewards == ()
                    assert outcome.message
                    assert "\n" not in outcome.message
                    assert sandbox.run(COUNTS, handle, [0]).status == "ok"

    def test_threads(self) -> None:
        made = vectors()
        with self.make() as sandbox, ThreadPoolExecutor(4) as threads:
            handle = sandbox.put(made)

            def work(number: int) -> list[float]:
                assert sandbox.inspect(COUNTS).problems == ()
                outcome = sandbox.run(COUNTS, handle, [number % 3], mode=MODES[number % 2])
                return [float(each) for each in outcome.rewards[0]]

            assert list(threads.map(work, range(12))) == expected(made) * 4

    def test_a_program_may_compare_two_sets_in_words(self) -> None:
        with self.make() as sandbox:
            handle = sandbox.put(vectors())
            outcome = sandbox.debug_sets(TALKS, handle, [(0, 0), (1, 2)], [(2, 1)])
            assert (outcome.status, outcome.debug, outcome.rewards) == ("ok", ("2 and 1",), ())
            assert sandbox.debug_sets(COUNTS, handle, [(0, 0)], [(1, 0)]).debug == ()

    def test_it_says_how_many_runs_it_takes_at_once(self) -> None:
        with self.make() as sandbox:
            assert sandbox.workers >= 1
            assert sandbox.tier
