"""The 32 screens of a real episode as prompts show them."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from lxml import etree

from grace_irl.demos.labels import Labelled, Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Trajectory
from grace_irl.methods.grace_operators import OPERATORS
from grace_irl.propose.briefing import PromptBudget, brief
from grace_irl.propose.material import Material
from grace_irl.propose.rendering import COMMON
from grace_irl.propose.tokens import estimate
from grace_irl.propose.views.ui import COARSEST, STATE, UiView
from grace_irl.states.texts import pack
from tests.propose import asked
from tests.propose.screens import EPISODE, TASK, episode

pytestmark = pytest.mark.skipif(not EPISODE.is_dir(), reason="../shared/data/android/alarm_episode is not there")


@pytest.fixture(scope="module")
def screens() -> list[str]:
    return episode()


@pytest.fixture(scope="module")
def view(screens: list[str]) -> UiView:
    item = Labelled(Demonstration(Trajectory(pack(screens)), "negative"), np.zeros(len(screens), dtype=np.bool_))
    return UiView([item], Metadata("ui"))


def problem(screens: list[str]) -> Problem:
    """The episode up to the weekend's alarm, and the rest of it."""
    parts = [(screens[:11], "expert"), (screens[11:], "negative")]
    items = (Demonstration(Trajectory(pack(part), extra_info=TASK), role) for part, role in parts)  # type: ignore[arg-type]
    return label(Demonstrations(Metadata("ui", view="uiautomator"), tuple(items)), "last")


def test_outlines_are_a_twentieth_of_the_xml(screens: list[str], view: UiView) -> None:
    assert len(screens) == 32
    sizes = [(estimate(view.state(each.encode())), estimate(each)) for each in screens]
    assert all(small <= STATE for small, _ in sizes)
    assert all(15 * small <= large for small, large in sizes)
    assert 20 * sum(small for small, _ in sizes) <= sum(large for _, large in sizes)


def test_changes_are_never_longer_and_together_less_than_two_thirds(screens: list[str], view: UiView) -> None:
    states = [each.encode() for each in screens]
    full = [estimate(view.state(each)) for each in states[1:]]
    changes = [estimate(view.change(*pair)) for pair in pairwise(states)]
    assert all(change <= whole + estimate("in full: ") for change, whole in zip(changes, full, strict=True))
    assert sum(changes) <= 2 / 3 * sum(full)


@pytest.mark.parametrize("tokens", [400, 200, 100, COARSEST, 24])
def test_limits_are_kept_to_the_token(screens: list[str], tokens: int) -> None:
    states = [each.encode() for each in screens]
    item = Labelled(Demonstration(Trajectory(pack(screens)), "negative"), np.zeros(len(screens), dtype=np.bool_))
    view = UiView([item], Metadata("ui"), tokens)
    for before, after in pairwise(states):
        assert estimate(view.state(after)) <= tokens
        assert estimate(view.change(before, after)) <= tokens


def test_what_a_person_sees_is_there_word_for_word(screens: list[str], view: UiView) -> None:
    """Every text and description that is not in the background is in the outline as Python spells it."""
    legend = view.legend(2000)
    for screen in screens:
        told = view.state(screen.encode())
        if "more node" in told:
            continue
        for node in etree.fromstring(screen).iter("node"):
            for name in ("text", "content-desc"):
                value = node.get(name, "")
                assert not value or repr(value) in told or repr(value) in legend


def test_the_step_that_sets_the_weekend_is_one_line_each(screens: list[str], view: UiView) -> None:
    change = view.change(screens[9].encode(), screens[10].encode())
    assert change.splitlines() == [
        "~ TextView #repeat_summary: 'Sunday' -> 'Sun, Sat'; desc 'Sunday' -> 'Sunday, Saturday'",
        "   ~ CheckBox* 'S' #day_button_6 desc 'Saturday': unchecked -> checked",
    ]
    chosen = view.change(screens[12].encode(), screens[13].encode()).splitlines()[0]
    assert chosen == (
        "~ ImageView #sound_image_selected desc 'Selected': beside 'Default (Cesium)' -> beside 'BeeBeep Alarm'"
    )


def test_words_of_the_instruction_are_found_on_the_goal(screens: list[str]) -> None:
    said = brief(problem(screens)).preamble
    assert re.search(r"TextView\* #digital_clock text .*'8:25\\u200aAM' with '25', '8'", said)


@pytest.mark.parametrize("name", sorted({**OPERATORS, **COMMON}))
@pytest.mark.parametrize("total", [24_000, 4_500])
def test_prompts_keep_their_total(screens: list[str], name: str, total: int) -> None:
    whole = problem(screens)
    given = Material(
        seed=1,
        source=asked.UI_SOURCE,
        rewards={item.trajectory.digest: np.zeros(len(item.positive)) for item in whole.train},
        trajectories=whole.train[:1],
    )
    prompt = {**OPERATORS, **COMMON}[name](brief(whole, budget=PromptBudget(total=total)), given)
    assert estimate(prompt.text) <= total
    if name != "repair":
        assert "#digital_clock" in prompt.user


@pytest.mark.parametrize("scale", [0.5, 0.4])
def test_a_scale_asks_for_a_share(screens: list[str], scale: float) -> None:
    whole = estimate(OPERATORS["initialise"](brief(problem(screens)), Material(seed=1)).text)
    scaled = estimate(
        OPERATORS["initialise"](brief(problem(screens), budget=PromptBudget(scale=scale)), Material(seed=1)).text
    )
    assert scaled <= scale * whole * 1.05
