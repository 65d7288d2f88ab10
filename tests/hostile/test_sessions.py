"""Attacks in a session, where a program lives on: those that go for processes, descriptors and answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from grace_irl.errors import GraceError
from grace_irl.sandbox.session import Begin, RewardSession, SessionLimits
from grace_irl.states.layout import StateLayout
from grace_irl.states.vector import VECTOR
from tests.hostile import processes, values
from tests.hostile.attack import Attack
from tests.hostile.ground import SECRET, zygotes
from tests.hostile.referee import Contest

ATTACKS = [*processes.ATTACKS, *values.ATTACKS]


@pytest.fixture(scope="module")
def contest() -> Iterator[Contest]:
    contest = Contest()
    yield contest
    contest.close()


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_in_a_session_reaches_nothing(contest: Contest, attack: Attack) -> None:
    source = contest.ground.fill_in(attack.source, contest.pool)
    before = zygotes(contest.pool)
    limits = SessionLimits(turn_s=min(attack.wall_s, 5.0), memory_mb=attack.memory_mb)
    states = contest.trajectories[0].states
    layout, said = StateLayout.of(VECTOR, states[0]), ""
    session = RewardSession(source, "reward.py", layout, pool=contest.pool, limits=limits, checks=False)
    with session:
        try:
            session.turn((), None, (), [Begin(slot, states[0], "") for slot in range(2)])
            for state in states[1:]:
                rewards = session.turn(range(2), np.zeros(2), [state, state]).rewards
                assert "ok" not in attack.statuses or not rewards.any(), "it says that it worked"
        except GraceError as error:
            said = str(error)
    assert contest.ground.damage(contest.pool, before) == []
    assert SECRET not in said
    assert said.isprintable()
