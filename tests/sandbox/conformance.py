"""What every sandbox must do. A test class inherits this one and gives it a `sandbox` fixture."""

# ruff: noqa: E501  (programs are quoted)

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.protocol import DebugRequest, Limits, Mode, Sandbox, Status

MODES: tuple[Mode, ...] = ("batch", "strict")
BOTH = pytest.mark.parametrize("mode", MODES)

COUNTER = """
class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info
        self.n = 0

    def reward_fn(self, state):
        self.n += 1
        return 100 * len(self.extra_info) + self.n + float(state[0])

    def debug_fn(self, state):
        return f"{self.n}: {state[0]:g}"
"""

TRANSITION = """
class Reward:
    def reward_fn(self, state, action, next_state):
        return float(next_state[0] - state[0]) + 10 * float(action)

    def debug_fn(self, state):
        return f"at {state[0]:g}"
"""


def vectors(count: int = 3, length: int = 4, *, actions: bool = False) -> list[Trajectory]:
    """Trajectories of different lengths whose first number tells them apart."""
    made = []
    for number in range(count):
        states = np.arange(2 * (length + number), dtype=np.float32).reshape(-1, 2) + 1000 * number
        taken = np.arange(len(states) - 1) if actions else None
        made.append(Trajectory(states, actions=taken, extra_info="x" * number))
    return made


