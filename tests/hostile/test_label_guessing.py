"""Programs that guess labels from anything but the state: what batch mode gives them, and what strict mode says.

The set is the worst case: experts were put first, the states are noise, so only cheating can tell them apart.
"""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import Outcome

EXPERTS, NEGATIVES, STATES = 40, 40, 5
COUNT = EXPERTS + NEGATIVES

STASHES = {
    "counting calls on numpy": "np.calls = getattr(np, 'calls', 0) + 1; return -float(np.calls)",
    "counting calls on builtins": "import builtins; builtins.calls = getattr(builtins, 'calls', 0) + 1; return -float(builtins.calls)",
    "counting calls in a loaded module": "import json; json.calls = getattr(json, 'calls', 0) + 1; return -float(json.calls)",
    "counting calls in a frame": "f = sys._getframe()\n        while f.f_back: f = f.f_back\n        f.f_globals['calls'] = f.f_globals.get('calls', 0) + 1; return -float(f.f_globals['calls'])",
    "time since the start": "import time; np.t0 = getattr(np, 't0', None) or time.perf_counter(); return -(time.perf_counter() - np.t0)",
    "address of the state": "return -float(id(state) % 10 ** 9)",
    "address of the buffer": "return -float(state.ctypes.data % 10 ** 9)",
    "allocated objects": "return -float(sys.getallocatedblocks())",
    "identity of the module": "np.seen = getattr(np, 'seen', []) + [sys.modules['reward']]; return -float(len(np.seen))",
    "random numbers carried over": "np.rng = getattr(np, 'rng', None) or np.random.default_rng(0); return float(np.rng.random())",
    "os.urandom": "return float(os.urandom(1)[0])",
}

WALKS = {
    "later states": "v = find(lambda k, v: type(v).__name__ in ('Views', 'View')); return 1.0 if v is not None else 0.0",
    "its own results": "v = find(lambda k, v: type(v).__name__ == 'Answer'); return 1.0 if v is not None else 0.0",
    "views among all objects": "import gc; return float(any(type(o).__name__ in ('Views', 'View', 'Feed', 'Player') for o in gc.get_objects()))",
    "maps in its memory": "import gc; return float(sum(type(o).__name__ == 'mmap' and len(o) > 0 for o in gc.get_objects()))",
}

FIND = """
def find(wanted):
    frame = sys._getframe()
    while frame is not None:
        for name, value in list(frame.f_locals.items()):
            if name not in ("wanted", "frame") and frame.f_code.co_filename != "reward.py" and wanted(name, value):
                return value
        frame = frame.f_back
    return None
"""


def _program(body: str) -> str:
    return (
        "import os, sys\nimport numpy as np\n" + FIND + "\nclass Reward:\n"
        f"    def __init__(self, extra_info=None):\n        pass\n    def reward_fn(self, state):\n        {body}\n"
    )


@pytest.fixture(scope="module")
def pool() -> Iterator[ZygotePool]:
    with ZygotePool(1) as pool:
        yield pool


@pytest.fixture(scope="module")
def handle(pool: ZygotePool) -> int:
    random = np.random.default_rng(1)
    return pool.put([Trajectory(random.normal(size=(STATES, 4))) for _ in range(COUNT)])


def auc(outcome: Outcome, order: list[int]) -> float:
    """Probability that a random expert state outranks a random negative one, as the host would compute it."""
    values = dict(zip(order, outcome.rewards, strict=True))
    expert = np.concatenate([values[i] for i in range(EXPERTS)])[:, None]
    negative = np.concatenate([values[i] for i in range(EXPERTS, COUNT)])[None, :]
    return float((expert > negative).mean() + (expert == negative).mean() / 2)


@pytest.mark.parametrize("name", STASHES)
def test_strict_mode_rejects_what_is_not_in_the_trajectory(pool: ZygotePool, handle: int, name: str) -> None:
    outcome = pool.run_unchecked(_program(STASHES[name]), handle, range(COUNT), mode="strict")
    if name.startswith("address") and outcome.status == "ok":  # the same addresses in any order: they say nothing
        assert abs(auc(outcome, list(range(COUNT))) - 0.5) < 0.26
    else:
        assert outcome.status == "mismatch", outcome
        assert outcome.rewards == ()


