"""Screens of an app that nobody has: things with a number and a switch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grace_irl.demos.labels import Problem, label
from grace_irl.demos.trajectory import Demonstration, Demonstrations, LabelRule, Metadata, Role, Trajectory
from grace_irl.states.texts import pack
from grace_irl.states.ui import markup

APP, BAR = "org.acme.vessel", "org.acme.bar"
EPISODE = Path(__file__).parents[3] / "shared" / "data" / "android" / "alarm_episode"
TASK = "Set a weekend alarm for 8:25 a.m. with the ringtone beebeep and vibration off. "

Spec = tuple[Mapping[str, Any], Sequence[Any]]
"""Attributes of a node, and its children."""


def node(kind: str, text: str = "", *children: Spec, name: str = "", package: str = APP, **more: Any) -> Spec:
    """A node; `name` becomes a resource-id of its package, `desc` the description."""
    about = {
        "text": text,
        "class": f"android.widget.{kind}",
        "package": package,
        "resource-id": f"{package}:id/{name}" if name else "",
        "bounds": "[0,0][100,40]",
        **{{"desc": "content-desc", "id": "resource-id"}.get(key, key.replace("_", "-")): v for key, v in more.items()},
    }
    return about, children


def screen(*nodes: Spec) -> str:
    """The XML of a screen."""
    root = markup.hierarchy()

    def add(parent: Any, specs: Iterable[Spec]) -> None:
        for about, children in specs:
            add(markup.add(parent, about), children)

    add(root, nodes)
    return markup.write(root)


def bar(time: str) -> Spec:
    """What stands above every app."""
    return node(
        "FrameLayout",
        "",
        node("TextView", time, name="time", package=BAR),
        node("ImageView", package=BAR, desc="Full", name="charge"),
        package=BAR,
    )


def things(values: Mapping[str, tuple[int, bool]], time: str = "9:41") -> str:
    """A list of things, each a row with its number and whether it is on."""
    rows = (
        node(
            "LinearLayout",
            "",
            node("TextView", thing, name="title"),
            node("TextView", f"{number}\u200a°", name="value", desc=f"{number} degrees"),
            node("Switch", checkable=True, clickable=True, checked=on, name="onoff"),
            name="row",
        )
        for thing, (number, on) in values.items()
    )
    listed = node("ListView", "", *rows, scrollable=True, name="list")
    return screen(bar(time), node("FrameLayout", "", node("TextView", "Things", name="head"), listed))


def asking(thing: str, number: str, time: str = "9:41") -> str:
    """The dialog that asks for a number."""
    return screen(
        bar(time),
        node(
            "FrameLayout",
            "",
            node("TextView", f"How warm is {thing}?", name="question"),
            node("EditText", number, name="entry", focused=True, clickable=True, hint="degrees"),
            node("Button", "OK", id="android:id/button1", clickable=True, enabled=bool(number)),
        ),
    )


def trajectory(thing: str, number: int) -> Trajectory:
    """From the list to the dialog and back, with the number that was asked for."""
    one, two = {"mip": (20, False), "fen": (40, True)}, {"mip": (20, False), "fen": (40, True)}
    two[thing] = (number, True)
    states = [things(one), asking(thing, ""), asking(thing, str(number), "9:42"), things(two, "9:42")]
    return Trajectory(pack(states), extra_info=f"warm the {thing} to {number} degrees", source=f"{thing} {number}")


def demonstrations(task: str = "default") -> list[Demonstration]:
    """Two experts that set what they are told, a negative that does not, and one that is held out."""
    still = things({"mip": (20, False), "fen": (40, True)})
    off = things({"mip": (20, False), "fen": (40, False)})
    lost = Trajectory(pack([still, off, *[still] * 7, off]), extra_info="warm the mip to 70 degrees", source="lost")
    held = Trajectory(pack([things({"heldout": (177, True)})]), extra_info="warm the heldout")
    roles: list[tuple[Trajectory, Role]] = [
        (trajectory("mip", 85), "expert"),
        (trajectory("fen", 60), "expert"),
        (lost, "negative"),
    ]
    return [*(Demonstration(one, role, task) for one, role in roles), Demonstration(held, "expert", task, "held_out")]


def problem(rule: LabelRule = "last", tasks: Sequence[str] = ("default",)) -> Problem:
    items = tuple(item for task in tasks for item in demonstrations(task))
    return label(Demonstrations(Metadata("ui", view="uiautomator"), items), rule)


def episode() -> list[str]:
    """The 32 real screens, in the spelling of states."""
    files = sorted((EPISODE / "hierarchy").glob("*.xml"))
    return [markup.write(markup.parse(file.read_bytes(), file.name)) for file in files]
