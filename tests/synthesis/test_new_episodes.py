"""From freshly collected BabyAI demonstrations to a program that knows the goals of new episodes, without a model."""

from __future__ import annotations

import asyncio
import importlib.util
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grace_irl.demos.labels import label
from grace_irl.demos.scramble import ScrambleMap
from grace_irl.demos.trajectory import Demonstrations
from grace_irl.evaluate.metrics import ranking
from grace_irl.programs.check import read
from grace_irl.search.protocol import Request
from grace_irl.synthesis import Synthesiser
from tests.synthesis.worlds import rewards_of_all

if TYPE_CHECKING:
    from grace_irl.demos.trajectory import Role

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("minigrid") is None, reason="minigrid is not installed: pip install 'grace-irl[rl]'"
)
TRAIN, HELD_OUT = 8, 20
"""Experts, and as many negatives."""


@cache
def collected(level: str, episodes: int, seed: int) -> Demonstrations:
    """Episodes of the bot and of a random agent."""
    from grace_irl.rl.collect import collect

    roles: tuple[tuple[Role, str], ...] = (("expert", "bot"), ("negative", "random"))
    parts = [
        collect(f"BabyAI-{level}-v0", policy, episodes, role, seed=seed + number)
        for number, (role, policy) in enumerate(roles)
    ]
    return replace(parts[0], items=tuple(item for part in parts for item in part))


@pytest.mark.parametrize("scrambled", [False, True], ids=["plain", "scrambled"])
@pytest.mark.parametrize("level", ["GoToObj", "OpenRedDoor", pytest.param("PutNextLocal", marks=pytest.mark.slow)])
def test_goals_are_told_on_new_episodes(level: str, scrambled: bool) -> None:
    train, held_out = collected(level, TRAIN, 10), collected(level, HELD_OUT, 20)
    if scrambled:
        change = ScrambleMap.draw(7, train[0].trajectory)
        train, held_out = (
            Demonstrations(change.metadata(one.metadata), tuple(map(change.apply, one))) for one in (train, held_out)
        )
    synthesiser = Synthesiser(label(train, "last"), 0)
    answer = asyncio.run(synthesiser.propose(Request(0, "initialise"), ()))
    assert read(answer.source).problems == ()
    items = label(held_out, "last").items
    assert len(items) == 2 * HELD_OUT
    values = rewards_of_all(
        answer.source, [i.trajectory.states for i in items], [i.trajectory.extra_info for i in items]
    )
    found = ranking(np.concatenate(values), np.concatenate([item.positive for item in items]))
    assert found.accuracy >= 0.99
