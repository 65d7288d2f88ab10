"""Episodes of two numbers in memory, for tests of objects."""

from typing import Any

import numpy as np

from grace_irl.demos.given import in_memory
from grace_irl.demos.trajectory import Demonstration


def walks(count: int = 3, steps: int = 4) -> list[np.ndarray]:
    """Whole numbers, no two states alike."""
    return [np.arange(steps * 2, dtype=float).reshape(steps, 2) + 10 * number for number in range(count)]


def read(value: Any, **more: Any) -> list[Demonstration]:
    """All episodes of an object as experts'."""
    found = in_memory((), value, (), **more)
    assert found is not None
    assert {each.role for each in found} == {"expert"}
    return list(found)


def path(states: np.ndarray, **more: Any) -> dict[str, Any]:
    """An episode with one row for each step, as rollout loops write it."""
    ends = np.arange(1, len(states)) == len(states) - 1
    return {
        "observation": states[:-1],
        "next_observation": states[1:],
        "action": np.arange(len(states) - 1),
        "reward": ends.astype(float),
        "terminal": ends,
        **more,
    }
