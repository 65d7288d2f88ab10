"""Programs that guess labels from anything but the state: what batch mode gives them, and what strict mode says.

The set is the worst case: experts were put first, the states are noise, so only cheating can tell them apart.
"""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from __future__ import annotations

import platform
from collections.abc import Iterator

import numpy as np
import pytest

from grace_irl.demos.memory import Region
from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.kernel import ARCHITECTURES
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
    "later states": "v = find(lambda k, v: type(v).__name__ in ('Views', 'TrajectoryView')); return 1.0 if v is not None else 0.0",
    "its own results": "v = find(lambda k, v: type(v).__name__ == 'AnswerMap'); return 1.0 if v is not None else 0.0",
    "views among all objects": "import gc; return float(any(type(o).__name__ in ('Views', 'TrajectoryView', 'Feed', 'Player') for o in gc.get_objects()))",
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


@pytest.fixture(scope="module", params=["heap", "region"])
def handle(pool: ZygotePool, request: pytest.FixtureRequest) -> int:
    """Experts first, in memory of their own or in a region, where they lie in the order of their files."""
    random = np.random.default_rng(1)
    states = random.normal(size=(COUNT, STATES, 4))
    if request.param == "heap":
        return pool.put([Trajectory(block.copy()) for block in states])
    region = Region()
    block = region.allocate(states.shape, states.dtype)
    block[:] = states
    block.flags.writeable = False
    return pool.put(list(map(Trajectory, block)))


def auc(outcome: Outcome, order: list[int]) -> float:
    """Probability that a random expert state outranks a random negative one, as the host would compute it."""
    values = dict(zip(order, outcome.rewards, strict=True))
    expert = np.concatenate([values[i] for i in range(EXPERTS)])[:, None]
    negative = np.concatenate([values[i] for i in range(EXPERTS, COUNT)])[None, :]
    return float((expert > negative).mean() + (expert == negative).mean() / 2)


@pytest.mark.parametrize("name", STASHES)
def test_strict_mode_rejects_what_is_not_in_the_trajectory(pool: ZygotePool, handle: int, name: str) -> None:
    outcome = pool.run(_program(STASHES[name]), handle, range(COUNT), mode="strict", checks=False)
    if name.startswith("address") and outcome.status == "ok":  # the same addresses in any order: they say nothing
        assert abs(auc(outcome, list(range(COUNT))) - 0.5) < 0.26
    else:
        assert outcome.status == "mismatch", outcome
        assert outcome.rewards == ()


def test_counting_calls_works_where_experts_come_first(pool: ZygotePool, handle: int) -> None:
    source = _program(STASHES["counting calls on numpy"])
    outcome = pool.run(source, handle, range(COUNT), checks=False)
    assert auc(outcome, list(range(COUNT))) == 1.0


@pytest.mark.parametrize("name", STASHES)
def test_a_shuffled_order_leaves_noise(pool: ZygotePool, handle: int, name: str) -> None:
    order = [int(i) for i in np.random.default_rng(2).permutation(COUNT)]
    outcome = pool.run(_program(STASHES[name]), handle, order, checks=False)
    assert outcome.status == "ok", outcome
    # 40 against 40 trajectories: the standard deviation of a guess by order is 0.065
    assert abs(auc(outcome, order) - 0.5) < 0.26


@pytest.mark.parametrize("where", ["arrays[0].ctypes.data", "arrays[0].__array_interface__['data'][0]"])
def test_the_place_in_memory_that_a_frame_walk_finds_says_nothing(pool: ZygotePool, handle: int, where: str) -> None:
    body = (
        "v = find(lambda k, v: type(v).__name__ == 'Views'); np.at = getattr(np, 'at', -1) + 1; "
        f"return -float(v[np.at // {STATES}].{where} % 10 ** 9)"
    )
    order = [int(i) for i in np.random.default_rng(3).permutation(COUNT)]
    outcome = pool.run(_program(body), handle, order, checks=False)
    assert outcome.status == "ok", outcome
    assert len({float(rewards[0]) for rewards in outcome.rewards}) == COUNT  # it did find a place for each
    assert abs(auc(outcome, order) - 0.5) < 0.26


