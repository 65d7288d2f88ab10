"""Ends of runs: failures, tracebacks, limits, the account, and calls that make no sense."""

from __future__ import annotations

import pytest

from grace_irl.sandbox.protocol import DebugRequest, Limits, Mode, Sandbox, Status
from tests.sandbox.samples import BOTH, COUNTER, one, vectors


@BOTH
@pytest.mark.parametrize(
    ("source", "status", "words"),
    [
        ("class Reward:\n  def reward_fn(self, state)\n", "syntax", "line 2"),
        ("x = (" * 300, "syntax", "syntax error"),
        ("def reward(state):\n    return 1.0\n", "contract", "class Reward"),
        ("", "contract", "class Reward"),
        ("class Reward:\n    pass\n", "contract", "reward_fn"),
        ("class Reward:\n    def reward_fn(self, a, b):\n        return 1\n", "contract", "2 arguments"),
        ("class Reward:\n    def __init__(self, a, b):\n        pass\n    def reward_fn(self, s):\n        return 1\n",
         "init", "TypeError"),
        ("import os\n" + one("return 1"), "rejected", "os"),
        (one("return open('x')"), "rejected", "open"),
        ("x = 1 / 0\n" + one("return 1"), "init", "ZeroDivisionError"),
        (one("return state[99]"), "runtime", "IndexError"),
        (one("return 'high'"), "type", "str"),
        (one("return state"), "type", "shape (2,)"),
        (one("return None"), "type", "NoneType"),
        (one("return float('nan')"), "nonfinite", "nan"),
        (one("return 1e10"), "nonfinite", "1e+10"),
        (one("return -(10**400)"), "nonfinite", "reward -inf for state 0 of trajectory 0"),
        (one("return 'x' * 10 ** 12"), "memory", "MemoryError"),
        (one("raise SystemExit"), "killed", "SystemExit"),
        (one("raise type('', (Exception,), {})"), "runtime", "an exception without a name (state 0 of trajectory 0)"),
        ("class Text(str):\n  def __format__(self, spec):\n    raise RuntimeError\n"
         "class Error(Exception):\n  def __str__(self):\n    return Text('odd')\n" + one("raise Error"),
         "runtime", "Error: odd (state 0 of trajectory 0)"),
        (one("while True: pass"), "timeout", "the time limit"),
    ],
)  # fmt: skip
def test_failures(sandbox: Sandbox, mode: Mode, source: str, status: Status, words: str) -> None:
    handle = sandbox.put(vectors())
    outcome = sandbox.run(source, handle, [0, 1], mode=mode, limits=Limits(wall_s=0.3, memory_mb=64))
    assert outcome.status == status, outcome
    assert words in outcome.message
    assert "\n" not in outcome.message
    assert outcome.rewards == ()
    assert sandbox.run(one("return 1"), handle, [0], mode=mode).status == "ok"


@BOTH
def test_tracebacks_hold_the_programs_own_lines_only(sandbox: Sandbox, mode: Mode) -> None:
    source = (
        "import numpy as np\n\ndef middle(state):\n    return np.linalg.inv(np.zeros((2, 2)))\n\n"
        "class Reward:\n    def reward_fn(self, state):\n        return middle(state)\n"
    )
    outcome = sandbox.run(source, sandbox.put(vectors()), [1, 0], mode=mode)
    assert outcome.status == "runtime"
    assert outcome.traceback.splitlines() == [
        "Traceback (most recent call last):",
        '  File "reward.py", line 8, in reward_fn',
        "    return middle(state)",
        '  File "reward.py", line 4, in middle',
        "    return np.linalg.inv(np.zeros((2, 2)))",
        "LinAlgError: Singular matrix",
    ]
    assert "state 0 of trajectory 0" in outcome.message


def test_a_long_source_is_refused(sandbox: Sandbox) -> None:
    source = one("return 1") + "#" * 65_536
    outcome = sandbox.run(source, sandbox.put(vectors()), [0])
    assert outcome.status == "rejected"
    assert "65536" in outcome.message


def test_the_account(sandbox: Sandbox) -> None:
    outcome = sandbox.run(one("sum(range(300000))\nreturn 1"), sandbox.put(vectors()), [0])
    assert 0 < outcome.cpu_s <= outcome.wall_s + 0.1
    assert outcome.peak_mb > 1


def test_cpu_time_is_limited(sandbox: Sandbox) -> None:
    limits = Limits(wall_s=20, cpu_s=0.3)
    outcome = sandbox.run(one("while True: pass"), sandbox.put(vectors()), [0], limits=limits)
    assert outcome.status == "timeout"
    assert "CPU" in outcome.message


def test_wrong_calls_are_refused(sandbox: Sandbox) -> None:
    handle = sandbox.put(vectors())
    for order, invalid in (([3], 3), ([-1], -1), ([0, 2, -1], -1), ([0, 7, 5], 7)):
        with pytest.raises(ValueError, match=f"order contains index {invalid}; expected indices .* below 3"):
            sandbox.run(COUNTER, handle, order)
    with pytest.raises(ValueError, match="DebugRequest"):
        sandbox.run(COUNTER, handle, [0], debug=[DebugRequest(0, 4)])
    sandbox.drop(handle)
    sandbox.drop(handle)
    with pytest.raises(ValueError, match="handle"):
        sandbox.run(COUNTER, handle, [0])
