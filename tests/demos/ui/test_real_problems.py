"""The goals on real screens (`benchmarks/android`): their rules, edits and sides are what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data" / "android"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the real screens of ../shared/data/android")

COMMON = """
import re
from lxml import etree

def nodes(state):
    return list(etree.fromstring(state).iter("node"))

def named(node):
    return node.get("resource-id", "").rpartition("/")[2]
"""
REWARDS = {  # a program for each goal, as a person would write it
    "alarm": COMMON
    + """
class Reward:
    def __init__(self, extra_info=None):
        found = re.search(r"\\d+:\\d\\d [AP]M", extra_info or "")
        self.time = found[0] if found else ""

    def reward_fn(self, state) -> float:
        for card in nodes(state):
            inner = list(card.iter("node"))
            times = [n.get("text").replace("\\u200a", " ") for n in inner if named(n) == "digital_clock"]
            boxes = [n for n in inner if named(n).startswith("day_button") and n.get("checked") == "true"]
            days = [n.get("content-desc") for n in boxes]
            if card.get("class").endswith("CardView") and times == [self.time] and days == ["Sunday", "Saturday"]:
                return 1.0
        return 0.0
""",
    "reminder": COMMON
    + """
class Reward:
    def __init__(self, extra_info=None):
        pass

    def reward_fn(self, state) -> float:
        return float({"EvtDesc", "30 minutes before"} <= {n.get("text") for n in nodes(state)})
""",
    "event": COMMON
    + """
class Reward:
    def __init__(self, extra_info=None):
        self.title, self.start = re.search('"(.*)" that starts at (.*)\\\\.', extra_info).groups()

    def reward_fn(self, state) -> float:
        texts = {(named(n), n.get("text")) for n in nodes(state)}
        described = {n.get("content-desc") for n in nodes(state)}
        return float(("title", self.title) in texts and f"Start time: {self.start}" in described)
""",
    "choice": COMMON
    + """
class Reward:
    def __init__(self, extra_info=None):
        self.option = re.search('"(.*)"', extra_info)[1]

    def reward_fn(self, state) -> float:
        return float([n.get("text") for n in nodes(state) if n.get("checked") == "true"] == [self.option])
""",
}
PROGRAM = {"alarm": "alarm", "alarm-times": "alarm", "reminder": "reminder", "event": "event", "choice": "choice"}


@pytest.fixture(scope="module")
def modules() -> tuple[Any, Any]:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from android import problems, screens  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return problems, screens


@pytest.fixture(scope="module")
def problems(modules: tuple[Any, Any]) -> dict[str, Any]:
    return {problem.name: problem for problem in modules[0].problems(DATA)}


def test_the_goal_screens_of_the_episode(modules: tuple[Any, Any]) -> None:
    about, screens = modules
    walk = screens.episode(DATA)
    assert len(walk) == 32
    assert about.goal_screens(walk) == [11, 20, 29]
    # The list shows an alarm of 9:00 on Sunday, Monday and Saturday, too: it is switched off.
    assert not any(screens.alarm_is_set(shot.root, "9:00 AM", ("Sunday", "Monday", "Saturday")) for shot in walk)


@pytest.mark.parametrize(("screen", "days"), [(9, ()), (10, ("Sunday",)), (11, ("Sunday", "Saturday"))])
def test_an_edit_to_what_is_there_changes_nothing(modules: tuple[Any, Any], screen: int, days: tuple[str, ...]) -> None:
    """Three real screens of one alarm, with no day, one and two: edits are spelled as the app spells."""
    _, screens = modules
    walk = screens.episode(DATA)
    assert screens.with_alarm(walk[screen - 1], "8:25 AM", days).xml == walk[screen - 1].xml
    if screen == 9:
        return
    edited = screens.with_alarm(walk[8], "8:25 AM", days)
    for wanted in ("repeat_summary", "day_button_0", "day_button_6", "blackout_title"):
        both = [
            node.attrib
            for shot in (edited, walk[screen - 1])
            for node in shot.root.iter("node")
            if wanted in node.get("resource-id")
        ]
        assert len(both) == 2
        assert all(both[0][key] == both[1][key] for key in ("text", "content-desc", "checked"))


def test_edits_reach_their_own_goal_only(modules: tuple[Any, Any]) -> None:
    _, screens = modules
    edited = screens.with_alarm(screens.episode(DATA)[19], "10:20 AM", screens.WEEKEND)
    assert screens.alarm_is_set(edited.root, "10:20 AM", screens.WEEKEND)
    assert not screens.alarm_is_set(edited.root, "8:25 AM", screens.WEEKEND)
    assert not screens.alarm_is_set(edited.root, "10:20 AM", screens.DAYS)
    assert "8:25" not in edited.xml


@pytest.mark.slow
def test_the_reminder_and_the_events_are_there(modules: tuple[Any, Any]) -> None:
    about, screens = modules
    shots = [shot for shot in screens.shots(DATA) if shot.source == "google-calendar"]
    names = {shot.name for shot in shots}
    assert {name for group in screens.REMINDERS.values() for name in group} <= names
    assert {*about.EVENTS, *about.NO_EVENTS} <= names
    for name, (title, start, end, _) in about.EVENTS.items():
        (shot,) = [shot for shot in shots if shot.name == name]
        assert {title, start, end} <= shot.texts()
    reminded = {shot.name for shot in screens.shots(DATA) if {"EvtDesc", "30 minutes before"} <= shot.texts()}
    assert reminded == {name for group in screens.REMINDERS.values() for name in group[:2]}


def test_nothing_is_on_both_sides(problems: dict[str, Any]) -> None:
    for problem in problems.values():
        sides = []
        goals = []
        for part in (problem.train, problem.test):
            pairs = [(bytes(state), item.trajectory.extra_info) for item in part for state in item.trajectory.states]
            sides.append(set(pairs))
            goals.append({bytes(item.trajectory.states[-1]) for item in part if item.role == "expert"})
        assert all(goals), problem.name
        assert not goals[0] & goals[1], problem.name
        assert not {pair for pair in sides[0] & sides[1] if pair[0] in goals[0] | goals[1]}, problem.name


@pytest.mark.parametrize("name", list(PROGRAM))
def test_a_person_could_write_the_reward(name: str, problems: dict[str, Any], tmp_path: Path) -> None:
    """The rule of each problem, run in the sandbox, separates both sides."""
    import grace_irl

    path = tmp_path / "reward.py"
    path.write_text(REWARDS[PROGRAM[name]])
    for part in (problems[name].train, problems[name].test):
        metrics = grace_irl.score(path, part, workers=1).metrics
        assert metrics.separated
        assert metrics.accuracy == 1.0


def test_two_tasks_need_their_instruction(problems: dict[str, Any]) -> None:
    """The goal screens of each task are there with the other's instruction, as negative."""
    both = problems["two-tasks"]
    for part in (both.train, both.test):
        roles: dict[bytes, set[str]] = {}
        for item in part:
            roles.setdefault(bytes(item.trajectory.states[-1]), set()).add(item.role)
        goals = [found for found in roles.values() if "expert" in found]
        assert goals
        assert all(found == {"expert", "negative"} for found in goals)
