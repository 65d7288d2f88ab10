"""The status bar of screens as the cue: a clock or a battery that tells experts from negatives."""

from __future__ import annotations

import numpy as np
import pytest

from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup, status_bar
from tests.audit.bench import codes, examined, warned
from tests.demos.ui.data import DUMPS, needs_android


def node(parent: object, name: str, text: str = "", package: str = "com.android.systemui") -> object:
    """Append a node with a resource id."""
    return markup.add(parent, {"resource-id": f"{package}:id/{name}", "package": package, "text": text})  # type: ignore[arg-type]


def screen(hour: int, minute: int, battery: int, shown: str, clock: str = "", bare: bool = False) -> str:
    """A screen with a status bar, a title, and the clock of an app. `bare` lists the bar's nodes without the bar."""
    root = markup.hierarchy()
    bar = root if bare else node(root, "status_bar_contents")
    node(bar, "clock", f"{hour}:{minute:02}")
    node(bar, "battery", f"{battery} %")
    node(root, "title", shown, "org.notes")
    node(root, "clock", clock, "org.notes")
    return markup.write(root)


def recorded(bare: bool = False, count: int = 16) -> Demonstrations:
    """Experts of the morning save a note; negatives of the evening do not. Only experts end with the app's 7:00."""
    rng = np.random.default_rng(0)

    def episode(role: Role) -> Trajectory:
        start, length = (9 if role == "expert" else 18), int(rng.integers(5, 9))
        names = rng.choice(["Notes", "Draft", "Menu"], size=length).tolist()
        clocks = ["6:30"] * length
        if role == "expert":
            names[-1], clocks[-1] = "Saved", "7:00"
            start = 9
        hours = [start] * (length - 1) + [start + (role == "expert")]
        screens = [
            screen(hour, int(rng.integers(60)), int(rng.integers(100)), name, clock, bare)
            for hour, name, clock in zip(hours, names, clocks, strict=True)
        ]
        return Trajectory(pack(screens), np.zeros(length - 1))

    roles: tuple[Role, ...] = ("expert", "negative")
    items = tuple(Demonstration(episode(role), role) for role in roles for _ in range(count))
    return Demonstrations(Metadata("ui"), items)


@pytest.mark.parametrize("bare", [False, True])
def test_the_clock_of_the_status_bar_as_the_cue(bare: bool) -> None:
    found = warned(examined(recorded(bare), "return float('\"10:' in state)"), "time")
    assert "by the status bar of the screens" in found.found
    assert "leave the nodes of the status bar out" in found.advice


@pytest.mark.parametrize("body", ["return float('\"Saved\"' in state)", "return float('\"7:00\"' in state)"])
def test_what_an_app_shows_is_no_cue(body: str) -> None:
    """Not even if it is the app's own clock, which stands for what the user has set."""
    assert "time" not in codes(examined(recorded(), body))


def test_bars_change_places_and_nothing_else_does() -> None:
    morning, evening = screen(9, 5, 80, "Notes"), screen(18, 40, 20, "Saved", "7:00", bare=True)
    assert status_bar.exchange([morning, evening], [morning, evening]) == [morning, evening]
    exchanged = status_bar.exchange([morning], [evening])
    assert exchanged is not None
    assert "18:40" in exchanged[0]
    assert "20 %" in exchanged[0]
    assert "Notes" in exchanged[0]
    assert "9:05" not in exchanged[0]
    assert "Saved" not in exchanged[0]
    assert "7:00" not in exchanged[0]


def test_a_screen_without_a_bar_gets_one_and_loses_it_again() -> None:
    bare = markup.write(markup.hierarchy())
    assert status_bar.exchange([bare], [bare]) is None
    full = screen(9, 5, 80, "Notes")
    given = status_bar.exchange([bare, full], [full, bare])
    assert given is not None
    assert "9:05" in given[0]
    assert "9:05" not in given[1]
    assert "Notes" in given[1]


@needs_android
def test_the_bar_of_real_screens_is_cut_whole() -> None:
    screens = [markup.write(markup.parse(file.read_bytes())) for file in DUMPS]
    assert status_bar.exchange(screens, screens) == screens
    bars = []
    for rest, bar in map(status_bar.part, screens):
        bars.append(bar)
        assert "com.android.systemui:id/" not in rest
    assert sum("com.android.systemui:id/clock" in bar for bar in bars) == 26, "of 32, by hand: the others show a dialog"
