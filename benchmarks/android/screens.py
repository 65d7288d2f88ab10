"""Real Android screens, and edits of them: what `problems.py` is made of.

The screens are other people's (alarm_episode: one episode of 32 uiautomator dumps; calendar: 83 captures of Google
Calendar; androidworld: histories and element lists; utg: AutoDroid's records of a clock, a calendar and a notes app).
They are read by the readers of `grace_irl.demos`; equal screens are kept once.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from grace_irl.demos import iter_trajectories
from grace_irl.states.ui import markup

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
WEEKEND = ("Sunday", "Saturday")
WEEKDAYS = DAYS[1:6]
FIRST_GOAL = 11  # the first screen of the alarm episode that reaches its goal
REMINDERS = {  # two goal screens of an event with a reminder and two near misses on either side
    False: (
        "event_detail_with_notification",
        "quick_create_with_notification",
        "notification_picker",
        "event_detail_allday",
    ),
    True: (
        "event_detail_with_attendees",
        "quick_create_with_attendees",
        "event_notification_picker",
        "search_with_results",
    ),
}
THIN = "\u200a"  # what Google Clock writes between a time and AM or PM


@dataclass(frozen=True)
class Shot:
    """One screen.

    Attributes:
        source: which data it is of: alarm, google-calendar, history, elements, or utg-clock, utg-calendar, utg-notes.
        name: of the screen within its source, such as "11" or "event_detail".
        xml: its text.
    """

    source: str
    name: str
    xml: str

    @property
    def root(self) -> etree._Element:
        return markup.parse(self.xml)

    @property
    def held_out(self) -> bool:
        """The side of a screen: of the episode, what comes after its first goal screen; as `REMINDERS` says; of all
        others by the digest, so that adding screens moves none."""
        if self.source == "alarm":
            return int(self.name) > FIRST_GOAL
        if self.source == "google-calendar" and self.name in (*REMINDERS[False], *REMINDERS[True]):
            return self.name in REMINDERS[True]
        return hashlib.sha256(self.xml.encode()).digest()[0] % 2 == 1

    def texts(self) -> set[str]:
        """Texts and descriptions of all nodes."""
        return {
            value for node in self.root.iter("node") for value in (node.get("text"), node.get("content-desc")) if value
        }


def shots(data: Path) -> list[Shot]:
    """Every different screen of the data, in a fixed order."""
    found = [Shot("alarm", str(n), xml) for n, xml in enumerate(_screens(data / "alarm_episode"), 1)]
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(data / "calendar" / "trailblaze_waypoint_examples.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        for path in sorted(Path(folder).rglob("*.example.json")):
            name = path.name.removesuffix(".example.json").removeprefix("calendar_android_")
            found += [Shot("google-calendar", name, xml) for xml in _screens(path)]
    for path in sorted((data / "androidworld").iterdir()):
        kind = "history" if path.suffix == ".gz" else "elements"
        found += [Shot(kind, f"{path.name.split('.')[0]} {n}", xml) for n, xml in enumerate(_screens(path))]
    for path in sorted((data / "utg").iterdir()):
        kind = f"utg-{path.name.removesuffix('_utg.yaml')}"
        found += [Shot(kind, str(n), xml) for n, xml in enumerate(_screens(path))]
    return list({shot.xml: shot for shot in reversed(found)}.values())[::-1]


def episode(data: Path) -> list[Shot]:
    """The 32 screens of the alarm episode, in order, equal ones included."""
    return [Shot("alarm", str(n), xml) for n, xml in enumerate(_screens(data / "alarm_episode"), 1)]


def alarm_is_set(root: etree._Element, time: str, days: Iterable[str]) -> bool:
    """Whether some alarm of Google Clock's list is switched on for this time ("8:25 AM") and exactly these days.

    An alarm is a card (class …CardView) with a `digital_clock` of that text and a checked `onoff` switch. Its days are
    the checked `day_button_*` of a card that is unfolded, and the description of `days_of_week` of a folded one.
    """
    wanted = frozenset(days)
    for card in root.iter("node"):
        if not card.get("class", "").endswith("CardView"):
            continue
        parts: dict[str, list[etree._Element]] = {}
        for node in card.iter("node"):
            parts.setdefault(node.get("resource-id", "").rpartition("/")[2], []).append(node)
        clock = [plain(node.get("text", "")) for node in parts.get("digital_clock", ())]
        on = any(node.get("checked") == "true" for node in parts.get("onoff", ()))
        buttons = [node for name, nodes in parts.items() if name.startswith("day_button_") for node in nodes]
        chosen = {node.get("content-desc", "") for node in buttons if node.get("checked") == "true"}
        if not buttons:
            chosen = {day for node in parts.get("days_of_week", ()) for day in node.get("content-desc", "").split(", ")}
        if clock == [time] and on and chosen == wanted:
            return True
    return False


def with_alarm(shot: Shot, time: str, days: Sequence[str]) -> Shot:
    """A copy of a screen on which the unfolded alarm of 8:25 is of another time and other days.

    Edited are the texts and descriptions that say the time, the boxes of the days, and the lines that sum the days up,
    all spelled as the app spells them: editing a screen to what it shows leaves every byte.
    """
    root = shot.root
    card = next(
        node
        for node in root.iter("node")
        if node.get("class", "").endswith("CardView")
        and any(inner.get("resource-id", "").endswith("/day_button_0") for inner in node.iter("node"))
    )
    said = ", ".join(day[:3] for day in days) if len(days) > 1 else "".join(days) or "Tomorrow"
    for node in card.iter("node"):
        name = node.get("resource-id", "").rpartition("/")[2]
        for key in ("text", "content-desc"):
            node.set(key, node.get(key, "").replace(f"8:25{THIN}AM", time.replace(" ", THIN)))
        if name.startswith("day_button_"):
            node.set("checked", str(node.get("content-desc") in days).lower())
        elif name == "repeat_summary":
            node.set("text", said)
            node.set("content-desc", ", ".join(days) or "Tomorrow")
        elif name == "blackout_title":
            node.set("text", "Pause alarm" if days else "Schedule alarm")
    return Shot(shot.source, f"{shot.name} as {time}, {said}", markup.write(root))


def with_texts(shot: Shot, pairs: Sequence[tuple[str, str]]) -> Shot:
    """A copy in which texts and descriptions have other words, replaced one pair after the other."""
    root = shot.root
    for node in root.iter("node"):
        for key in ("text", "content-desc"):
            value = node.get(key, "")
            for old, new in pairs:
                value = value.replace(old, new)
            node.set(key, value)
    return Shot(shot.source, f"{shot.name} as {', '.join(new for _, new in pairs)}", markup.write(root))


def choice(root: etree._Element) -> str:
    """The choice in a dialog for one choice: two or more boxes, one of them checked, with a text; or ""."""
    boxes = [node for node in root.iter("node") if node.get("checkable") == "true"]
    checked = [node.get("text", "") for node in root.iter("node") if node.get("checked") == "true"]
    return checked[0] if len(boxes) >= 2 and len(checked) == 1 else ""


def plain(text: str) -> str:
    """A text with ordinary blanks."""
    return " ".join(text.replace(THIN, " ").split())


def _screens(path: Path) -> list[str]:
    return [
        bytes(state).decode() for item in iter_trajectories(path, role="negative") for state in item.trajectory.states
    ]
