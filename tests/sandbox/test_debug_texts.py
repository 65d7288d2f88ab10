"""Words of a program about states, one by one and in sets."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.protocol import DebugRequest, Limits, Mode, Sandbox, Status
from tests.sandbox.samples import BOTH, COUNTER, one, vectors

SETS = one("return 1") + (
    "\ndef debug(experts, negatives):\n"
    "    first = [[float(state[0]) for state in states] for states in (experts, negatives)]\n"
    "    state = negatives[0]\n"
    "    return f'{type(experts).__name__} {len(experts)} {len(negatives)}: {first[0]} {first[1]} '"
    " f'{state.dtype} {state.flags.owndata}'\n"
)
EMPTY = one("return 1") + "\ndef debug(experts, negatives):\n    return f'{experts} {negatives}'\n"


@BOTH
def test_debug_text_follows_its_state(sandbox: Sandbox, mode: Mode) -> None:
    handle = sandbox.put(vectors())
    wanted = [DebugRequest(1, 3), DebugRequest(0, 0), DebugRequest(1, 0)]
    outcome = sandbox.run(COUNTER, handle, [2, 1], mode=mode, debug=wanted)
    assert outcome.debug == ("4: 1006", "1: 2000", "1: 1000")
    assert sandbox.run(one("return 1"), handle, [0], mode=mode, debug=[DebugRequest(0, 0)]).debug == ("",)


@BOTH
def test_requests_for_one_state_get_the_same_text(sandbox: Sandbox, mode: Mode) -> None:
    wanted = [DebugRequest(1, 3), DebugRequest(0, 0), DebugRequest(1, 3)]
    outcome = sandbox.run(COUNTER, sandbox.put(vectors()), [2, 1], mode=mode, debug=wanted)
    assert outcome.debug == ("4: 1006", "1: 2000", "4: 1006")


@BOTH
def test_debug_text_is_untrusted(sandbox: Sandbox, mode: Mode) -> None:
    source = one("return 1") + (
        "    def debug_fn(self, state):\n        return '\\x1b[31mred\\x1b]0;title\\x07\\r\\x00\\u202e' + 'ä' * 100\n"
    )
    outcome = sandbox.run(
        source, sandbox.put(vectors()), [0], mode=mode, limits=Limits(debug_chars=20),
        debug=[DebugRequest(0, 1)],
    )  # fmt: skip
    assert outcome.debug[0].startswith("red")
    assert set(outcome.debug[0][3:]) <= {"ä"}
    assert len(outcome.debug[0]) <= 20


@BOTH
def test_a_broken_debug_fn_leaves_the_rewards(sandbox: Sandbox, mode: Mode) -> None:
    source = one("return 1") + "    def debug_fn(self, state):\n        return 1 / 0\n"
    outcome = sandbox.run(source, sandbox.put(vectors()), [0], mode=mode, debug=[DebugRequest(0, 0)])
    assert outcome.status == "ok"
    assert outcome.debug == ("debug_fn raised ZeroDivisionError: division by zero",)


@BOTH
def test_a_debug_fn_that_leaves_is_named_with_its_state(sandbox: Sandbox, mode: Mode) -> None:
    source = one("return 1") + "    def debug_fn(self, state):\n        raise SystemExit\n"
    outcome = sandbox.run(source, sandbox.put(vectors()), [2, 1], mode=mode, debug=[DebugRequest(1, 3)])
    assert (outcome.status, outcome.message) == ("killed", "SystemExit (state 3 of trajectory 1)")


def test_two_sets_are_compared(sandbox: Sandbox) -> None:
    handle = sandbox.put(vectors())
    outcome = sandbox.debug_sets(SETS, handle, [(2, 0), (0, 1)], [(1, 3)])
    assert (outcome.status, outcome.rewards) == ("ok", ()), outcome
    assert outcome.debug == ("list 2 1: [2000.0, 2.0] [1006.0] float64 True",)


def test_grids_of_other_sizes_are_compared(sandbox: Sandbox) -> None:
    grids = [Trajectory(np.full((2, size, size, 3), size, np.uint8)) for size in (3, 5)]
    source = one("return 1") + (
        "\ndef debug(experts, negatives):\n"
        "    return f'{experts[0].shape} {negatives[0].shape} {negatives[0].dtype} {int(negatives[0].sum())}'\n"
    )
    outcome = sandbox.debug_sets(source, sandbox.put(grids), [(0, 1)], [(1, 0)])
    assert outcome.debug == ("(3, 3, 3) (5, 5, 3) int64 375",)


@pytest.mark.parametrize("more", ["", "debug = None\n", "def debug(experts, negatives):\n    return ''\n"])
def test_nothing_said_is_no_text(sandbox: Sandbox, more: str) -> None:
    handle = sandbox.put(vectors())
    outcome = sandbox.debug_sets(one("return 1") + "\n" + more, handle, [(0, 0)], [(1, 0)])
    assert (outcome.status, outcome.debug, outcome.rewards) == ("ok", (), ())


def test_empty_sets(sandbox: Sandbox) -> None:
    assert sandbox.debug_sets(EMPTY, sandbox.put(vectors()), [], []).debug == ("[] []",)


def test_a_text_about_sets_is_untrusted(sandbox: Sandbox) -> None:
    source = one("return 1") + "\ndef debug(a, b):\n    return '\\x1b[31mred\\x07\\u202e' + 'ä' * 10 ** 6\n"
    outcome = sandbox.debug_sets(source, sandbox.put(vectors()), [], [], limits=Limits(debug_chars=20))
    assert outcome.status == "ok"
    assert outcome.debug[0].startswith("red")
    assert set(outcome.debug[0][3:]) == {"ä"}
    assert len(outcome.debug[0]) <= 20


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("return 1 / 0", "runtime", "ZeroDivisionError"),
        ("while True: pass", "timeout", "the time limit"),
        ("return 'x' * 10 ** 12", "memory", "MemoryError"),
        ("raise SystemExit", "killed", "SystemExit"),
        ("return open('x').read()", "rejected", "open"),
        ("class T:\n        def __str__(self): return 1\n    return T()", "runtime", "TypeError"),
    ],
)
def test_a_comparison_that_fails(sandbox: Sandbox, body: str, status: Status, words: str) -> None:
    source = one("return 1") + f"\ndef debug(experts, negatives):\n    {body}\n"
    limits = Limits(wall_s=0.3, memory_mb=64)
    outcome = sandbox.debug_sets(source, sandbox.put(vectors()), [(0, 0)], [(1, 0)], limits=limits)
    assert outcome.status == status, outcome
    assert words in outcome.message
    assert (outcome.debug, outcome.rewards) == ((), ())


def test_a_comparison_takes_two_sets(sandbox: Sandbox) -> None:
    source = one("return 1") + "\ndef debug(state):\n    return 'x'\n"
    outcome = sandbox.debug_sets(source, sandbox.put(vectors()), [(0, 0)], [])
    assert outcome.status == "runtime"
    assert "TypeError" in outcome.message


@pytest.mark.parametrize("place", [(3, 0), (-1, 0), (0, 4), (0, -1)])
def test_states_that_are_not_there(sandbox: Sandbox, place: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no state"):
        sandbox.debug_sets(SETS, sandbox.put(vectors()), [(0, 0)], [place])


@BOTH
def test_what_was_seen_in_sets_reaches_no_reward(sandbox: Sandbox, mode: Mode) -> None:
    source = one("return float(len(getattr(np, 'seen', [])))") + (
        "\ndef debug(experts, negatives):\n    vars_of_numpy = np.__dict__\n"
        "    vars_of_numpy['seen'] = experts\n    return str(len(np.seen))\n"
    )
    handle = sandbox.put(vectors())
    assert sandbox.debug_sets(source, handle, [(0, 0)], [(1, 0)]).debug == ("1",)
    outcome = sandbox.run(source, handle, [0, 1], mode=mode)
    assert outcome.status == "ok", outcome
    assert not any(rewards.any() for rewards in outcome.rewards)
