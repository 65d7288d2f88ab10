"""Rewards of the pool, and the states and actions that reach a program."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.protocol import DebugRequest, Limits, Mode, Sandbox
from tests.sandbox.samples import BOTH, COUNTER, TRANSITION, one, vectors


@BOTH
def test_nothing_but_the_chosen_trajectories_runs(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put(vectors(5))
    assert len(sandbox.run(COUNTER, handle, [4], mode=mode).rewards) == 1
    assert sandbox.run(COUNTER, handle, [], mode=mode).rewards == ()
    twice = sandbox.run(COUNTER, handle, [1, 1], mode=mode).rewards
    np.testing.assert_array_equal(*twice)


@BOTH
def test_transitions(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put(vectors(actions=True))
    debug = [DebugRequest(0, 2), DebugRequest(0, 0)]
    outcome = sandbox.run(TRANSITION, handle, [1, 0], mode=mode, debug=debug)
    assert outcome.status == "ok", outcome
    np.testing.assert_array_equal(outcome.rewards[0], [np.nan, 2, 12, 22, 32])
    np.testing.assert_array_equal(outcome.rewards[1], [np.nan, 2, 12, 22])
    assert outcome.debug == ("at 1004", "")


@BOTH
def test_transitions_without_actions(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put(vectors())
    outcome = sandbox.run(TRANSITION, handle, [0], mode=mode)
    assert outcome.status == "contract"
    assert "states only" in outcome.message


@BOTH
def test_random_numbers_repeat(sandbox: Sandbox, mode: Mode) -> None:
    source = (
        "import random\nimport numpy as np\n\nclass Reward:\n    def reward_fn(self, state):\n"
        "        return random.random() + np.random.rand() + len({'a', 'b', 'c'} | {str(random.random())})\n"
    )
    handle = sandbox.put([Trajectory(np.zeros((3, 1))) for _ in range(2)])
    first, again = (sandbox.run(source, handle, [0, 1], mode=mode) for _ in range(2))
    np.testing.assert_array_equal(first.rewards, again.rewards)
    np.testing.assert_array_equal(first.rewards[0], first.rewards[1])


@BOTH
def test_sets_are_ordered_alike(sandbox: Sandbox, mode: Mode) -> None:
    source = one("return float(''.join(str(ord(c)) for c in {'a', 'b', 'c', 'd', 'e'})[:12])")
    handle = sandbox.put(vectors())
    runs = [sandbox.run(source, handle, [0], mode=mode, limits=Limits(max_abs=1e15)) for _ in range(3)]
    assert len({float(run.rewards[0][0]) for run in runs}) == 1


@BOTH
def test_a_module_is_fresh_for_each_trajectory(sandbox: Sandbox, mode: Mode) -> None:
    source = (
        "seen = []\nclass Reward:\n    def reward_fn(self, state):\n        seen.append(1)\n        return len(seen)\n"
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
def test_constructors(sandbox: Sandbox, mode: Mode, parameters: str, expected: str) -> None:
    source = (
        f"class Reward:\n    def __init__({parameters}):\n"
        "        given = [v for v in locals().values() if isinstance(v, (str, tuple))]\n"
        "        self.n = len(''.join(x if isinstance(x, str) else ''.join(x) for x in given))\n"
        "    def reward_fn(self, state):\n        return self.n\n"
    )
    outcome = sandbox.run(source, sandbox.put(vectors()), [2], mode=mode)
    assert outcome.status == "ok", outcome
    assert outcome.rewards[0][0] == len(expected)


@BOTH
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<f2", ">f8", "<i4", "|u1"])
def test_vectors_arrive_as_float64(sandbox: Sandbox, mode: Mode, dtype: str) -> None:
    handle = sandbox.put([Trajectory(np.ones((3, 2), dtype))])
    source = one("assert state.dtype == np.float64 and state.dtype.isnative\nreturn state.sum()")
    outcome = sandbox.run(source, handle, [0], mode=mode)
    assert outcome.status == "ok", outcome
    np.testing.assert_array_equal(outcome.rewards[0], 2)


@BOTH
@pytest.mark.parametrize(("dtype", "shape"), [("<f4", ()), (">i2", ()), ("|b1", ()), ("<f8", (3,)), ("|u1", (2, 2))])
def test_actions_arrive_as_float64(sandbox: Sandbox, mode: Mode, dtype: str, shape: tuple[int, ...]) -> None:
    handle = sandbox.put([Trajectory(np.zeros((3, 2)), actions=np.ones((2, *shape), dtype))])
    source = (
        "import numpy as np\n\nclass Reward:\n    def reward_fn(self, state, action, next_state):\n"
        f"        assert np.shape(action) == {shape}\n        assert action.dtype == np.float64\n"
        "        return float(np.sum(action))\n"
    )
    outcome = sandbox.run(source, handle, [0], mode=mode)
    assert outcome.status == "ok", outcome
    np.testing.assert_array_equal(outcome.rewards[0][1:], np.prod(shape, dtype=int))


@BOTH
def test_types_that_are_mixed_have_the_coarsest_precision(sandbox: Sandbox, mode: Mode) -> None:
    fine, coarse = np.full((2, 1), 1 / 3), np.full((2, 1), 1 / 3, np.float32)
    handle = sandbox.put([Trajectory(fine), Trajectory(coarse)])
    outcome = sandbox.run(one("return float(state[0])"), handle, [0, 1], mode=mode)
    np.testing.assert_array_equal(outcome.rewards, np.full((2, 2), np.float32(1 / 3), np.float64))
    alone = sandbox.run(one("return float(state[0])"), sandbox.put([Trajectory(fine)]), [0], mode=mode)
    np.testing.assert_array_equal(alone.rewards[0], 1 / 3)


@BOTH
def test_actions_of_some_are_shown_to_none(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put([*vectors(1), *vectors(1, actions=True)])
    outcome = sandbox.run(TRANSITION, handle, [1], mode=mode)
    assert outcome.status == "contract"
    assert "lacks the actions of some" in outcome.message


@BOTH
def test_grids_arrive_as_wide_integers(sandbox: Sandbox, mode: Mode) -> None:
    grids = np.zeros((2, 4, 5, 3), np.uint8)
    grids[:, 1, 2, 0] = 7
    handle = sandbox.put([Trajectory(grids)])
    source = one("assert state.shape == (4, 5, 3)\nreturn state[0, 0, 0] - state[1, 2, 0]")
    np.testing.assert_array_equal(sandbox.run(source, handle, [0], mode=mode).rewards[0], [-7, -7])


@BOTH
def test_mixed_shapes_and_odd_memory_orders(sandbox: Sandbox, mode: Mode) -> None:
    random = np.random.default_rng(0)
    grids = [
        random.integers(0, 9, (3, 4, 4, 3)),
        random.integers(0, 9, (3, 7, 5, 3)).astype(np.uint8)[:, ::2],
        np.asfortranarray(random.integers(0, 9, (3, 5, 6, 3)).astype(">i2")),
    ]
    handle = sandbox.put([Trajectory(grid) for grid in grids])
    outcome = sandbox.run(one("return state.sum()"), handle, range(3), mode=mode)
    assert outcome.status == "ok", outcome
    for grid, rewards in zip(grids, outcome.rewards, strict=True):
        np.testing.assert_array_equal(rewards, grid.sum(axis=(1, 2, 3)))


@BOTH
def test_a_state_is_a_copy_of_its_own(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put(vectors())
    spoil = one("before = float(state[0])\nstate[:] = -1\nassert state.flags.owndata\nreturn before")
    for _ in range(2):
        outcome = sandbox.run(spoil, handle, [0, 0], mode=mode)
        assert outcome.status == "ok", outcome
        for rewards in outcome.rewards:
            np.testing.assert_array_equal(rewards, [0, 2, 4, 6])
