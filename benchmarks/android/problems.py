"""Goals on real Android screens: which screens reach them, by rules that a test checks, and what is held out.

Every problem is training data and held-out data. The alarm episode stays an episode: its parts that end on a goal
screen are experts (label `last`: every screen before is negative). All other screens are trajectories of one state. A
screen is on one side only (see `Shot.held_out`, the default), except where a problem pairs screens with
instructions: there pairs are on one side only, and goal screens are.

alarm        "Set an alarm for 8:25 AM on the weekend." Goal: `alarm_is_set`, screens 11, 20 and 29 of 32. Training: the
             episode up to 11. Held out: 12 to 20, 21 to 29, 30 to 32. The screens of all other sources are negative.
             The reward is scored on the held-out side of alarm-times, too.
alarm-times  The same with other times, which are edited into screen 11, and for the held-out side into 20 and 29. Near
             misses: another time, one day of the weekend, weekdays, no day; and, not edited, the time of another alarm
             of the list.
reminder     "Add the event EvtDesc with a reminder 30 minutes before." Goal: the texts "EvtDesc" and "30 minutes
             before" on one screen, 2 + 2 of Google Calendar. Near misses: the event without it, pickers that offer it.
event        'Create the event "…" that starts at ….' Goal: the editor has this title and this start, 2 + 2 screens of
             Google Calendar, and edits of the held-out ones. Every instruction goes with every screen.
choice       'Choose "…".' Goal: `choice`, a dialog whose one checked box has this text. Training: the 5 dialogs of a
             notes app. Held out: those of two calendars and a clock, no app in common. Every instruction goes with
             every screen of its side.
two-tasks    alarm and reminder as one set: one program; the experts of each are negative for the other.

How small this is: one episode, four screens of an event, five dialogs. Held-out results say that a rule carries over to
the screens at hand, no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from android.screens import (
    WEEKDAYS,
    WEEKEND,
    Shot,
    alarm_is_set,
    choice,
    episode,
    shots,
    with_alarm,
    with_texts,
)
from grace_irl.demos.trajectory import Demonstration, Demonstrations, Metadata, Role, Trajectory
from grace_irl.states.texts import pack

METADATA = Metadata("ui", view="uiautomator", label="last")
ALARM = "Set an alarm for {} on the weekend."
REMINDER = "Add the event EvtDesc with a reminder 30 minutes before."
EVENT = 'Create the event "{}" that starts at {}.'
CHOICE = 'Choose "{}".'
TRAIN_TIMES = ("6:10 AM", "7:40 AM", "5:45 PM")
HELD_OUT_TIMES = ("10:20 AM", "6:55 AM", "3:35 PM", "11:05 PM")
EVENTS = {  # the editor's screens that have a title: title, start, end, and whether they are held out
    "quick_create_multiday": ("Test event", "11:00 AM", "12:00 PM", False),
    "quick_create_with_attendees": ("EvtDesc", "11:30 AM", "12:30 PM", False),
    "quick_create_with_notification": ("EvtDesc", "12:30 PM", "1:30 PM", True),
    "quick_create_with_repeat": ("Recurring Event", "12:00 PM", "1:00 PM", True),
}
OTHER_CARDS = ("9:00 AM", "8:30 AM")
"""Times of other alarms of the list, which are off: a real screen with such an instruction is a near miss."""
NO_EVENTS = ("quick_create_with_location", "quick_create_with_visibility")
"""The editor at 11:30 AM without a title, and the event EvtDesc for all day: near misses of either side."""
CHOICE_APPS = {False: ("utg-notes",), True: ("utg-clock", "utg-calendar", "google-calendar")}
EDITED_EVENTS = (("Dentist", "3:15 PM", "4:15 PM"), ("Team lunch", "1:45 PM", "2:45 PM"), ("Run", "7:30 AM", "8:30 AM"))


@dataclass(frozen=True)
class Problem:
    """A goal, or several.

    Attributes:
        name: of the problem.
        train: what a fit sees.
        test: what is scored afterwards, and chooses nothing.
        edited: whether some screens are edited.
        required: whether the reward must separate the held-out screens.
        further: edited screens on which a reward from real ones is scored, too: how far it carries.
    """

    name: str
    train: Demonstrations
    test: Demonstrations
    edited: bool = False
    required: bool = False
    further: Demonstrations | None = None


def problems(data: Path) -> list[Problem]:
    """All problems, from the folder of the Android data."""
    every = shots(data)
    walk = episode(data)
    alarm, reminder = alarm_sides(walk, every), reminder_sides(every)
    times = Problem("alarm-times", *_sets(times_sides(walk)), edited=True)
    return [
        Problem("alarm", *_sets(alarm), required=True, further=times.test),
        times,
        Problem("reminder", *_sets(reminder), required=True),
        Problem("event", *_sets(event_sides(every)), edited=True),
        Problem("choice", *_sets(choice_sides(every))),
        Problem("two-tasks", *_sets(both(alarm, reminder)), required=True),
    ]


Sides = tuple[list[Demonstration], list[Demonstration]]
"""Training and held-out demonstrations."""


def alarm_sides(walk: Sequence[Shot], every: Iterable[Shot]) -> Sides:
    """The episode in parts that end on its goal screens, and all screens of other sources."""
    said = ALARM.format("8:25 AM")
    goals = [_item(part, said, "expert", "alarm") for part in (walk[:11], walk[11:20], walk[20:29])]
    tail = _item(walk[29:], said, "negative", "alarm")
    sides: Sides = (goals[:1], [*goals[1:], tail])
    for shot in every:
        if shot.source != "alarm":
            sides[shot.held_out].append(_single(shot, said, False, "alarm"))
    return sides


def times_sides(walk: Sequence[Shot]) -> Sides:
    """Goal screens with other times in both the instruction and the screen, and near misses of each."""
    sides: Sides = ([], [])
    real = walk[10]
    sides[0].extend(_single(shot, ALARM.format("8:25 AM"), shot is real, "alarm") for shot in walk[:11])
    for side, times, bases in ((0, TRAIN_TIMES, walk[10:11]), (1, HELD_OUT_TIMES, (walk[19], walk[28]))):
        for base in bases:
            for place, time in enumerate(times):
                said = ALARM.format(time)
                other = times[(place + 1) % len(times)]
                sides[side].append(_single(with_alarm(base, time, WEEKEND), said, True, "alarm"))
                misses = [(time, days) for days in ((), WEEKEND[:1], WEEKEND[1:], WEEKDAYS)]
                misses += [(other, WEEKEND), ("8:25 AM", WEEKEND)]
                sides[side].extend(_single(with_alarm(base, *miss), said, False, "alarm") for miss in misses)
    for side, shot, time in ((0, walk[10], "9:00 AM"), *((1, walk[n], time) for n in (19, 28) for time in OTHER_CARDS)):
        sides[side].append(_single(shot, ALARM.format(time), False, "alarm"))
    return sides


def reminder_sides(every: Iterable[Shot]) -> Sides:
    """Screens of an event with its reminder, all other screens of Google Calendar, and those of other sources."""
    sides: Sides = ([], [])
    for shot in every:
        sides[shot.held_out].append(
            _single(shot, REMINDER, shot.texts() >= {"EvtDesc", "30 minutes before"}, "reminder")
        )
    return sides


def event_sides(every: Iterable[Shot]) -> Sides:
    """Every instruction with every screen of Google Calendar: the editor that has its title and start reaches it."""
    calendar = [shot for shot in every if shot.source == "google-calendar"]
    sides: Sides = ([], [])
    for name, (title, start, _, held_out) in EVENTS.items():
        said = EVENT.format(title, start)
        foreign = {other for other, about in EVENTS.items() if about[3] and not held_out}  # goals that are held out
        for shot in calendar:
            if shot.name not in foreign and (shot.name in (*EVENTS, *NO_EVENTS) or shot.held_out is held_out):
                sides[held_out].append(_single(shot, said, shot.name == name, "event"))
    bases = [shot for shot in calendar if shot.name in EVENTS and EVENTS[shot.name][3]]
    for base in bases:
        old = EVENTS[base.name]
        edits = [with_texts(base, _event_pairs(old[:3], new)) for new in EDITED_EVENTS]
        for place, (title, start, _) in enumerate(EDITED_EVENTS):
            said = EVENT.format(title, start)
            sides[1].extend(_single(shot, said, n == place, "event") for n, shot in enumerate(edits))
            renamed = with_texts(base, _event_pairs(old[:3], (title, *old[1:3])))  # the title, at another time
            moved = with_texts(base, _event_pairs(old[:3], (old[0], *EDITED_EVENTS[place][1:])))
            sides[1].extend(_single(shot, said, False, "event") for shot in (base, renamed, moved))
    return sides


def _event_pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, str]]:
    """Replacements that turn one event of the editor into another: first into marks, as an end may be a start."""
    marks = ("\ue000", "\ue001", "\ue002")
    return [*zip(old[::-1], marks[::-1], strict=True), *zip(marks, new, strict=True)]


def choice_sides(every: Iterable[Shot]) -> Sides:
    """Dialogs for one choice: the notes app for training, other apps held out; each choice with all screens there."""
    sides: Sides = ([], [])
    for held_out in (False, True):
        pool = [shot for shot in every if shot.source in CHOICE_APPS[held_out]]
        chosen = {shot.xml: choice(shot.root) for shot in pool}
        for option in dict.fromkeys(filter(None, chosen.values())):
            said = CHOICE.format(option)
            sides[held_out].extend(_single(shot, said, chosen[shot.xml] == option, "choice") for shot in pool)
    return sides


def both(one: Sides, other: Sides) -> Sides:
    """Two goals in one set; the experts of each are negative trajectories of the other, too."""
    joined: Sides = ([], [])
    for side in (0, 1):
        joined[side].extend([*one[side], *other[side]])
        for mine, foreign in ((one, other), (other, one)):
            said, task = mine[side][0].trajectory.extra_info, mine[side][0].task
            for item in foreign[side]:
                if item.role == "expert":
                    trajectory = replace(item.trajectory, extra_info=said)
                    joined[side].append(replace(item, trajectory=trajectory, role="negative", task=task))
    return joined


def _single(shot: Shot, said: str, goal: bool, task: str) -> Demonstration:
    return _item([shot], said, "expert" if goal else "negative", task)


def _item(part: Sequence[Shot], said: str, role: Role, task: str) -> Demonstration:
    states = pack([shot.xml for shot in part])
    source = f"{part[0].source} {part[0].name}" + (f"-{part[-1].name}" if len(part) > 1 else "")
    return Demonstration(Trajectory(states, extra_info=said, source=source), role, task)


def _sets(sides: Sides) -> tuple[Demonstrations, Demonstrations]:
    return Demonstrations(METADATA, tuple(sides[0])), Demonstrations(METADATA, tuple(sides[1]))


def goal_screens(walk: Sequence[Shot]) -> list[int]:
    """Numbers of the screens of the alarm episode that reach its goal, by the rule."""
    return [n for n, shot in enumerate(walk, 1) if alarm_is_set(shot.root, "8:25 AM", WEEKEND)]