def one(body: str) -> str:
    """A program whose reward_fn has this body."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    return f"import numpy as np\n\nclass Reward:\n    def reward_fn(self, state):\n{lines}\n"


class SandboxConformance:
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
    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
    def test_vectors_keep_their_type(self, sandbox: Sandbox, mode: Mode, dtype: type) -> None:
        handle = sandbox.put([Trajectory(np.ones((3, 2), dtype))])
        source = one("return state.dtype.itemsize * 100 + state.ndim")
        outcome = sandbox.run(source, handle, [0], mode=mode)
        np.testing.assert_array_equal(outcome.rewards[0], 100 * np.dtype(dtype).itemsize + 1)

    @BOTH
    def test_grids_arrive_as_wide_integers(self, sandbox: Sandbox, mode: Mode) -> None:
        grids = np.zeros((2, 4, 5, 3), np.uint8)
        grids[:, 1, 2, 0] = 7
        handle = sandbox.put([Trajectory(grids)])
        source = one("assert state.shape == (4, 5, 3)\nreturn state[0, 0, 0] - state[1, 2, 0]")
        np.testing.assert_array_equal(sandbox.run(source, handle, [0], mode=mode).rewards[0], [-7, -7])

    @BOTH
    def test_mixed_shapes_and_odd_memory_orders(self, sandbox: Sandbox, mode: Mode) -> None:
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
    def test_a_state_is_a_copy_of_its_own(self, sandbox: Sandbox, mode: Mode) -> None:
        handle = sandbox.put(vectors())
        spoil = one("before = float(state[0])\nstate[:] = -1\nassert state.flags.owndata\nreturn before")
        for _ in range(2):
            outcome = sandbox.run(spoil, handle, [0, 0], mode=mode)
            assert outcome.status == "ok", outcome
            for rewards in outcome.rewards:
                np.testing.assert_array_equal(rewards, [0, 2, 4, 6])

    @BOTH
    def test_a_module_is_fresh_for_each_trajectory(self, sandbox: Sandbox, mode: Mode) -> None:
        source = (
            "seen = []\nclass Reward:\n    def reward_fn(self, state):\n        seen.append(1)\n"
            "        return len(seen)\n"
        )
        outcome = sandbox.run(source, sandbox.put(vectors()), [0, 1], mode=mode)
        assert [rewards[-1] for rewards in outcome.rewards] == [4, 5]

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

    @BOTH
    def test_debug_text_follows_its_state(self, sandbox: Sandbox, mode: Mode) -> None:
        handle = sandbox.put(vectors())
        wanted = [DebugRequest(1, 3), DebugRequest(0, 0), DebugRequest(1, 0)]
        outcome = sandbox.run(COUNTER, handle, [2, 1], mode=mode, debug=wanted)
        assert outcome.debug == ("4: 1006", "1: 2000", "1: 1000")
        assert sandbox.run(one("return 1"), handle, [0], mode=mode, debug=[DebugRequest(0, 0)]).debug == ("",)

    @BOTH
    def test_debug_text_is_untrusted(self, sandbox: Sandbox, mode: Mode) -> None:
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
    def test_a_broken_debug_fn_leaves_the_rewards(self, sandbox: Sandbox, mode: Mode) -> None:
        source = one("return 1") + "    def debug_fn(self, state):\n        return 1 / 0\n"
        outcome = sandbox.run(source, sandbox.put(vectors()), [0], mode=mode, debug=[DebugRequest(0, 0)])
        assert outcome.status == "ok"
        assert outcome.debug == ("debug_fn raised ZeroDivisionError: division by zero",)

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
            (one("return 'x' * 10 ** 12"), "memory", "MemoryError"),
            (one("raise SystemExit"), "killed", "SystemExit"),
            (one("while True: pass"), "timeout", "the time limit"),
        ],
    )  # fmt: skip
    def test_failures(self, sandbox: Sandbox, mode: Mode, source: str, status: Status, words: str) -> None:
        handle = sandbox.put(vectors())
        outcome = sandbox.run(source, handle, [0, 1], mode=mode, limits=Limits(wall_s=0.3, memory_mb=64))
        assert outcome.status == status, outcome
        assert words in outcome.message
        assert "\n" not in outcome.message
        assert outcome.rewards == ()
        assert sandbox.run(one("return 1"), handle, [0], mode=mode).status == "ok"

    @BOTH
    def test_tracebacks_hold_the_programs_own_lines_only(self, sandbox: Sandbox, mode: Mode) -> None:
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

    @BOTH
    def test_what_models_write_is_allowed(self, sandbox: Sandbox, mode: Mode) -> None:
        source = '''
"""A reward."""
from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

import numpy as np
from lxml import etree


class Phase(Enum):
    FAR = 1
    NEAR = 2


@dataclass
class Memory:
    best: float = math.inf
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@lru_cache(maxsize=None)
def scale(n: int) -> float:
    return 1.0 / (1 + n)


class Base:
    def _value(self, state: np.ndarray) -> float:
        return float(np.linalg.norm(state))


class Reward(Base):
    STEP = 0.5

    def __init__(self, extra_info: str | None = None) -> None:
        self.memory = Memory()
        self._words = re.findall(r"\\\\w+", extra_info or "")
        self.base = 1

    def reward_fn(self, state) -> float:
        value = self._value(state)
        self.memory.best = min(self.memory.best, value)
        self.memory.seen["x"] += 1
        match self.memory.seen["x"]:
            case 1:
                phase = Phase.FAR
            case _:
                phase = Phase.NEAR
        print("value", value)
        total = self.__class__.STEP * scale(len(self._words)) * phase.value
        total += len(etree.fromstring("<a><b/></a>").xpath("//b")) + self.base
        return total


if __name__ == "__main__":
    print(Reward().reward_fn(np.zeros(3)))
'''
        outcome = sandbox.run(source, sandbox.put(vectors()), [0, 1], mode=mode)
        assert outcome.status == "ok", outcome

    @BOTH
    def test_what_loads_lazily_still_works(self, sandbox: Sandbox, mode: Mode) -> None:
        source = one(
            "import datetime, random, statistics, decimal, difflib, unicodedata, json\n"
            "datetime.datetime.strptime('2020-01-02', '%Y-%m-%d').strftime('%A')\n"
            "np.random.default_rng(1).normal(size=3); np.fft.fft(state); np.ma.masked_array(state).mean()\n"
            "np.polynomial.Polynomial([1, 2])(3); np.polyfit([1, 2, 3], [1, 2, 3], 1); np.linalg.eig(np.eye(2))\n"
            "np.char.upper(['a']); 'bücher.example'.encode('idna'); str(state); repr(np.array(['a', 1.5], dtype=object))\n"
            "statistics.median([1, 2]); decimal.Decimal('1.5').sqrt(); difflib.get_close_matches('a', ['ab'])\n"
            "json.loads(json.dumps({'a': [1.5, None]})); unicodedata.name('a'); np.einsum('i,i->', state, state)\n"
            "np.histogram(state, bins=3); np.quantile(state, 0.3); np.unique(state); np.pad(state, 1)\n"
            "np.datetime64('2020-01-01'); np.interp(0.5, [0, 1], [0, 1]); 'x'.encode('utf-16'); f'{1.5:,.2f}'\n"
            "np.lib.stride_tricks.sliding_window_view(state, 2); np.vectorize(float)(state)\n"
            "return 1"
        )
        outcome = sandbox.run(source, sandbox.put(vectors()), [0], mode=mode)
        assert outcome.status == "ok", outcome

    @BOTH
    def test_prints_go_nowhere(self, sandbox: Sandbox, mode: Mode, capfd: pytest.CaptureFixture[str]) -> None:
        source = one("import warnings\nprint('x' * 100000, flush=True)\nwarnings.warn('loud')\nreturn 1")
        assert sandbox.run(source, sandbox.put(vectors()), [0], mode=mode).status == "ok"
        assert capfd.readouterr() == ("", "")

    def test_inspection(self, sandbox: Sandbox) -> None:
        source = 'class Reward:\n    """Says why."""\n    def reward_fn(self, state):\n        return 1.0  # always\n'
        found = sandbox.inspect(source)
        assert (found.problems, found.takes_action) == ((), False)
        assert [function.name for function in found.functions] == ["Reward", "Reward.reward_fn"]
        assert len(found.id) == 16
        plain = sandbox.inspect("class Reward:\n  def reward_fn(self,state):\n    return 1.0\n")
        assert plain == found
        assert sandbox.inspect(TRANSITION).takes_action

    def test_inspection_executes_nothing(self, sandbox: Sandbox) -> None:
        found = sandbox.inspect("while True: pass\nclass Reward:\n    def reward_fn(self, s):\n        return 1\n")
        assert found.problems == ()

    @pytest.mark.parametrize(
        "source",
        ["def f(:", "\0", "x = " + "(" * 5000, "x = " + "-" * 60_000 + "1", "\ud800", "x" * 70_000, "a." * 20_000 + "b"],
    )  # fmt: skip
    def test_inspection_of_what_does_not_parse(self, sandbox: Sandbox, source: str) -> None:
        found = sandbox.inspect(source)
        assert found.problems
        assert len(found.id) == 16
        assert sandbox.run(source, sandbox.put(vectors()), [0]).status in ("syntax", "rejected", "contract", "killed")

    def test_a_long_source_is_refused(self, sandbox: Sandbox) -> None:
        source = one("return 1") + "#" * 65_536
        outcome = sandbox.run(source, sandbox.put(vectors()), [0])
        assert outcome.status == "rejected"
        assert "65536" in outcome.message

    def test_the_account(self, sandbox: Sandbox) -> None:
        outcome = sandbox.run(one("sum(range(300000))\nreturn 1"), sandbox.put(vectors()), [0])
        assert 0 < outcome.cpu_s <= outcome.wall_s + 0.1
        assert outcome.peak_mb > 1

    def test_cpu_time_is_limited(self, sandbox: Sandbox) -> None:
        limits = Limits(wall_s=20, cpu_s=0.3)
        outcome = sandbox.run(one("while True: pass"), sandbox.put(vectors()), [0], limits=limits)
        assert outcome.status == "timeout"
        assert "CPU" in outcome.message

    def test_wrong_calls_are_refused(self, sandbox: Sandbox) -> None:
        handle = sandbox.put(vectors())
        with pytest.raises(ValueError, match="order"):
            sandbox.run(COUNTER, handle, [3])
        with pytest.raises(ValueError, match="order"):
            sandbox.run(COUNTER, handle, [-1])
        with pytest.raises(ValueError, match="DebugRequest"):
            sandbox.run(COUNTER, handle, [0], debug=[DebugRequest(0, 4)])
        sandbox.drop(handle)
        sandbox.drop(handle)
        with pytest.raises(ValueError, match="handle"):
            sandbox.run(COUNTER, handle, [0])

    def test_threads(self, sandbox: Sandbox) -> None:
        handle = sandbox.put(vectors())

        def work(number: int) -> float:
            mode = MODES[number % 2]
            outcome = sandbox.run(one(f"return {number}"), handle, [0, 1, 2], mode=mode)
            assert sandbox.inspect(one(f"return {number}")).problems == ()
            return float(outcome.rewards[2][0])

        with ThreadPoolExecutor(2 * sandbox.workers + 1) as threads:
            assert list(threads.map(work, range(24))) == list(range(24))

    def test_handles_are_independent(self, sandbox: Sandbox) -> None:
        few, many = sandbox.put(vectors(1)), sandbox.put(vectors(3))
        assert few != many
        sandbox.drop(few)
        assert sandbox.run(COUNTER, many, [2]).status == "ok"
