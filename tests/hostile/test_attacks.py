"""Every hostile class of docs/sandbox.md, really executed, with the static checks off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grace_irl.sandbox.protocol import Mode
from tests.hostile.attack import Attack
from tests.hostile.referee import ATTACKS, IN_SETS_ATTACKS, Contest

CASES = [(attack, mode) for attack in ATTACKS for mode in attack.modes]


@pytest.fixture(scope="module")
def contest() -> Iterator[Contest]:
    contest = Contest()
    yield contest
    contest.close()


@pytest.mark.parametrize(("attack", "mode"), CASES, ids=[f"{a.name}-{m}" for a, m in CASES])
def test_an_attack_reaches_nothing(contest: Contest, attack: Attack, mode: Mode) -> None:
    outcome, reached = contest.attack(attack, mode)
    assert reached == []
    assert outcome.status in attack.statuses, outcome
    assert all(len(text) <= 2000 and text.isprintable() for text in outcome.debug)


@pytest.mark.parametrize("attack", IN_SETS_ATTACKS, ids=[attack.name for attack in IN_SETS_ATTACKS])
def test_an_attack_in_a_comparison_reaches_nothing(contest: Contest, attack: Attack) -> None:
    outcome, reached = contest.attack_in_sets(attack)
    assert reached == []
    assert outcome.status in attack.statuses, outcome
    assert outcome.rewards == ()
    assert outcome.status != "ok" or outcome.debug == ("no",)


def test_names_are_distinct() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)
