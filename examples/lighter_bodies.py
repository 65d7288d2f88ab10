"""Bodies with other dynamics, to which a reward that was recovered on the usual ones can be carried.

grace-irl compare --demos DEMOS --env Hopper-v5 --transfer-env examples/lighter_bodies.py:hopper
"""

from __future__ import annotations

from typing import Any

import gymnasium

from grace_irl.rl.views import VectorStateView

MASS = 0.7
"""Of the usual mass of the torso."""


def _lighter(name: str) -> tuple[Any, VectorStateView]:
    environment: Any = gymnasium.make(name)
    environment.unwrapped.model.body_mass[1] *= MASS  # 0 is the world, 1 the torso
    return environment, VectorStateView(name, environment.observation_space)


def hopper() -> tuple[Any, VectorStateView]:
    """Hopper with a light torso."""
    return _lighter("Hopper-v5")


def half_cheetah() -> tuple[Any, VectorStateView]:
    """HalfCheetah with a light torso."""
    return _lighter("HalfCheetah-v5")
