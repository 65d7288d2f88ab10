"""Programs that tell two files apart by how they were recorded: what one state shows must say nothing of it.

Experts come from one file and negatives from another, the states are the same noise, and every program returns
what it finds of a type, a layout or a precision. Each of these told all roles where a file's own types were kept.
"""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grace_irl.demos.memory import Region
from grace_irl.demos.trajectory import Trajectory
from grace_irl.sandbox.pool import ZygotePool
from grace_irl.sandbox.protocol import Mode
from tests.hostile.frames import FIND
from tests.sandbox.samples import BOTH

EACH, STATES = 12, 3
COUNT = 2 * EACH

Recording = Callable[[NDArray[np.float64]], Trajectory]


def _in_region(states: NDArray[Any]) -> Trajectory:
    region = Region()
    block = region.allocate(states.shape, states.dtype)
    block[:] = states
    block.flags.writeable = False
    return Trajectory(block)


def _read_only(states: NDArray[Any]) -> Trajectory:
    states.flags.writeable = False
    return Trajectory(states)


def _grid(dtype: str, order: str = "C") -> Recording:
    return lambda noise: Trajectory(
        np.asarray(np.abs(noise[:, :3, None, None] * np.ones((1, 1, 2, 3)) * 9), dtype=dtype, order=order)
    )  # type: ignore[call-overload]


def _acting(dtype: str, shape: tuple[int, ...] = ()) -> Recording:
    return lambda noise: Trajectory(noise, actions=np.ones((STATES - 1, *shape), dtype))


def _stored(*dtypes: str) -> Recording:
    def record(noise: NDArray[np.float64]) -> Trajectory:
        for dtype in dtypes:
            noise = noise.astype(dtype)
        return Trajectory(noise)

    return record


FILES: dict[str, tuple[Recording, Recording]] = {
    "float32 beside float64": (_stored("f4"), _stored("f8")),
    "float64 beside float32": (_stored("f8"), _stored("f4")),
    "float16 beside float64": (_stored("f2"), _stored("f8")),
    "widened beside float64": (_stored("f4", "f8"), _stored("f8")),
    "float32 beside widened": (_stored("f4"), _stored("f4", "f8")),
    "the other byte order": (_stored(">f8"), _stored("<f8")),
    "the other memory order": (lambda noise: Trajectory(np.asfortranarray(noise)), Trajectory),
    "every second row of a table": (lambda noise: Trajectory(np.repeat(noise, 2, axis=0)[::2]), Trajectory),
    "read-only": (_read_only, Trajectory),
    "in a region": (_in_region, Trajectory),
    "grids of bytes beside wide ones": (_grid("u1"), _grid("i8")),
    "grids of the other byte order": (_grid(">i2"), _grid("<i2", "F")),
    "actions in one file only": (_acting("f8"), Trajectory),
    "actions of another type": (_acting("i8"), _acting("f4")),
    "actions of another shape": (_acting("f8", (1,)), _acting("f8")),
    "actions in rows and columns": (_acting("f8", (2, 3)), _acting("f8", (6,))),
}

TRACES = {
    "type": "return float(sum(map(ord, state.dtype.str)))",
    "byte order": "return float(state.dtype.isnative)",
    "flags": "return float(state.flags.num)",
    "strides": "return float(sum((i + 1) * s for i, s in enumerate(state.strides)))",
    "who owns it": "return float(state.base is None)",
    "alignment": "return float(state.ctypes.data % 16)",
    "precision of float32": "return float((state.astype(np.float32) == state).all())",
    "precision of float16": "return float((state.astype(np.float16) == state).all())",
    "numbers too small for float32": "return float(((state != 0) & (np.abs(state) < 1e-38)).any())",
    "the instruction's type": "return float(sum(map(ord, type(self.extra_info).__name__)))",
    "the stored type in a frame": "v = find('Views', 'Stage'); return float(sum(map(ord, repr(v._layout.parts)))) if hasattr(v, '_layout') else float(sum(map(ord, v[at()].arrays[0].dtype.str)))",
    "the stored layout in a frame": "v = find('Views', 'Stage'); return float(len(v._last)) if hasattr(v, '_last') else float(sum(v[at()].arrays[0].strides) + v[at()].arrays[0].flags.num)",
    "actions in a frame": "v = find('Views', 'Stage'); return float(v._actions is not None) if hasattr(v, '_layout') else float(v[at()].actions is not None and 1 + v[at()].actions.ndim)",
}

PROGRAM = f"""{FIND}
import numpy as np
def at():
    np.at = getattr(np, 'at', -1) + 1
    return np.at // STATES
class Reward:
    def __init__(self, extra_info=None):
        self.extra_info = extra_info
    def reward_fn(self, ARGUMENTS):
        BODY
"""


def _source(body: str, arguments: str = "state") -> str:
    body = body.replace("at()", "i") if body.count("at()") > 1 else body
    body = body.replace("v = find", "i = at(); v = find") if "[i]" in body else body
    return PROGRAM.replace("STATES", str(STATES)).replace("ARGUMENTS", arguments).replace("BODY", body)


@pytest.fixture(scope="module")
def pool() -> Iterator[ZygotePool]:
    with ZygotePool(1) as pool:
        yield pool


def _trajectories(name: str) -> list[Trajectory]:
    """Experts as one file holds them, then negatives as the other does."""
    random = np.random.default_rng(0)
    expert, negative = FILES[name]
    noise = random.normal(size=(COUNT, STATES, 4))
    noise[:, :, 3] *= 1e-42  # beyond what float32 holds in full
    return [(expert if number < EACH else negative)(states) for number, states in enumerate(noise)]


def _auc(pool: ZygotePool, handle: int, source: str, mode: Mode) -> float:
    order = [int(i) for i in np.random.default_rng(5).permutation(COUNT)]
    outcome = pool.run(source, handle, order, mode=mode, checks=False)
    assert outcome.status == "ok", outcome
    values = np.array([outcome.rewards[order.index(i)][-1] for i in range(COUNT)])
    expert, negative = values[:EACH, None], values[None, EACH:]
    return float((expert > negative).mean() + (expert == negative).mean() / 2)


@BOTH
@pytest.mark.parametrize("name", FILES)
def test_a_state_says_nothing_of_its_file(pool: ZygotePool, name: str, mode: Mode) -> None:
    handle = pool.put(_trajectories(name))
    found = {trace: _auc(pool, handle, _source(body), mode) for trace, body in TRACES.items()}
    assert found == dict.fromkeys(TRACES, 0.5)
    pool.drop(handle)


@BOTH
@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("actions of") or "rows" in name])
@pytest.mark.parametrize(
    "body",
    [
        "return float(sum(map(ord, str(type(action)) + str(getattr(action, 'dtype', '')))))",
        "return float(np.ndim(action) + 10 * np.size(action))",
        "return float(getattr(action, 'flags', np.zeros(1).flags).num)",
    ],
)
def test_an_action_says_nothing_of_its_file(pool: ZygotePool, name: str, body: str, mode: Mode) -> None:
    handle = pool.put(_trajectories(name))
    assert _auc(pool, handle, _source(body, "state, action, next_state"), mode) == 0.5
    pool.drop(handle)


@BOTH
def test_states_that_differ_are_told_apart(pool: ZygotePool, mode: Mode) -> None:
    """The control: the same measure finds a difference that lies in the states."""
    random = np.random.default_rng(0)
    handle = pool.put([Trajectory(random.normal(float(number < EACH) * 9, 1, (STATES, 4))) for number in range(COUNT)])
    assert _auc(pool, handle, _source("return float(state[0])"), mode) == 1.0
    pool.drop(handle)
