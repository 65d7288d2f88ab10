"""Reward programs for CartPole, and environments of the user's own that are like it."""

from __future__ import annotations

import math
from typing import Any

import gymnasium

from grace_irl.demos.trajectory import Metadata
from grace_irl.rl.environments import FunctionView

UPRIGHT = """class Reward:
    def __init__(self, extra_info=None): pass
    def reward_fn(self, state): return float(abs(state[2]) < 0.05)
"""
FAILS = """class Reward:
    def __init__(self, extra_info=None): self.steps = 0
    def reward_fn(self, state):
        self.steps += 1
        if self.steps > 5:
            raise ValueError("it broke\\nbadly")
        return 1.0
"""
ENDS = """import os
class Reward:
    def __init__(self, extra_info=None): print("good-bye", flush=True)
    def reward_fn(self, state): os._exit(3)
"""


def _view(name: str) -> FunctionView:
    return FunctionView(Metadata("vector", (), name, "vector"))


def heavy() -> tuple[Any, FunctionView]:
    """CartPole with a heavier pole."""
    environment: Any = gymnasium.make("CartPole-v1")
    environment.unwrapped.masspole *= 3
    return environment, _view("CartPole-v1")


class _Barred(gymnasium.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> Any:
        observation, _, *rest = super().step(action)
        return observation, -math.inf, *rest


def barred() -> tuple[Any, FunctionView]:
    """CartPole that pays the logarithm of 0."""
    return _Barred(gymnasium.make("CartPole-v1")), _view("CartPole-v1")


class _Breaks(gymnasium.Wrapper[Any, Any, Any, Any]):
    steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps > 50:
            raise RuntimeError("its motor burnt out")
        return super().step(action)


def breaks() -> tuple[Any, FunctionView]:
    """CartPole that breaks after 50 steps."""
    return _Breaks(gymnasium.make("CartPole-v1")), _view("CartPole-v1")
