"""Conditions: what a demonstration must meet to be chosen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grace_irl.demos.conditions import Conditions, Funnel, TextPattern, shows
from grace_irl.demos.trajectory import Demonstration, Trajectory
from grace_irl.errors import InputError
from grace_irl.states.texts import pack
from tests.demos.choosing import TIMER, demonstration, screens


@pytest.mark.parametrize(
    ("conditions", "item", "expected"),
    [
        (Conditions(), TIMER, True),
        (Conditions(goal=r"\btimer\b"), TIMER, True),  # case is ignored
        (Conditions(goal=r"^timer"), TIMER, False),
        (Conditions(goal="(?-i:timer)"), TIMER, False),
        (Conditions(not_goal="minutes"), TIMER, False),
        (Conditions(goal="timer", not_goal="hour"), TIMER, True),
        (Conditions(min_states=4, max_states=4), TIMER, True),
        (Conditions(min_states=5), TIMER, False),
        (Conditions(max_states=3), TIMER, False),
        (Conditions(from_role="expert", from_task="clock"), TIMER, True),
        (Conditions(from_role="negative"), TIMER, False),
        (Conditions(from_task="default"), TIMER, False),
        (Conditions(success=True), TIMER, True),
        (Conditions(success=False), TIMER, False),
        (Conditions(success=True), demonstration(rewards=[0.5]), True),
        (Conditions(success=True), demonstration(rewards=[0.0], terminated=True), False),  # rewards say more
        (Conditions(success=False), demonstration(), True),
        (Conditions(package=("*.deskclock",)), screens("a.launcher", "a.systemui com.google.android.deskclock"), True),
        (Conditions(package=("com.x", "a.?aps")), screens("a.maps"), True),
        (Conditions(package=("deskclock",)), screens("com.google.android.deskclock"), False),  # a whole name
        (Conditions(not_package=("*clock*",)), screens("a.maps", "a.clockwork"), False),
        (Conditions(not_package=("*clock*",)), screens("a.maps", "a.mail"), True),
    ],
)
def test_conditions(conditions: Conditions, item: Demonstration, expected: bool) -> None:
    funnel = Funnel(conditions)
    assert funnel.passes(item) is expected
    assert bool(funnel.emptied_by()) is not expected


def test_a_package_in_a_text_is_none() -> None:
    fake = Demonstration(
        Trajectory(pack(["""<hierarchy><node text='package="com.deskclock"' package="a.mail"/></hierarchy>"""])),
        "expert",
    )
    assert not shows(fake, ["*deskclock"])


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"goal": "("}, "--goal '(': no regular expression"),
        ({"not_goal": "*"}, "--not-goal '*': no regular expression"),
        ({"min_states": 0}, "--min-states 0; expected at least 1"),
        ({"max_states": -1}, "--max-states -1; expected at least 1"),
        ({"min_states": 3, "max_states": 2}, "--min-states 3 above --max-states 2"),
    ],
)
def test_conditions_that_cannot_be(about: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as error:
        Conditions(**about)  # type: ignore[arg-type]
    assert said in str(error.value)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_search_whose_process_has_ended_is_refused_without_a_traceback() -> None:
    pattern = TextPattern("timer", "--goal")
    assert pattern.found("a timer")
    process = pattern._process
    assert process is not None
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has waited for it
    with pytest.raises(InputError, match="searching a text of 7 characters takes more than"):
        pattern.found("a timer")
    del pattern
    assert process.returncode is not None


def test_apps_of_states_that_are_no_screens(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="vector states show no app; expected screens"):
        Funnel(Conditions(package=("a",))).passes(demonstration())
