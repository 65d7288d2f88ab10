"""Small sets with a known answer."""

from __future__ import annotations

import numpy as np

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory

THRESHOLD = 0.37


def vector_set(
    experts: int = 6,
    negatives: int = 6,
    length: int = 12,
    *,
    seed: int = 0,
    noise: float = 0.0,
    tasks: tuple[str, ...] = ("default",),
    actions: bool = False,
) -> Demonstrations:
    """Vectors of three numbers; an expert's second is above `THRESHOLD`, a negative's below."""
    rng = np.random.default_rng(seed)
    items = []
    for task in tasks:
        for role, count in (("expert", experts), ("negative", negatives)):
            for number in range(count):
                states = rng.normal(size=(length, 3))
                side = 1.0 if role == "expert" else -1.0
                states[:, 1] = THRESHOLD + side * rng.uniform(0.05, 1.0, size=length)
                flip = rng.random(length) < noise
                states[flip, 1] = 2 * THRESHOLD - states[flip, 1]
                taken = rng.integers(0, 4, size=length - 1) if actions else None
                trajectory = Trajectory(states, taken, source=f"{task}/{role}/{number}")
                items.append(Demonstration(trajectory, role, task))
    return Demonstrations(Metadata("vector", label="all"), tuple(items))
