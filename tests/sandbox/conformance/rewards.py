"""Rewards: where they come from, in which order, and how often they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.protocol import DebugRequest, Limits, Mode, Sandbox
from tests.sandbox.samples import BOTH, COUNTER, TRANSITION, one, vectors


class Rewards:
    """Tests of `grace_irl.sandbox.protocol.Sandbox`."""

    @BOTH
    def test_rewards_come_in_the_order_of_the_call(self, sandbox: Sandbox, mode: Mode) -> None:
        trajectories = vectors()
        handle = sandbox.put(trajectories)
        outcome = sandbox.run(COUNTER, handle, [2, 0, 1], mode=mode)
        assert (outcome.status, outcome.message, outcome.traceback) == ("ok", "", "")
        assert len(outcome.rewards) == 3
        for index, rewards in zip([2, 0, 1], outcome.rewards, strict=True):
            states = trajectories[index].states
            expected = 100 * index + np.arange(1, len(states) + 1) + states[:, 0].astype(np.float64)
            np.testing.assert_array_equal(rewards, expected)
            assert rewards.dtype == np.float64
        sandbox.drop(handle)

    @BOTH
    def test_nothing_but_the_chosen_trajectories_runs(self, sandbox: Sandbox, mode: Mode) -> None:
        handle = sandbox.put(vectors(5))
        assert len(sandbox.run(COUNTER, handle, [4], mode=mode).rewards) == 1
        assert sandbox.run(COUNTER, handle, [], mode=mode).rewards == ()
        twice = sandbox.run(COUNTER, handle, [1, 1], mode=mode).rewards
        np.testing.assert_array_equal(*twice)

    @BOTH
    def test_transitions(self, sandbox: Sandbox, mode: Mode) -> None:
        handle = sandbox.put(vectors(actions=True))
        debug = [DebugRequest(0, 2), DebugRequest(0, 0)]
        outcome = sandbox.run(TRANSITION, handle, [1, 0], mode=mode, debug=debug)
        assert outcome.status == "ok", outcome
        np.testing.assert_array_equal(outcome.rewards[0], [np.nan, 2, 12, 22, 32])
        np.testing.assert_array_equal(outcome.rewards[1], [np.nan, 2, 12, 22])
        assert outcome.debug == ("at 1004", "")

    @BOTH
    def test_transitions_without_actions(self, sandbox: Sandbox, mode: Mode) -> None:
        handle = sandbox.put(vectors())
        outcome = sandbox.run(TRANSITION, handle, [0], mode=mode)
        assert outcome.status == "contract"
        assert "states only" in outcome.message

    @BOTH
    def test_random_numbers_repeat(self, sandbox: Sandbox, mode: Mode) -> None:
        source = (
            "import random\nimport numpy as np\n\nclass Reward:\n    def reward_fn(self, state):\n"
            "        return random.random() + np.random.rand() + len({'a', 'b', 'c'} | {str(random.random())})\n"
        )
        handle = sandbox.put([Trajectory(np.zeros((3, 1))) for _ in range(2)])
        first, again = (sandbox.run(source, handle, [0, 1], mode=mode) for _ in range(2))
        np.testing.assert_array_equal(first.rewards, again.rewards)
        np.testing.assert_array_equal(first.rewards[0], first.rewards[1])

    @BOTH
    def test_sets_are_ordered_alike(self, sandbox: Sandbox, mode: Mode) -> None:
        source = one("return float(''.join(str(ord(c)) for c in {'a', 'b', 'c', 'd', 'e'})[:12])")
        handle = sandbox.put(vectors())
        runs = [sandbox.run(source, handle, [0], mode=mode, limits=Limits(max_abs=1e15)) for _ in range(3)]
        assert len({float(run.rewards[0][0]) for run in runs}) == 1

    @BOTH
    def test_a_module_is_fresh_for_each_trajectory(self, sandbox: Sandbox, mode: Mode) -> None:
        source = (
            "seen = []\nclass Reward:\n    def reward_fn(self, state):\n        seen.append(1)\n"
            "        return len(seen)\n"
        )
        outcome = sandbox.run(source, sandbox.put(vectors()), [0, 1], mode=mode)
        assert [rewards[-1] for rewards in outcome.rewards] == [4, 5]

    @BOTH
    @pytest.mark.parametrize(
        ("parameters", "expected"),
        [
            ("self, extra_info=None", "xx"),
            ("self, extra_info", "xx"),
            ("self, info", "xx"),
            ("self, *args", "xx"),
            ("self, *, extra_info=None", "xx"),
            ("self, **options", ""),
            ("self", ""),
        ],
    )
    def test_constructors(self, sandbox: Sandbox, mode: Mode, parameters: str, expected: str) -> None:
        source = (
            f"class Reward:\n    def __init__({parameters}):\n"
            "        given = [v for v in locals().values() if isinstance(v, (str, tuple))]\n"
            "        self.n = len(''.join(x if isinstance(x, str) else ''.join(x) for x in given))\n"
            "    def reward_fn(self, state):\n        return self.n\n"
        )
        outcome = sandbox.run(source, sandbox.put(vectors()), [2], mode=mode)
        assert outcome.status == "ok", outcome
        assert outcome.rewards[0][0] == len(expected)