def test_counting_calls_works_where_experts_come_first(pool: ZygotePool, handle: int) -> None:
    source = _program(STASHES["counting calls on numpy"])
    outcome = pool.run_unchecked(source, handle, range(COUNT))
    assert auc(outcome, list(range(COUNT))) == 1.0


@pytest.mark.parametrize("name", STASHES)
def test_a_shuffled_order_leaves_noise(pool: ZygotePool, handle: int, name: str) -> None:
    order = [int(i) for i in np.random.default_rng(2).permutation(COUNT)]
    outcome = pool.run_unchecked(_program(STASHES[name]), handle, order)
    assert outcome.status == "ok", outcome
    # 40 against 40 trajectories: the standard deviation of a guess by order is 0.065
    assert abs(auc(outcome, order) - 0.5) < 0.26


def test_the_index_that_a_frame_walk_finds_says_nothing(pool: ZygotePool, handle: int) -> None:
    body = (
        "v = find(lambda k, v: type(v).__name__ == 'Answer'); np.at = getattr(np, 'at', -1) + 1; "
        f"return -float(v.order()[np.at // {STATES}])"
    )
    order = [int(i) for i in np.random.default_rng(3).permutation(COUNT)]
    outcome = pool.run_unchecked(_program(body), handle, order)
    assert outcome.status == "ok", outcome
    assert abs(auc(outcome, order) - 0.5) < 0.26


@pytest.mark.parametrize("name", WALKS)
def test_strict_mode_holds_nothing_to_be_found(pool: ZygotePool, handle: int, name: str) -> None:
    source = _program(WALKS[name])
    strict = pool.run_unchecked(source, handle, range(COUNT), mode="strict")
    assert strict.status == "ok", strict
    assert not any(rewards.any() for rewards in strict.rewards)
    # batch mode holds all of it, which is why elites and winners are scored in strict mode
    batch = pool.run_unchecked(source, handle, range(COUNT))
    assert batch.status == "ok", batch
    assert any(rewards.any() for rewards in batch.rewards)
    if name != "views among all objects":  # batch mode holds them, which is why elites are scored in strict mode
        batch = pool.run_unchecked(source, handle, range(COUNT))
        assert batch.status == "ok", batch
        assert any(rewards.any() for rewards in batch.rewards)


def test_strict_mode_holds_no_state_in_its_memory(pool: ZygotePool) -> None:
    """Reads all of its own writable memory for the bytes of the last state, which it has not been shown yet."""
    secret = np.frombuffer(b"GRACEIRL-NEEDLE-IN-A-STATE-00000", dtype=np.float64).copy()
    states = np.zeros((2, len(secret)))
    states[1] = secret
    needle = [byte ^ 0xFF for byte in secret.tobytes()]  # inverted, so that the source itself does not hold it
    source = f"""
import ctypes
SCAN = 64 << 20

class Reward:
    def __init__(self, extra_info=None):
        self.found = 0.0
    def reward_fn(self, state):
        if self.found or state[0] != 0:
            return self.found
        import gc
        needle = bytes(byte ^ 255 for byte in {needle!r})
        here = id(needle)
        blocks = sorted({{id(o) & ~0xFFF for o in gc.get_objects()}})
        hits = 0
        for block in blocks:
            data = ctypes.string_at(block, 4096)
            at = data.find(needle)
            while at >= 0:
                if abs(block + at - here) > 200:
                    hits += 1
                at = data.find(needle, at + 1)
            del data
        return float(hits > 0)
"""
    handle = pool.put([Trajectory(states)])
    outcome = pool.run_unchecked(source, handle, [0], mode="strict")
    assert outcome.status == "ok", outcome
    assert not outcome.rewards[0].any()


def test_an_honest_program_passes(pool: ZygotePool, handle: int) -> None:
    source = "class Reward:\n    def __init__(self, extra_info=None):\n        self.n = 0\n    def reward_fn(self, state):\n        self.n += 1\n        return float(state[0]) + self.n\n"
    order = [int(i) for i in np.random.default_rng(4).permutation(COUNT)]
    batch, strict = (pool.run(source, handle, order, mode=mode) for mode in ("batch", "strict"))  # type: ignore[arg-type]
    assert batch.status == strict.status == "ok"
    assert all(map(np.array_equal, batch.rewards, strict.rewards))