def test_a_run_holds_its_own_trajectories_only(pool: ZygotePool, handle: int) -> None:
    body = "v = find(lambda k, v: type(v).__name__ == 'Views'); return float(len(v) * 10 ** 6 + v.mapped)"
    few, all_ = (pool.run(_program(body), handle, range(n), checks=False).rewards[0][0] for n in (2, COUNT))
    assert few // 10**6 == 2
    assert few % 10**6 < 1000 < all_ % 10**6


@pytest.mark.parametrize("name", WALKS)
def test_strict_mode_holds_nothing_to_be_found(pool: ZygotePool, handle: int, name: str) -> None:
    source = _program(WALKS[name])
    strict = pool.run(source, handle, range(COUNT), mode="strict", checks=False)
    assert strict.status == "ok", strict
    assert not any(rewards.any() for rewards in strict.rewards)
    # batch mode holds all of it, which is why elites and winners are scored in strict mode: the walk does find it
    batch = pool.run(source, handle, range(COUNT), checks=False)
    assert batch.status == "ok", batch
    assert all(rewards.all() for rewards in batch.rewards)


@pytest.mark.skipif(platform.machine() not in ARCHITECTURES, reason="no table of system calls for this machine")
@pytest.mark.parametrize("shown", [False, True])
def test_strict_mode_holds_no_state_in_its_memory(pool: ZygotePool, shown: bool) -> None:
    """Reads all of its own objects' memory for the bytes of a state, which is found once it has been shown."""
    secret = np.frombuffer(b"GRACEIRL-NEEDLE-IN-A-STATE-00000", dtype=np.float64).copy()
    states = np.zeros((2, len(secret)))
    states[1] = secret
    needle = [byte ^ 0xFF for byte in secret.tobytes()]  # inverted, so that the source itself does not hold it
    readable = ARCHITECTURES[platform.machine()].allowed["rt_sigprocmask"]
    source = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)

class Reward:
    def __init__(self, extra_info=None):
        self.found = 0.0
    def reward_fn(self, state):
        if self.found or (state[0] != 0) != {shown}:
            return self.found
        import gc
        needle = bytes(byte ^ 255 for byte in {needle!r})
        here = id(needle) + bytes.__basicsize__ - 1  # its own copy does not count
        # the allocator's whole arenas, not only the pages in which an object lies that the collector knows
        near = {{(id(o) >> 20) + step for o in gc.get_objects() for step in (-1, 0, 1)}}
        hits, before = 0, b""
        for block in sorted(near):
            for page in range(block << 20, (block + 1) << 20, 4096):
                # a call that fails with EINVAL where it can read its argument, and with EFAULT where it cannot
                libc.syscall({readable}, 99, ctypes.c_void_p(page), None, 8)
                data = ctypes.string_at(page, 4096) if ctypes.get_errno() == errno.EINVAL else b""
                both = before[-64:] + data
                at = both.find(needle)
                while at >= 0:
                    hits += page - len(before[-64:]) + at != here
                    at = both.find(needle, at + 1)
                before = data
                del both
        return float(hits > 0)
"""
    handle = pool.put([Trajectory(states)])
    outcome = pool.run(source, handle, [0], mode="strict", checks=False)
    assert outcome.status == "ok", outcome
    assert outcome.rewards[0].tolist() == [0.0, float(shown)]


def test_an_honest_program_passes(pool: ZygotePool, handle: int) -> None:
    source = "class Reward:\n    def __init__(self, extra_info=None):\n        self.n = 0\n    def reward_fn(self, state):\n        self.n += 1\n        return float(state[0]) + self.n\n"
    order = [int(i) for i in np.random.default_rng(4).permutation(COUNT)]
    batch, strict = (pool.run(source, handle, order, mode=mode) for mode in ("batch", "strict"))  # type: ignore[arg-type]
    assert batch.status == strict.status == "ok"
    assert all(map(np.array_equal, batch.rewards, strict.rewards))
