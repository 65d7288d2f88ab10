"""Stop rules, each by its table."""

from __future__ import annotations

import pytest

from grace_irl.config import StopConfig
from grace_irl.runs.budget import Budget, Progress


def budget(fruitless: int | None = None, **rules: float | None) -> Budget:
    """A budget of these rules and no others."""
    return Budget(StopConfig.model_validate({"target_accuracy": None, "plateau": None, **rules}), fruitless)


PERFECT = {"accuracy": 1.0, "separated": 1.0}
TIED = {"accuracy": 1.0, "separated": 0.0}
GOOD = {"accuracy": 0.95, "separated": 0.0}


@pytest.mark.parametrize(
    ("rules", "progress", "reason"),
    [
        ({"max_calls": 5}, Progress(calls=4), ""),
        ({"max_calls": 5}, Progress(calls=5), "max_calls"),
        ({"max_seconds": 2.0}, Progress(seconds=1.9), ""),
        ({"max_seconds": 2.0}, Progress(seconds=2.0), "max_seconds"),
        ({"target_accuracy": 1.0}, Progress(best=PERFECT, generation_ended=True), "target_accuracy"),
        ({"target_accuracy": 1.0}, Progress(best=PERFECT), ""),
        ({"target_accuracy": 1.0}, Progress(best=TIED, generation_ended=True), ""),
        ({"target_accuracy": 0.9}, Progress(best=GOOD, generation_ended=True), "target_accuracy"),
        ({"target_accuracy": 0.96}, Progress(best=GOOD, generation_ended=True), ""),
        ({"target_accuracy": 0.5}, Progress(generation_ended=True), ""),
        ({"plateau": 3}, Progress(stale=3, generation_ended=True), "plateau"),
        ({"plateau": 3}, Progress(stale=2, generation_ended=True), ""),
        ({"fruitless": 10}, Progress(fruitless=9), ""),
        ({"fruitless": 10}, Progress(fruitless=10), "no program"),
        ({"fruitless": 10}, Progress(fruitless=5, exhausted=5), "exhausted"),
        ({}, Progress(calls=10**9), ""),
    ],
)
def test_rules(rules: dict[str, float], progress: Progress, reason: str) -> None:
    found = budget(**rules).check(progress)  # type: ignore[arg-type]
    assert found.startswith(reason) if reason else found == ""


@pytest.mark.parametrize(
    ("rules", "spent", "reason"),
    [
        ({"max_tokens": 100}, (99, 0.0, 0.0), ""),
        ({"max_tokens": 100}, (120, 0.0, 0.0), "max_tokens: 120 tokens"),
        ({"max_cost": 5.0}, (0, 4.9, 0.0), ""),
        ({"max_cost": 5.0}, (0, 5.0, 0.0), "max_cost: 5"),
        ({"max_seconds": 2.0}, (0, 0.0, 1.9), ""),
        ({"max_seconds": 2.0}, (0, 0.0, 2.0), "max_seconds: 2.00 s"),
        ({"max_calls": 1}, (9, 9.0, 9.0), ""),
    ],
)
def test_no_call_is_made_beyond_a_cap(rules: dict[str, float], spent: tuple[int, float, float], reason: str) -> None:
    assert budget(**rules).may_call(*spent) == reason


def test_no_more_is_asked_than_max_calls() -> None:
    limited = budget(max_calls=3)
    assert [limited.may_ask(asked) for asked in range(5)] == [True, True, True, False, False]
    assert budget().may_ask(10**9)


@pytest.mark.parametrize(
    ("rules", "progress", "spent"),
    [
        ({"target_accuracy": 1.0, "plateau": 1}, Progress(best=PERFECT, stale=1, generation_ended=True), False),
        ({"target_accuracy": 1.0, "max_calls": 5}, Progress(calls=5, best=PERFECT, generation_ended=True), True),
        ({"fruitless": 10}, Progress(fruitless=10), True),
        ({}, Progress(calls=10**9), False),
    ],
)
def test_what_ends_more_than_the_search(rules: dict[str, float], progress: Progress, spent: bool) -> None:
    assert budget(**rules).spent(progress) == spent  # type: ignore[arg-type]


def test_success_is_named_before_what_ran_out() -> None:
    progress = Progress(calls=5, best=PERFECT, generation_ended=True)
    assert budget(max_calls=5, target_accuracy=1.0).check(progress).startswith("target_accuracy")
