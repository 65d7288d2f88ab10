"""Features whose values hardly depend on behaviour, up to noise."""

from __future__ import annotations

import numpy as np

from grace_irl.audit.suspects import suspects
from grace_irl.demos.labels import label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory


def test_an_exact_constant_is_none_of_noise() -> None:
    """A constant such as -0.4 has no exact binary value, so its computed deviation may be above 0."""
    rng = np.random.default_rng(0)
    items = []
    for role in ("expert", "negative"):
        for _ in range(21):
            walk, noise = rng.normal(size=(2, 5))
            states = np.column_stack([walk.cumsum(), np.full(5, -0.4), 9.81 + 0.01 * noise])
            items.append(Demonstration(Trajectory(states), role))  # type: ignore[arg-type]
    found = suspects(label(Demonstrations(Metadata("vector"), tuple(items)), "last").items, ())
    assert found.constants == (2,)
