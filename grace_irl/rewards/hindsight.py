"""Refusal of hindsight replay, which asks an environment for rewards of goals that no episode pursued.

The method `compute_reward` of a goal environment gets two goals, and a recovered reward reads whole states. Without the
refusal, the call would reach the environment inside a wrapper, and the learner would get its own reward.
"""

from __future__ import annotations

from typing import NoReturn

from grace_irl.errors import InputError

METHOD = "compute_reward"
"""Name of the method of goal environments that `HerReplayBuffer` of Stable-Baselines3 calls."""


def refuse() -> NoReturn:
    """Refuse a call of `METHOD`.

    Raises:
        InputError: always.
    """
    raise InputError(
        f"{METHOD} of the recovered reward, which reads whole states and not goals alone; expected a learner without "
        "hindsight: another buffer than HerReplayBuffer"
    )
