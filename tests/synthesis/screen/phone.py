"""A small phone: screens of a clock, settings and a list app, with a status bar and other noise, and tasks with known
goals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lxml import etree

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Trajectory
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup

Tree = tuple[dict[str, Any], list[Any]]
SWITCHES = ("Wi-Fi", "Bluetooth", "Airplane mode", "Dark theme", "Battery saver", "Location")
WORDS = ("milk", "bread", "stamps", "flowers", "batteries", "tickets", "paint", "coffee", "apples", "soap")


def node(*children: Tree, **values: Any) -> Tree:
    """A node; `id` is short, `desc` the description, `cls` the short class."""
    known = {"id": "resource-id", "desc": "content-desc", "cls": "class"}
    stated = {known.get(name, name): value for name, value in values.items()}
    if "resource-id" in stated:
        stated["resource-id"] = f"com.phone.app:id/{stated['resource-id']}"
    stated["class"] = f"android.widget.{stated.get('class', 'TextView')}"
    return stated, list(children)


def screen(*windows: Tree) -> str:
    """The XML of a screen."""
    root = markup.hierarchy()
    for window in windows:
        _add(root, window)
    return markup.write(root)


def _add(parent: etree._Element, tree: Tree) -> None:
    values, children = tree
    values.setdefault("package", parent.get("package", "com.phone.app"))
    made = markup.add(parent, values)
    for child in children:
        _add(made, child)


@dataclass
class Phone:
    """Screens of one phone; what does not matter is drawn at random."""

    rng: np.random.Generator

    def shown(self, app: str, *content: Tree) -> str:
        """A screen of an app, with a status bar."""
        r = self.rng
        bar = node(
            node(id="clock", text=f"{r.integers(1, 13)}:{r.integers(10, 60)}"),
            node(id="battery", desc=f"Battery {r.integers(5, 100)} percent.", cls="ImageView"),
            package="com.android.systemui",
            cls="FrameLayout",
        )
        body = node(*content, package=f"com.{app}", cls="FrameLayout")
        return screen(body, bar) if r.random() < 0.5 else screen(bar, body)

    def home(self) -> str:
        apps = self.rng.permutation(["Clock", "Settings", "Lists", "Maps", "Mail", "Files", "Phone"])
        return self.shown("launcher", *(node(id="icon", text=str(app)) for app in apps[:5]))

    def other(self) -> str:
        """A screen of some other app."""
        r = self.rng
        rows = [node(node(id="subject", text=f"Mail {r.integers(1000)}"), cls="LinearLayout") for _ in range(4)]
        return self.shown("mail", *rows, node(id="compose", desc="Compose", cls="ImageButton"))

    def timer(self, text: str, *, running: bool) -> str:
        button = node(id="fab", desc="Pause" if running else "Start", cls="ImageButton")
        more = [node(id="add", text="+1:00")] if running else []
        return self.shown("clock", node(id="timer_text", text=text), button, *more, *self.tabs("Timer"))

    def stopwatch(self, *, running: bool, started: bool = True) -> str:
        r = self.rng
        shown = f"{r.integers(60):02}.{r.integers(100):02}" if started else "00.00"
        buttons = [node(id="fab", desc="Pause" if running else "Start", cls="ImageButton")]
        if started:
            buttons.append(node(id="left", text="Lap" if running else "Reset"))
        return self.shown("clock", node(id="watch_text", text=shown), *buttons, *self.tabs("Stopwatch"))

    def tabs(self, chosen: str) -> list[Tree]:
        names = ("Alarm", "Timer", "Stopwatch")
        return [node(id=f"tab_{one.lower()}", text=one, selected=one == chosen) for one in names]

    def settings(self, on: Sequence[str], order: Sequence[str] | None = None) -> str:
        names = list(order or self.rng.permutation(SWITCHES))
        rows = [
            node(
                node(id="title", text=name),
                node(id="switch", cls="Switch", checkable=True, checked=name in on),
                cls="LinearLayout",
            )
            for name in names
        ]
        return self.shown("settings", node(*rows, id="list", cls="RecyclerView"))

    def listed(self, entries: Sequence[str], ticked: Sequence[str] = ()) -> str:
        rows = [
            node(
                node(id="box", cls="CheckBox", checkable=True, checked=entry in ticked),
                node(id="entry", text=entry),
                cls="LinearLayout",
            )
            for entry in entries
        ]
        return self.shown("lists", node(*rows, id="entries", cls="RecyclerView"), node(id="new", desc="New entry"))


Episode = tuple[str, list[str]]
"""An instruction and screens; the last is the goal of an expert."""


def problem_of(
    experts: Sequence[tuple[str, Episode]], negatives: Sequence[tuple[str, Episode]], rule: LabelRule = "last"
) -> Problem:
    """Labelled demonstrations of (task, episode) pairs."""
    items = [
        Demonstration(Trajectory(pack(screens), extra_info=said, source=f"{role} {i}"), role, task)
        for role, episodes in (("expert", experts), ("negative", negatives))
        for i, (task, (said, screens)) in enumerate(episodes)
    ]
    return label(Demonstrations(Metadata("ui", view="uiautomator"), tuple(items)), rule)


def timer_episode(phone: Phone) -> Episode:
    """Set a timer for a time, spelt in one of many ways."""
    r = phone.rng
    hours, minutes = int(r.integers(0, 3)), int(r.integers(1, 59))
    said = {
        0: f"Set a timer for {hours} hours and {minutes} minutes",
        1: f"Start a {60 * hours + minutes}-minute timer",
        2: f"set timer to {hours}:{minutes:02}:00",
        3: f"I need a timer of {hours} hr {minutes} min",
    }[int(r.integers(4))]
    wrong = f"{hours:02}:{(minutes + 7) % 60:02}:00"
    right = f"{hours:02}:{minutes:02}:00"
    return said, [
        phone.home(),
        phone.timer("00:00:00", running=False),
        phone.timer(wrong, running=bool(r.integers(2))),
        phone.timer(right, running=False),
        phone.timer(right, running=True),
    ]


def stopwatch_episode(phone: Phone) -> Episode:
    said = str(phone.rng.choice(["Run the stopwatch", "Start the stopwatch", "Open Clock and run the stopwatch"]))
    return said, [
        phone.home(),
        phone.timer("00:00:00", running=False),
        phone.stopwatch(running=False, started=False),
        phone.stopwatch(running=True),
    ]


def switch_episode(phone: Phone) -> Episode:
    """Turn one switch on; others are on or off as it happens."""
    name = str(phone.rng.choice(SWITCHES))
    others = [one for one in SWITCHES if one != name and phone.rng.random() < 0.4]
    order = list(phone.rng.permutation(SWITCHES))
    return f"Turn on {name}", [
        phone.home(),
        phone.settings(others, order),
        phone.settings([*others, "Location"] if name != "Location" else [*others, "Wi-Fi"], order),
        phone.settings([*others, name], order),
    ]


def entry_episode(phone: Phone) -> Episode:
    """Add an entry that the instruction names to a list."""
    kept = [str(word) for word in phone.rng.choice(WORDS[:6], 3, replace=False)]
    new = f"buy {phone.rng.choice(WORDS[6:])} {phone.rng.integers(2, 90)}"
    return f'Add "{new}" to my list', [
        phone.home(),
        phone.listed(kept),
        phone.listed([*kept, "new"]),
        phone.listed([*kept, new]),
    ]


def wandering(phone: Phone) -> Episode:
    """Somebody else's episode, in other apps and sometimes in these."""
    r = phone.rng
    made: list[Callable[[], str]] = [
        phone.home,
        phone.other,
        phone.other,
        lambda: phone.timer("00:00:00", running=False),
        lambda: phone.listed([str(word) for word in r.choice(WORDS, 3, replace=False)]),
        lambda: phone.stopwatch(running=False, started=bool(r.integers(2))),
    ]
    said = str(r.choice(["Write a mail", "Find the mail of Ann", "Look at my lists", "Open Maps"]))
    return said, [made[int(r.integers(len(made)))]() for _ in range(int(r.integers(2, 8)))]
