"""Programs that tell two files of screens apart by how they were stored: nothing of a width or a padding is left."""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import Mode
from grace_irl.states.texts import pack
from tests.demos.conftest import screen
from tests.hostile.frames import FIND
from tests.sandbox.samples import BOTH

EACH, STATES = 10, 3

TRACES = {
    "length": "return float(len(state))",
    "size in memory": "return float(sys.getsizeof(state))",
    "characters": "return float(sum(map(ord, state)))",
    "null characters": "return float(state.count(chr(0)) + state.encode().count(0))",
    "bytes of the last screen in a frame": "v = find('Stage'); return float(len(v._last)) if v else 0.0",
    "what a frame says of its place": "v = find('TrajectoryView'); return float(sum(v._views._place(int(code))[1] for code in v.arrays[0])) if v else 0.0",
    "what lies behind a screen": "v = find('TrajectoryView')\n        if not v: return 0.0\n        at, size = v._views._place(int(v.arrays[0][0]))\n        return float(v._views._map[at + size : at + size + 1] == bytes(1))",
    "nulls in the memory of the run": "v = find('TrajectoryView'); return float(v._views._map[v._views._place(int(v.arrays[0][0]))[0] :].rstrip(bytes(1)).count(0)) if v else 0.0",
    "dimensions in a frame": "v = find('Stage'); return float(len(v._layout.parts)) if v else 0.0",
}

PROGRAM = f"""{FIND}
class Reward:
    def reward_fn(self, state):
        BODY
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[ZygotePool]:
    with ZygotePool(1) as pool:
        yield pool


@BOTH
@pytest.mark.parametrize("trace", TRACES)
def test_a_screen_says_nothing_of_how_wide_its_file_is(pool: ZygotePool, trace: str, mode: Mode) -> None:
    random = np.random.default_rng(0)
    trajectories = []
    for _ in range(EACH):
        states = pack([screen("x" * int(n)) for n in random.integers(1, 300, STATES)])
        # an expert's screens lie in a wide array, those of a negative trajectory beside no longer one
        trajectories += [Trajectory(states.astype("S4000")), Trajectory(states)]
    handle = pool.put(trajectories)
    order = [int(index) for index in random.permutation(2 * EACH)]
    source = PROGRAM.replace("BODY", TRACES[trace])
    outcome = pool.run(source, handle, order, mode=mode, checks=False)
    pool.drop(handle)
    assert outcome.status == "ok", outcome
    found = {index: rewards.tolist() for index, rewards in zip(order, outcome.rewards, strict=True)}
    assert all(found[expert] == found[expert + 1] for expert in range(0, 2 * EACH, 2))
